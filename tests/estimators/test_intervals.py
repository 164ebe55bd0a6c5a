"""Prediction intervals: against CV+ by hand, coverage by simulation, and what must not change them."""

import pickle
import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import covey
from covey import Groups, GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor, survival
from covey.designs import as_design
from covey.persistence import ModelFileError
from covey.search import held_out as held_out_room
from covey.search.rules import Rule
from covey.selection import Folds, HoldOut
from storage_kinds import KINDS


def linear_data(n, seed, p=12, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, 1.0 + X[:, :4] @ np.array([3.0, -2.0, 2.0, 2.5]) + noise * rng.standard_normal(n)


def share_inside(lower, upper, y):
    return np.mean((lower <= y) & (y <= upper))


def cv_plus(predicted, new, y, fold, level):
    """CV+ as it is written: order statistics of every held-out row's ends; predictions have a column per fold."""
    n = len(y)
    ends = np.abs(y - predicted[np.arange(n), fold])
    upper = np.sort(new[:, fold] + ends, axis=1)[:, int(np.ceil(level * (n + 1) - 1e-9)) - 1]
    lower = np.sort(new[:, fold] - ends, axis=1)[:, int(np.floor((1 - level) * (n + 1) + 1e-9)) - 1]
    return lower, upper


@pytest.fixture(scope="module")
def fitted():
    X, y = linear_data(130, 0, noise=0.1)  # with little noise all candidates are least squares
    return GroupSparseRegressor(groups=2).fit(X[:90], y[:90]), X[:90], y[:90], X[90:], y[90:]


# ---------------------------------------------------------------------- the definition


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.97])
def test_intervals_are_cv_plus_of_least_squares_without_each_fold(fitted, level):
    model, X, y, new, _ = fitted
    assert model.recipe_.startswith("least squares")
    columns = np.flatnonzero(model.coef_)
    fold = Folds(5).parts(as_design(X), y, np.ones(90)).labels
    # nothing here comes from the model but its columns, which every fold selects
    A, B = (np.column_stack([np.ones(len(rows)), rows[:, columns]]) for rows in (X, new))
    fits = np.column_stack([np.linalg.lstsq(A[fold != k], y[fold != k], rcond=None)[0] for k in range(5)])
    expected = cv_plus(A @ fits, B @ fits, y, fold, level)
    np.testing.assert_allclose(model.predict(new, interval=level), expected, rtol=0, atol=1e-6)


OVERLAPPING = Groups.from_lists([[0, 1], [1, 2, 3], [4, 5]], 6, overlap=True)


@pytest.mark.parametrize(
    ("settings", "seed"),
    [
        ({"rule": "predict"}, 1),
        ({"loss": "huber"}, 2),
        ({"groups": OVERLAPPING}, 3),
        ({"groups": 3, "within": "columns"}, 4),
        ({"selection": KFold(4)}, 5),
    ],
    ids=["predict", "huber", "overlap", "within", "splitter"],
)
def test_intervals_are_cv_plus_of_the_fold_models(settings, seed):
    X, y = linear_data(110, seed, p=6, noise=2.0)
    model = GroupSparseRegressor(**settings).fit(X[:80], y[:80])
    held_out = model.held_out_
    predicted = X @ held_out.coefs.toarray().T + held_out.intercepts[:, 0]
    cv = settings.get("selection", 5)
    parts = Folds(cv).parts(as_design(X[:80]), y[:80], np.ones(80))
    fold = parts.labels if cv == 5 else np.arange(80) // 20
    expected = cv_plus(predicted[:80], predicted[80:], y[:80], fold, 0.9)
    np.testing.assert_allclose(model.predict(X[80:], interval=0.9), expected, rtol=0, atol=1e-9)
    # the models of the folds are near the model, and none is the model
    near = np.abs(predicted[80:] - model.predict(X[80:])[:, None]).max(axis=0)
    assert (near > 1e-6).all()
    assert (near < 3).all()


def test_one_held_out_share_gives_split_conformal_intervals():
    X, y = linear_data(200, 0)
    model = GroupSparseRegressor(selection=HoldOut(0.3, random_state=1)).fit(X[:100], y[:100])
    at = HoldOut(0.3, random_state=1).parts(as_design(X[:100]), y[:100], np.ones(100)).labels == 1
    predicted = X @ model.held_out_.coefs.toarray()[0] + model.held_out_.intercepts[0, 0]
    half = np.sort(np.abs(y[:100] - predicted[:100])[at])[int(np.ceil(0.8 * (at.sum() + 1))) - 1]
    lower, upper = model.predict(X[100:], interval=0.8)
    np.testing.assert_allclose([lower, upper], [predicted[100:] - half, predicted[100:] + half], atol=1e-9)


def test_a_validation_set_gives_intervals_around_the_prediction():
    X, y = linear_data(300, 0)
    model = GroupSparseRegressor(selection=HoldOut(validation=(X[100:180], y[100:180]))).fit(X[:100], y[:100])
    half = np.sort(np.abs(y[100:180] - model.predict(X[100:180])))[int(np.ceil(0.9 * 81)) - 1]
    lower, upper = model.predict(X[180:], interval=0.9)
    np.testing.assert_allclose(upper - model.predict(X[180:]), half, atol=1e-9)
    np.testing.assert_allclose(model.predict(X[180:]) - lower, half, atol=1e-9)


def test_rows_that_several_folds_hold_out_count_once():
    X, y = linear_data(60, 0)
    splits = ShuffleSplit(8, test_size=0.5, random_state=0)
    model = GroupSparseRegressor(selection=splits).fit(X, y)
    held = {int(i) for _, test in splits.split(X) for i in test}
    assert model.held_out_.n_rows == pytest.approx(len(held))
    assert model.held_out_.weights.sum() == pytest.approx(len(held))


def test_every_response_has_its_own_interval():
    X, y = linear_data(100, 0)
    Y = np.column_stack([y, 100 * (X[:, 0] + np.random.default_rng(1).standard_normal(100))])
    model = GroupSparseRegressor().fit(X[:70], Y[:70])
    fold = Folds(5).parts(as_design(X[:70]), Y[:70], np.ones(70), covey.losses.MultiSquared()).labels
    lower, upper = model.predict(X[70:], interval=0.9)
    assert lower.shape == upper.shape == (30, 2)
    for j in range(2):
        coefs = model.held_out_.coefs.toarray().reshape(5, 2, -1)[:, j]
        predicted = X @ coefs.T + model.held_out_.intercepts[:, j]
        expected = cv_plus(predicted[:70], predicted[70:], Y[:70, j], fold, 0.9)
        np.testing.assert_allclose([lower[:, j], upper[:, j]], expected, rtol=1e-9)


# ---------------------------------------------------------------------- coverage


# Estimators with responses that depend on the first columns. One row in eight of "huber" is an outlier, of which the
# intervals contain a few.
SIMULATED = {
    "squared": (GroupSparseRegressor(), lambda eta, rng: eta + rng.standard_normal(700)),
    "holdout": (GroupSparseRegressor(selection="holdout"), lambda eta, rng: eta + rng.standard_normal(700)),
    "huber": (
        GroupSparseRegressor(loss="huber"),
        lambda eta, rng: eta + np.where(rng.random(700) < 0.125, 50, 1) * rng.standard_normal(700),
    ),
    "quantile": (GroupSparseRegressor(loss="quantile"), lambda eta, rng: eta + rng.standard_normal(700)),
    "poisson": (GroupSparseRegressor(loss="poisson"), lambda eta, rng: rng.poisson(np.exp(1 + eta))),
    "negative-binomial": (
        GroupSparseRegressor(loss="negative-binomial"),
        lambda eta, rng: rng.negative_binomial(3, 3 / (3 + np.exp(1 + eta))),
    ),
    "gamma": (GroupSparseRegressor(loss="gamma"), lambda eta, rng: rng.gamma(2, np.exp(eta))),
    "tweedie": (
        GroupSparseRegressor(loss="tweedie"),
        lambda eta, rng: rng.poisson(np.exp(0.5 + eta)) * rng.gamma(2, 1, 700),
    ),
    "binomial": (
        GroupSparseRegressor(loss="binomial"),
        lambda eta, rng: rng.binomial(10, 1 / (1 + np.exp(-eta))) / 10,
    ),
    "two classes": (
        GroupSparseClassifier(),
        lambda eta, rng: np.where(2 * eta + rng.logistic(size=700) > 0, "yes", "no"),
    ),
    "four classes": (
        GroupSparseClassifier(),
        lambda X, rng: np.array(list("abcd"))[np.argmax(2 * X[:, :4] + rng.gumbel(size=(700, 4)), axis=1)],
    ),
}


@pytest.mark.parametrize("kind", SIMULATED)
def test_the_share_of_new_rows_is_covered(kind):
    found, slow = [], kind in ("huber", "quantile", "negative-binomial", "tweedie", "four classes")
    estimator, respond = SIMULATED[kind]
    for seed in range(3 if slow else 5):
        rng = np.random.default_rng([seed, 7])
        X = rng.standard_normal((700, 5))
        y = respond(X if kind == "four classes" else X[:, :3] @ [0.6, -0.5, 0.5], rng)
        model = estimator.fit(X[:200], y[:200])
        ends = model.predict(X[200:], interval=0.8)
        if "classes" in kind:
            found.append(ends[np.arange(500), np.searchsorted(model.classes_, y[200:])].mean())
        else:
            found.append(share_inside(*ends, y[200:]))
            assert (ends[0] <= ends[1]).all()
    # the standard error of the mean is 0.014, 0.018 with three seeds, 0.026 with forty held-out rows; counts are whole
    slack = 0.05 if slow or kind == "holdout" else 0.03
    assert 0.8 - slack < np.mean(found) < 0.8 + slack + 0.03 * (kind in ("poisson", "negative-binomial", "binomial"))


def test_residuals_of_the_rows_that_were_fitted_would_not_do():
    covered, in_sample = [], []
    for seed in range(8):
        X, y = linear_data(500, seed, p=20)
        y = y + X @ np.linspace(2, 3, 20)
        model = GroupSparseRegressor().fit(X[:50], y[:50])
        covered.append(share_inside(*model.predict(X[50:], interval=0.9), y[50:]))
        half = np.quantile(np.abs(y[:50] - model.predict(X[:50])), 0.92)
        in_sample.append(np.mean(np.abs(y[50:] - model.predict(X[50:])) <= half))
    assert np.mean(in_sample) < 0.82
    assert 0.87 < np.mean(covered) < 0.97


def test_held_out_rows_are_not_asked_which_model_to_choose(monkeypatch):
    def widths(seed):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((130, 20))
        y = 0.8 * X[:, :4].sum(axis=1) + rng.standard_normal(130)
        model = GroupSparseRegressor(selection=Folds(5, deals=1)).fit(X[:30], y[:30])
        return np.mean(np.ptp(model.predict(X[30:], interval=0.8), axis=0))

    honest = [widths(seed) for seed in range(6)]
    monkeypatch.setattr(Rule, "without_fold", lambda self: [self.verdict] * 5)  # as chosen by all rows
    assert np.mean([widths(seed) for seed in range(6)]) < 0.95 * np.mean(honest)


@pytest.mark.parametrize("follow_up", [0.5, 5.0], ids=["most censored", "few censored"])
def test_survival_times_reach_their_bound(follow_up):
    found, unweighted = [], []
    for seed in range(3):
        rng = np.random.default_rng([seed, 3])
        X, strata = rng.standard_normal((800, 3)), rng.integers(0, 2, 800)
        times = rng.exponential(np.exp(-X[:, 0] - X[:, 1])) * (1 + 4 * strata)
        censored = rng.exponential(follow_up, 800)
        y = survival(np.minimum(times, censored), times <= censored, strata=strata)
        model = GroupSparseCox().fit(X[:300], y[:300])
        bound = model.predict(X[300:], interval=0.8, strata=strata[300:])
        found.append(np.mean(times[300:] >= bound))
        flat = replace(model.held_out_, weights=np.ones_like(model.held_out_.weights))
        model.held_out_ = flat
        bound = model.predict(X[300:], interval=0.8, strata=strata[300:])
        unweighted.append(np.mean(times[300:] >= bound))
    assert 0.75 < np.mean(found) < 0.85
    # censored rows would count as if they had lived on for ever, and bounds be too late
    assert np.mean(unweighted) < np.mean(found) - 0.02


def test_without_censoring_or_columns_the_bound_is_an_order_statistic():
    rng = np.random.default_rng(0)
    times = rng.permutation(np.arange(1.0, 100.0))
    model = GroupSparseCox(selection=KFold(3)).fit(rng.standard_normal((99, 2)), survival(times))
    assert not model.selected_groups_
    # every row dies at some rank of its fold's baseline, so the bound is the tenth time but for the folds' noise
    bound = model.predict(np.zeros((1, 2)), interval=0.9)
    assert 8 <= bound[0] <= 12


def test_counts_have_whole_bounds_in_their_range_and_narrow_ones_at_most_one_apart():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    y = rng.poisson(np.exp(1.5 * X[:, 0] - 1))
    model = GroupSparseRegressor(loss="poisson").fit(X, y)
    for level in (0.02, 0.5, 0.9):
        lower, upper = model.predict(X, interval=level)
        assert (lower == np.round(lower)).all()
        assert (upper == np.round(upper)).all()
        assert (lower >= 0).all()
        assert (lower <= upper).all()
    rates = GroupSparseRegressor(loss="poisson").fit(X, y / 3)
    assert rates.predict(X, interval=0.9)[1].max() % 1 > 0


def test_the_class_that_conforms_best_is_in_every_set_and_sets_grow_with_the_level():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    y = np.argmax(X[:, :3] + rng.gumbel(size=(200, 3)), axis=1)
    model = GroupSparseClassifier().fit(X, y)
    sets = [model.predict(X, interval=level) for level in (0.05, 0.5, 0.9, 0.99)]
    assert all(one.any(axis=1).all() for one in sets)
    assert all((small <= large).all() for small, large in pairwise(sets))
    assert sets[0].sum() < sets[-1].sum()


# ---------------------------------------------------------------------- what must not matter


def test_intervals_follow_the_units(fitted):
    model, X, y, new, _ = fitted
    scale = np.array([1e-3, 1, 1, 1e4, *np.ones(8)])
    other = GroupSparseRegressor(groups=2).fit(X * scale, 1e6 * y - 5)
    expected = 1e6 * np.array(model.predict(new, interval=0.9)) - 5
    np.testing.assert_allclose(other.predict(new * scale, interval=0.9), expected, rtol=1e-7)
    huge = GroupSparseRegressor(groups=2).fit(X, 1e140 * y)
    np.testing.assert_allclose(
        np.array(huge.predict(new, interval=0.9)) / 1e140, model.predict(new, interval=0.9), rtol=1e-7
    )


def test_a_weight_of_two_is_a_row_twice():
    X, y = linear_data(120, 3)
    twice = np.random.default_rng(0).random(90) < 0.4
    weighted = GroupSparseRegressor().fit(X[:90], y[:90], sample_weight=1.0 + twice)
    repeated = GroupSparseRegressor().fit(np.vstack([X[:90], X[:90][twice]]), np.r_[y[:90], y[:90][twice]])
    scaled = GroupSparseRegressor().fit(X[:90], y[:90], sample_weight=1e-5 * (1.0 + twice))
    expected = repeated.predict(X[90:], interval=0.9)
    np.testing.assert_allclose(weighted.predict(X[90:], interval=0.9), expected, atol=1e-7)
    np.testing.assert_allclose(scaled.predict(X[90:], interval=0.9), expected, atol=1e-7)
    plain = GroupSparseRegressor().fit(X[:90], y[:90])
    assert not np.allclose(plain.predict(X[90:], interval=0.9), expected, atol=1e-3)


def test_an_offset_moves_the_interval(fitted):
    model, _, _, new, _ = fitted
    moved = model.predict(new, np.arange(40.0), interval=0.9)
    np.testing.assert_allclose(moved, np.array(model.predict(new, interval=0.9)) + np.arange(40.0))
    rng = np.random.default_rng(0)
    exposure, X = rng.uniform(1, 20, 600), rng.standard_normal((600, 2))
    y = rng.poisson(exposure * np.exp(0.5 * X[:, 0]))
    counts = GroupSparseRegressor(loss="poisson").fit(X[:300], y[:300], offset=np.log(exposure[:300]))
    lower, upper = counts.predict(X[300:], np.log(exposure[300:]), interval=0.9)
    assert 0.87 < share_inside(lower, upper, y[300:]) < 0.96
    assert np.corrcoef(upper - lower, exposure[300:])[0, 1] > 0.6


@pytest.mark.parametrize("kind", ["CSR matrix", "Dask", "torch", "without columns"])
def test_storage_does_not_matter(fitted, kind, tmp_path):
    model, X, y, new, _ = fitted
    same = GroupSparseRegressor(groups=2).fit(KINDS[kind](X, tmp_path), y)
    (tmp_path / "new").mkdir()
    expected = model.predict(new, interval=0.9)
    np.testing.assert_allclose(same.predict(KINDS[kind](new, tmp_path / "new"), interval=0.9), expected, atol=1e-7)


def test_outliers_that_the_fit_leaves_out_count_all_the_same():
    X, y = linear_data(150, 0)
    y[::10] += 1000
    model = GroupSparseRegressor(loss="huber").fit(X, y)
    assert model.held_out_.n_rows == pytest.approx(150)
    assert np.ptp(model.predict(X, interval=0.85), axis=0).max() < 10  # a tenth of the rows are outliers
    assert np.ptp(model.predict(X, interval=0.95), axis=0).min() > 1000


def test_a_model_that_is_saved_gives_the_same_intervals(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.uniform(20, 60, 150), "site": rng.choice(list("abc"), 150)})
    y = np.sin(table["age"] / 5) + (table["site"] == "a") + 0.2 * rng.standard_normal(150)
    labels, death = np.where(y > 0.5, "high", "low"), survival(np.exp(y), rng.random(150) < 0.7)
    for model in (
        GroupSparseRegressor(terms="auto").fit(table, y),
        GroupSparseClassifier(terms="auto").fit(table, labels),
        GroupSparseCox(terms="auto").fit(table, death),
    ):
        expected = model.predict(table, interval=0.9)
        covey.save(model, tmp_path / "model.skops")
        for same in (covey.load(tmp_path / "model.skops"), pickle.loads(pickle.dumps(model))):
            np.testing.assert_array_equal(same.predict(table, interval=0.9), expected)


@pytest.mark.parametrize(
    "change",
    [
        {"scores": lambda scores: scores[::-1].copy()},
        {"scores": lambda scores: scores * np.nan},
        {"weights": lambda weights: weights[1:]},
        {"weights": lambda weights: -weights},
        {"starts": lambda starts: starts + 1},
        {"starts": lambda starts: starts[:-1]},
        {"intercepts": lambda intercepts: intercepts[:2]},
        {"coefs": lambda coefs: coefs[:, :3]},
        {"n_rows": lambda n_rows: np.inf},
        {"whole": lambda whole: "yes"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_forged_held_out_rows_are_refused(fitted, change, tmp_path):
    model = pickle.loads(pickle.dumps(fitted[0]))
    ((name, forge),) = change.items()
    model.held_out_ = replace(model.held_out_, **{name: forge(getattr(model.held_out_, name))})
    with pytest.raises(ModelFileError, match=rf"{name}|held_out_|not as it was written"):
        covey.save(model, tmp_path / "model.skops")


def test_a_pipeline_passes_the_share_on(fitted):
    _, X, y, new, _ = fitted
    lower, upper = make_pipeline(StandardScaler(), GroupSparseRegressor(groups=2)).fit(X, y).predict(new, interval=0.9)
    np.testing.assert_allclose([lower, upper], fitted[0].predict(new, interval=0.9), atol=1e-7)


def test_many_rows_are_kept_as_evenly_spaced_scores(fitted, monkeypatch):
    model, X, y, new, _ = fitted
    monkeypatch.setattr(held_out_room, "MOST_SCORES", 9)
    thin = GroupSparseRegressor(groups=2).fit(X, y)
    assert thin.held_out_.scores.shape == (45, 1)
    assert thin.held_out_.weights.sum() == pytest.approx(90)
    wide, exact = (np.ptp(one.predict(new, interval=0.8), axis=0) for one in (thin, model))
    assert (wide >= exact - 1e-9).all()  # the largest of neighbours stands for them
    assert (wide < 1.3 * exact).all()


# ---------------------------------------------------------------------- errors


def test_rows_far_outside_are_told_from_folds_whose_models_are_steep():
    # a fold without the rows at the border separates the classes
    rng = np.random.default_rng(17)
    X = rng.standard_normal((40, 3))
    model = GroupSparseClassifier().fit(X, X[:, 0] + 0.1 * rng.standard_normal(40) > 0)
    eta = model.held_out_.predictors(as_design(X))
    assert (model._bounded(eta) != eta).any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X, interval=0.8)
    with pytest.warns(UserWarning, match="1 of 2 rows are so far outside"):
        model.predict(X[:2] * [[1.0], [1e4]], interval=0.8)


def test_errors_say_what_to_do(fitted):
    model, X, y, new, _ = fitted
    for level, message in ((90, "such as 0.9"), (0, "between 0 and 1"), ("wide", "number"), (True, "number")):
        with pytest.raises(ValueError, match=message):
            model.predict(new, interval=level)
    with pytest.raises(
        ValueError, match=r"interval=0\.995 needs at least 199 held-out rows.* 90: ask for at most 0\.989"
    ):
        model.predict(new, interval=0.995)
    chosen = GroupSparseRegressor(selection="bic").fit(X, y)
    with pytest.raises(ValueError, match="selection='bic' holds out none: fit with folds"):
        chosen.predict(new, interval=0.9)
    with pytest.raises(ValueError, match="12 features"):
        model.predict(new[:, :3], interval=0.9)


def test_bounds_of_survival_times_need_rows_from_time_zero_and_strata():
    rng = np.random.default_rng(0)
    X, times = rng.standard_normal((80, 2)), rng.exponential(size=80) + 0.1
    entered = GroupSparseCox().fit(X, survival(times, start=times / 3))
    with pytest.raises(ValueError, match="entry times"):
        entered.predict(X, interval=0.9)
    model = GroupSparseCox().fit(X, survival(times, strata=np.arange(80) % 2))
    with pytest.raises(ValueError, match="give strata="):
        model.predict(X, interval=0.9)
    with pytest.raises(ValueError, match="leave strata= out"):
        model.predict(X, strata=np.arange(80) % 2)
