"""The mean of models: its weights, what goes into it, when it is taken, and what it is good for."""

import io

import numpy as np
import pytest

import covey
from covey import Groups, GroupSparseRegressor, GroupSparseRegressorCV
from covey.stopping import HoldOut
from covey.stopping.averaging import LEAST_WEIGHT, PENALTIES, ROUNDS, TEMPERATURE, parts_of, weigh
from covey.stopping.legs import Cleaned, Leg
from covey.stopping.monitor import PATIENCE
from covey.stopping.search import explore
from search_problems import equicorrelated, misleading, split, task_of

SEARCH = {"restarts": 2, "dense_scales": (1e-2, 1e-1), "average": True}


def noisy_problem(seed, n=120, p=150, active=10):
    """As much noise as signal, in groups of three."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    w = np.zeros(p)
    w[: 3 * active] = rng.standard_normal(3 * active)
    signal = X @ w
    return X, signal + signal.std() * rng.standard_normal(n), Groups.from_size(3, p), w


# ---------------------------------------------------------------------- weights


def test_weights_are_exponential_in_the_summed_error():
    errors = np.array([2.0, 2.1, 2.3])
    weights = weigh(errors, 50)
    expected = np.exp(-50 * (errors - 2.0) / (TEMPERATURE * 2.0))
    np.testing.assert_allclose(weights, expected / expected.sum())


def test_light_models_are_left_out_and_the_best_never():
    weights = weigh([1.0, 1.0, 9.0], 100)
    np.testing.assert_allclose(weights, [0.5, 0.5, 0.0])
    many = weigh([1.0] * 400 + [0.999], 10)
    assert LEAST_WEIGHT > 1 / 401
    assert many[-1] == 1.0


@pytest.mark.parametrize("unit", [1e-300, 1e300])
def test_weights_do_not_depend_on_units(unit):
    np.testing.assert_allclose(weigh([unit, 1.1 * unit], 30), weigh([1.0, 1.1], 30))


# ---------------------------------------------------------------------- what goes into it


def least_squares(X, y, columns, penalty):
    """Coefficients of all columns, with a penalty for each of some."""
    centred = X[:, columns] - X[:, columns].mean(axis=0)
    w = np.zeros(X.shape[1])
    gram = centred.T @ centred / len(y) + np.diag(penalty)
    w[columns] = np.linalg.solve(gram, centred.T @ (y - y.mean()) / len(y))
    return w


def test_cleaned_parts_are_fits_on_the_kept_groups():
    X, y, groups, _ = noisy_problem(0)
    trial = split(task_of(X, y, groups, **SEARCH))
    found = explore(trial, PATIENCE)
    rows = trial.task.weight > 0
    held = trial.scorer.weight > 0
    assert found.noisy
    assert {part.kept.ridge for part in found.cleaned} == {0.0, 0.1, 0.3, 1.0}
    for part in found.cleaned:
        columns = np.flatnonzero(np.isin(groups.labels, part.kept.groups))
        variance = X[rows][:, columns].var(axis=0)
        w = least_squares(X[rows], y[rows], columns, part.kept.ridge * variance)
        intercept = y[rows].mean() - X[rows].mean(axis=0) @ w
        assert np.mean((y[held] - X[held] @ w - intercept) ** 2) == pytest.approx(part.error, rel=1e-6)


@pytest.mark.parametrize("n", [80, 400])
def test_sharpened_parts_are_reweighted_ridge_regressions(n):
    X, y, groups, _ = noisy_problem(1, n=n)
    trial = split(task_of(X, y, groups, **SEARCH))
    rows, held = trial.task.weight > 0, trial.scorer.weight > 0
    sharpened = [part for part in parts_of(trial, explore(trial, PATIENCE)) if not isinstance(part, Leg | Cleaned)]
    assert {part.penalty for part in sharpened} == set(PENALTIES)
    lists = groups.lists()
    unit = np.array([np.sqrt(np.mean(X[rows][:, own].var(axis=0))) for own in lists])[groups.labels]
    scale = y[rows].std()
    for part in sharpened:
        at = part.leg.path.index(part.leg.time)
        w = part.leg.path.coefs[[at]].toarray().ravel() * unit / scale
        for _ in range(ROUNDS):
            norms = np.repeat([max(np.linalg.norm(w[own]), 1e-9) for own in lists], groups.sizes)
            w = least_squares(X[rows] / unit, y[rows] / scale, np.arange(X.shape[1]), part.penalty / norms)
        w *= scale / unit
        np.testing.assert_allclose(part.model[0], w, atol=1e-5 * np.abs(w).max())
        intercept = y[rows].mean() - X[rows].mean(axis=0) @ w
        assert np.mean((y[held] - X[held] @ w - intercept) ** 2) == pytest.approx(part.error, rel=1e-5)


def test_the_mean_is_that_of_its_parts():
    X, y, groups, _ = noisy_problem(2)
    rng = np.random.default_rng(5)
    X_val = rng.standard_normal((60, X.shape[1]))
    y_val = rng.standard_normal(60)
    choice = HoldOut(validation=(X_val, y_val)).choose(task_of(X, y, groups, **SEARCH))
    mean = choice.average
    assert mean.parts["weight"].sum() == pytest.approx(1.0)
    assert mean.parts["weight"].is_monotonic_decreasing
    coef, intercept = choice.model
    error = np.mean((y_val - X_val @ coef - intercept) ** 2)
    # a square is convex
    assert error <= mean.parts["weight"] @ mean.parts["mse"] + 1e-12


# ---------------------------------------------------------------------- when it is taken


def test_a_clear_signal_is_one_model_that_has_settled():
    X, y, groups, _ = misleading(seed=1)
    model = GroupSparseRegressor(groups, random_state=0).fit(X, y)
    assert model.average_ is None
    columns = np.flatnonzero(model.coef_)
    wanted = least_squares(X, y, columns, np.zeros(columns.size))
    np.testing.assert_allclose(model.coef_, wanted, atol=1e-6)


@pytest.mark.parametrize("setting", [{"average": False}, {"restarts": 0, "init_scale": 1e-6, "factors": 0}])
def test_one_model_where_it_is_asked_for(setting):
    X, y, groups, _ = noisy_problem(3)
    model = GroupSparseRegressor(groups, random_state=0, **setting).fit(X, y)
    assert model.average_ is None
    np.testing.assert_array_equal(model.coef_, model.path_.at(model.n_iter_))


def test_the_rule_of_one_standard_error_takes_one_model():
    X, y, groups, _ = noisy_problem(3)
    assert GroupSparseRegressorCV(groups).fit(X, y).average_ is not None
    assert GroupSparseRegressorCV(groups, rule="1se").fit(X, y).average_ is None


# ---------------------------------------------------------------------- what it is good for, and that it is a model


@pytest.mark.parametrize("kind", [GroupSparseRegressor, GroupSparseRegressorCV])
def test_averaging_lowers_the_error_under_noise(kind):
    ratios = []
    for seed in range(8):
        X, y, groups, w = noisy_problem(seed)
        seeded = {"random_state": 0} if kind is GroupSparseRegressor else {"cv": 4}
        errors = [
            np.sum((kind(groups, average=average, **seeded).fit(X, y).coef_ - w) ** 2) for average in (True, False)
        ]
        ratios.append(errors[0] / errors[1])
    assert np.exp(np.mean(np.log(ratios))) < 0.96


@pytest.mark.parametrize("kind", [GroupSparseRegressor, GroupSparseRegressorCV])
def test_an_averaged_model_predicts_is_kept_and_is_told_of(kind, tmp_path):
    X, y, groups, _ = noisy_problem(4)
    X = equicorrelated(np.random.default_rng(4), *X.shape)
    y = X[:, :9].sum(axis=1) + 4 * np.random.default_rng(5).standard_normal(len(y))
    seeded = {"random_state": 0} if kind is GroupSparseRegressor else {}
    model = kind(groups, **seeded).fit(X, y)
    assert model.n_factors_ == 1
    assert list(model.average_.columns) == ["model", "groups", "mse", "weight"]
    assert len(model.average_) > 3
    np.testing.assert_allclose(model.predict(X), X @ model.coef_ + model.intercept_)
    assert set(model.selected_groups_) == set(np.flatnonzero(model.group_norms_))
    covey.save(model, tmp_path / "model.covey")
    again = covey.load(tmp_path / "model.covey")
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert again.average_.equals(model.average_)


@pytest.mark.parametrize("kind", [GroupSparseRegressor, GroupSparseRegressorCV])
def test_once_the_groups_are_known_factors_are_left_in(kind):
    rng = np.random.default_rng(8)
    X = equicorrelated(rng, 200, 120)
    y = X[:, :9].sum(axis=1) + rng.standard_normal(200)
    seeded = {"random_state": 0} if kind is GroupSparseRegressor else {}
    model = kind(Groups.from_size(3, 120), **seeded).fit(X, y)
    assert model.n_factors_ == 1
    assert set(model.selected_groups_) == {0, 1, 2}
    wanted = least_squares(X, y, np.arange(9), np.zeros(9))
    np.testing.assert_allclose(model.coef_, wanted, atol=1e-8)
    assert model.average_["model"].tolist() == ["least squares on kept groups, factors left in"]
    with_factors = kind(Groups.from_size(3, 120), average=False, **seeded).fit(X, y)
    assert np.count_nonzero(with_factors.coef_) == 120


def test_overlapping_groups_add_up():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((120, 30))
    y = X[:, :6] @ rng.standard_normal(6) + 4 * rng.standard_normal(120)
    groups = Groups.from_lists([list(range(a, a + 5)) for a in range(0, 26, 3)] + [[29]], overlap=True)
    model = GroupSparseRegressor(groups, random_state=0).fit(X, y)
    assert model.average_ is not None
    assert np.mean((model.predict(X) - y) ** 2) < np.var(y)
    assert model.coef_.shape == (30,)


@pytest.mark.parametrize("average", [1, "yes", None])
def test_average_is_true_or_false(average):
    X, y, groups, _ = noisy_problem(0)
    with pytest.raises(ValueError, match="average must be True or False"):
        GroupSparseRegressor(groups, average=average).fit(X, y)


def test_the_summary_says_that_models_were_averaged():
    X, y, groups, _ = noisy_problem(4)
    out = io.StringIO()
    model = GroupSparseRegressor(groups, random_state=0).fit(X, y)
    model.summary(out)
    assert f"a mean of {len(model.average_)} models" in out.getvalue()
