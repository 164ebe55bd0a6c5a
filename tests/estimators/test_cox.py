"""Survival times through the estimator: one model, other packages' coefficients, curves, folds, bad input."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from covey import Groups, GroupSparseCox, survival
from covey.estimators.survival import concordance_index
from covey.losses import Cox
from covey.losses.cox import read_survival
from covey.selection import Folds, Size


def problem(seed=0, n=200, n_groups=15, tied=False, truncated=False, strata=False):
    """Groups of three columns of which the first two matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3 * n_groups)) + 3.0
    eta = X[:, :6] @ [0.7, -0.7, 0.5, 0.6, 0.6, -0.6]
    death, lost = rng.exponential(np.exp(-eta)), rng.exponential(np.exp(-np.median(eta)) * 2, n)
    time = np.minimum(death, lost) / np.exp(-np.median(eta))
    if tied:
        time = np.ceil(8 * time) / 8
    start = np.maximum(time - rng.uniform(0.2, 2.0, n), 0.0) * (rng.random(n) < 0.6) if truncated else None
    labels = np.array(["a", "b", "c"])[rng.integers(0, 3, n)] if strata else None
    return X, survival(time + 0.01, death <= lost, start=start, strata=labels), Groups.from_size(3, X.shape[1])


# Efron's way with weights, R's and lifelines' too, is not the row twice: two copies of an event would be tied.
WEIGHTS = {
    f"check_sample_weight_equivalence_on_{kind}_data": "Efron's ties with weights" for kind in ("dense", "sparse")
}


@parametrize_with_checks(
    [GroupSparseCox(selection=Folds(3, deals=1), ties="breslow"), GroupSparseCox(selection="ebic")],
    expected_failed_checks=lambda model: WEIGHTS if model.ties == "efron" else {},
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ------------------------------------------------------------------ one model


def test_equivariance():
    """Units and levels of columns, units of time, the order of rows and columns change nothing."""
    X, y, groups = problem()
    base = GroupSparseCox(groups).fit(X, y)
    rng = np.random.default_rng(1)
    scale = 10.0 ** rng.integers(-2, 3, X.shape[1])
    units = GroupSparseCox(groups).fit(X * scale + 7.0, survival(100 * y["time"], y["event"]))
    np.testing.assert_allclose(units.coef_ * scale, base.coef_, atol=1e-7)
    assert units.selected_groups_ == base.selected_groups_
    rows = rng.permutation(len(X))
    np.testing.assert_allclose(GroupSparseCox(groups).fit(X[rows], y[rows]).coef_, base.coef_, atol=1e-7)
    # any increasing function of time gives the same risk sets
    later = GroupSparseCox(groups).fit(X, survival(y["time"] ** 3 + 1, y["event"]))
    np.testing.assert_allclose(later.coef_, base.coef_, atol=1e-7)
    flipped = groups.labels[::-1]
    mirrored = GroupSparseCox(flipped).fit(X[:, ::-1], y)
    np.testing.assert_allclose(mirrored.coef_[::-1], base.coef_, atol=1e-7)


# ------------------------------------------------------------------ other packages


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_coefficients_and_curves_of_scikit_survival(ties):
    linear_model = pytest.importorskip("sksurv.linear_model")
    X, y, groups = problem(tied=True)
    model = GroupSparseCox(groups, selection=Size(3), ties=ties).fit(X, y)
    used = np.flatnonzero(model.coef_)
    theirs = linear_model.CoxPHSurvivalAnalysis(ties=ties, tol=1e-12).fit(X[:, used], y)
    np.testing.assert_allclose(model.coef_[used], theirs.coef_, atol=1e-8)
    at = np.linspace(y["time"].min(), y["time"].max() * 0.9, 11)
    for ours, other in (
        (model.predict_survival_function, theirs.predict_survival_function),
        (model.predict_cumulative_hazard_function, theirs.predict_cumulative_hazard_function),
    ):
        expected = [function(at) for function in other(X[:5, used])]
        np.testing.assert_allclose([function(at) for function in ours(X[:5])], expected, rtol=1e-8)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("truncated", [False, True])
@pytest.mark.parametrize("strata", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_coefficients_of_lifelines(truncated, strata, weighted):
    lifelines = pytest.importorskip("lifelines")
    X, y, groups = problem(tied=True, truncated=truncated, strata=strata)
    weight = np.random.default_rng(2).integers(1, 4, len(X)).astype(float) if weighted else None
    model = GroupSparseCox(groups, selection=Size(2)).fit(X, y, sample_weight=weight)
    used = np.flatnonzero(model.coef_)
    table = pd.DataFrame(X[:, used]).assign(time=y["time"], event=y["event"])
    options = {}
    if truncated:
        table["start"], options["entry_col"] = y["start"], "start"
    if strata:
        table["stratum"], options["strata"] = y["stratum"], "stratum"
    if weighted:
        table["weight"], options["weights_col"] = weight, "weight"
        options["robust"] = True
    fitted = lifelines.CoxPHFitter().fit(table, "time", "event", fit_options={"precision": 1e-11}, **options)
    np.testing.assert_allclose(model.coef_[used], fitted.params_.to_numpy(), atol=1e-6)


def test_concordance_of_scikit_survival():
    metrics = pytest.importorskip("sksurv.metrics")
    for tied in (False, True):
        X, y, groups = problem(tied=tied)
        model = GroupSparseCox(groups).fit(X[:120], y[:120])
        risk = np.round(model.predict(X[120:]), 1)  # with ties
        expected = metrics.concordance_index_censored(y["event"][120:], y["time"][120:], risk)[0]
        rows = read_survival(y[120:]).rows
        assert concordance_index(rows, risk, np.ones(80)) == pytest.approx(expected, rel=1e-12)
        late = y["time"] < y["time"][:120].max()
        test = np.flatnonzero(late & (np.arange(200) >= 120))
        uno = metrics.concordance_index_ipcw(y[:120], y[test], model.predict(X[test]))[0]
        assert model.score(X[test], y[test], concordance="uno") == pytest.approx(uno, rel=1e-10)


def test_concordance_by_definition():
    X, y, _ = problem(tied=True, truncated=True, strata=True, n=90)
    rows, risk = read_survival(y).rows, np.round(X[:, 0], 1)
    weight = np.random.default_rng(0).uniform(0.5, 2, 90)
    right = pairs = 0.0
    for i in range(90):
        for j in range(90):
            start, stop, event, stratum = rows[j]
            lasts = stop > rows[i, 1] or (stop == rows[i, 1] and not event)
            if rows[i, 2] and stratum == rows[i, 3] and start < rows[i, 1] and lasts:
                pairs += weight[i] * weight[j]
                right += weight[i] * weight[j] * ((risk[i] > risk[j]) + 0.5 * (risk[i] == risk[j]))
    assert concordance_index(rows, risk, weight) == pytest.approx(right / pairs, rel=1e-12)


def test_scorers_pipelines_and_grids():
    metrics = pytest.importorskip("sksurv.metrics")
    X, y, groups = problem()
    pipeline = make_pipeline(StandardScaler(), GroupSparseCox(3, selection="ebic"))
    assert (cross_val_score(pipeline, X, y, cv=3) > 0.6).all()
    grid = GridSearchCV(GroupSparseCox(groups, selection="ebic"), {"ties": ["efron", "breslow"]}, cv=3).fit(X, y)
    assert grid.best_score_ > 0.6
    wrapped = metrics.as_concordance_index_ipcw_scorer(GroupSparseCox(groups, selection="ebic"))
    inside = GridSearchCV(wrapped, {"estimator__rule": ["select"]}, cv=3).fit(X, y)
    assert inside.best_score_ > 0.6
    times = np.quantile(y["time"], [0.2, 0.5])
    curves = metrics.as_integrated_brier_score_scorer(GroupSparseCox(groups, selection="ebic"), times=times)
    assert -0.25 < curves.fit(X, y).score(X, y) < 0


# ------------------------------------------------------------------ what it means


def test_the_judge_adds_up_what_folds_add_to_the_deviance():
    X, y, groups = problem(n=90, n_groups=5)
    folds = [(np.flatnonzero(np.arange(90) % 3 != f), np.flatnonzero(np.arange(90) % 3 == f)) for f in range(3)]
    model = GroupSparseCox(groups, selection=folds, factors=0).fit(X, y)
    row = model.candidates_[model.candidates_["recipe"].str.contains("maximum partial likelihood on 5 of")].iloc[0]
    rows = read_survival(y).rows
    for number, (train, test) in enumerate(folds):
        # all five groups, fitted on the training rows
        inner = GroupSparseCox(groups, selection=Size(5), factors=0).fit(X[train], y[train])
        eta, weight = inner.predict(X), np.isin(np.arange(90), train).astype(float)
        added = Cox().on(rows, np.ones(90)).deviance(eta) - Cox().on(rows, weight).deviance(eta)
        assert row[f"fold_{number}"] == pytest.approx(added / y["event"][test].sum(), rel=1e-4)


def test_folds_have_events_and_are_balanced():
    X, y, groups = problem(n=60)
    rare = survival(y["time"], np.arange(60) % 10 == 0)
    model = GroupSparseCox(groups, selection=5).fit(X, rare)
    assert model.n_splits_ == 5  # six events: each fold has one
    few = survival(y["time"], np.arange(60) % 20 == 0)
    assert GroupSparseCox(groups, selection=5).fit(X, few).n_splits_ == 3


def test_offset():
    X, y, groups = problem()
    shift = X[:, 0] * 0.7
    model = GroupSparseCox(groups, selection=Size(3)).fit(X, y, offset=shift)
    plain = GroupSparseCox(groups, selection=Size(3)).fit(X, y)
    assert set(model.selected_groups_) == set(plain.selected_groups_)
    expected = plain.coef_.copy()
    expected[0] -= 0.7
    np.testing.assert_allclose(model.coef_, expected, atol=1e-7)
    np.testing.assert_allclose(model.predict(X, shift) - model.predict(X), shift)


def test_monotone_likelihood_stays_finite():
    """A column that orders all events perfectly has its maximum at infinity."""
    rng = np.random.default_rng(0)
    time = np.arange(1.0, 61.0)
    X = np.column_stack([-time, rng.standard_normal((60, 5))])
    model = GroupSparseCox(selection=Size(1)).fit(X, survival(time))
    assert model.selected_groups_ == [0]
    assert np.isfinite(model.coef_).all()
    assert "infinite" in model.recipe_
    assert model.score(X, survival(time)) == 1.0


def test_curves_by_stratum():
    X, y, groups = problem(strata=True)
    model = GroupSparseCox(groups).fit(X, y)
    table = model.predict_survival_function(X[:4], strata=y["stratum"][:4], return_array=True)
    assert table.shape == (4, model.event_times_.size)
    assert (np.diff(table, axis=1) <= 0).all()
    functions = model.predict_survival_function(X[:4], strata=y["stratum"][:4])
    np.testing.assert_allclose([f(model.event_times_) for f in functions], table)
    assert functions[0](0.0) == 1.0
    assert set(model.baseline()["stratum"]) == {"a", "b", "c"}
    with pytest.raises(ValueError, match="fitted with strata"):
        model.predict_survival_function(X[:4])
    with pytest.raises(ValueError, match="label 'z', which no row of fit has"):
        model.predict_survival_function(X[:1], strata=["z"])


# ------------------------------------------------------------------ bad input


def test_names_of_columns():
    X, y, groups = problem(n=80)
    table = pd.DataFrame({"weeks": y["time"], "dead": y["event"].astype(int)})
    named = GroupSparseCox(groups, time="weeks", event="dead", selection="ebic").fit(X, table)
    np.testing.assert_array_equal(named.coef_, GroupSparseCox(groups, selection="ebic").fit(X, y).coef_)
    assert clone(named).time == "weeks"


def test_bad_settings():
    X, y, groups = problem(n=60)
    with pytest.raises(ValueError, match="ties must be"):
        GroupSparseCox(groups, ties="exact").fit(X, y)
    model = GroupSparseCox(groups, selection=Size(1)).fit(X, y)
    with pytest.raises(ValueError, match="concordance must be"):
        model.score(X, y, concordance="c")
    with pytest.raises(ValueError, match="fitted without strata"):
        model.predict_survival_function(X, strata=np.ones(60))
    with pytest.raises(ValueError, match="No two rows can be compared"):
        model.score(X[:2], survival([1.0, 1.0]))
