"""The data decide: units, order and storage of what is given change neither the selection nor the model."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit
from threadpoolctl import threadpool_limits

from covey import Groups, GroupSparseRegressor
from covey.selection import HoldOut, Size
from estimator_problems import noisy_problem

FOLD = np.arange(80) % 5

SELECTIONS = {
    "folds": lambda X, y: 5,
    "folds given": lambda X, y: PredefinedSplit(FOLD),
    "hold-out": lambda X, y: "holdout",
    "validation rows": lambda X, y: HoldOut(validation=(X[::3], y[::3])),
    "ebic": lambda X, y: "ebic",
    "gcv": lambda X, y: "gcv",
    "size": lambda X, y: Size(3),
}
RULES = {"select": {}, "predict": {"rule": "predict"}}
CASES = [(name, "select") for name in SELECTIONS] + [("folds", "predict")]


@pytest.fixture(scope="module", params=["weak", "strong"])
def problem(request):
    return noisy_problem(request.param, seed=1)


@pytest.fixture(scope="module", params=CASES, ids=" ".join)
def fitted(request, problem):
    name, rule = request.param
    X, y, groups = problem
    model = GroupSparseRegressor(groups, **RULES[rule])
    return SELECTIONS[name], model.set_params(selection=SELECTIONS[name](X, y)).fit(X, y)


def assert_same(found, expected, *, unit=1.0, coef=None, names=None, rtol=1e-8):
    """The same groups, and coefficients that differ by less than rounding: relative to the largest one of the model."""
    wanted = expected.coef_ if coef is None else coef
    names = {} if names is None else names
    assert found.recipe_ == expected.recipe_
    assert [names.get(l, l) for l in found.selected_groups_] == expected.selected_groups_
    np.testing.assert_allclose(found.coef_ / unit, wanted, rtol=0, atol=rtol * np.abs(wanted).max(initial=0))
    assert len(found.candidates_) == len(expected.candidates_)


def refit(fitted, X, y, **options):
    selection, model = fitted
    return clone(model).set_params(selection=selection(X, y), **options).fit(X, y)


@pytest.mark.parametrize("unit", [1e-150, 1e148, -1.0])
def test_units_of_the_response(unit, problem, fitted):
    X, y, _ = problem
    if unit < 0 and fitted[1].selection in (5, "holdout"):
        pytest.skip("rows are dealt along the sorted response")
    found = refit(fitted, X, unit * y)
    assert_same(found, fitted[1], unit=unit)
    assert found.intercept_ == pytest.approx(unit * fitted[1].intercept_, rel=1e-7, abs=1e-8 * abs(unit))


def test_levels(problem, fitted):
    X, y, _ = problem
    found = refit(fitted, X + 7, y + 3)
    assert_same(found, fitted[1])
    np.testing.assert_allclose(found.predict(X + 7), fitted[1].predict(X) + 3, rtol=1e-7)


def test_units_of_the_columns(problem, fitted):
    X, y, _ = problem
    unit = 250 * np.exp(np.random.default_rng(0).uniform(-5, 5, X.shape[1]))
    assert_same(refit(fitted, X * unit, y), fitted[1], unit=1 / unit)


def test_order_of_the_columns(problem, fitted):
    X, y, groups = problem
    if fitted[1].selection == "holdout":
        pytest.skip("rows are held out by a hash of some of their columns")
    # the number of common factors is read from one column per group, so it may change with their order
    expected = refit(fitted, X, y, factors=0)
    order = np.random.default_rng(0).permutation(X.shape[1])
    labels = groups.labels[order]
    again = Groups.from_lists([np.flatnonzero(labels == l).tolist() for l in range(groups.n_groups)])
    found = refit(fitted, X[:, order], y, groups=again, factors=0)
    assert_same(found, expected, coef=expected.coef_[order])


def test_order_and_names_of_the_groups(problem, fitted):
    X, y, groups = problem
    order = np.random.default_rng(0).permutation(groups.n_groups)
    names = [f"group {l}" for l in order]
    again = Groups.from_lists([groups.lists()[l] for l in order], names=names)
    found = refit(fitted, X, y, groups=again)
    assert_same(found, fitted[1], names={f"group {l}": int(l) for l in order})
    np.testing.assert_allclose(found.group_norms_, fitted[1].group_norms_[order], rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("given", [False, True], ids=["folds by the response", "folds given"])
def test_order_of_the_rows(given, rule, problem):
    X, y, groups = problem
    order = np.random.default_rng(0).permutation(len(y))
    first, second = (5, 5) if not given else (PredefinedSplit(FOLD), PredefinedSplit(FOLD[order]))
    expected = GroupSparseRegressor(groups, selection=first, **RULES[rule]).fit(X, y)
    found = GroupSparseRegressor(groups, selection=second, **RULES[rule]).fit(X[order], y[order])
    assert_same(found, expected)


def test_float32_selects_the_same_groups_and_predicts_any_level(problem):
    X, y, groups = problem
    X = X.astype(np.float32)
    expected = GroupSparseRegressor(groups).fit(X.astype(float), y)
    found = GroupSparseRegressor(groups).fit(X, y)
    assert found.coef_.dtype == np.float32
    assert found.selected_groups_ == expected.selected_groups_
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-4 * np.abs(expected.coef_).max())
    # a level that float32 does not hold
    raised = GroupSparseRegressor(groups).fit(X, y + 1e9)
    np.testing.assert_allclose(raised.predict(X) - 1e9, found.predict(X), atol=1e-4 * np.ptp(y))


def test_number_of_threads(problem, fitted):
    X, y, _ = problem
    with threadpool_limits(2):
        assert_same(refit(fitted, X, y), fitted[1])


@pytest.mark.parametrize("selection", ["folds", "ebic", "size"])
def test_rows_of_weight_zero_are_as_if_they_were_not_there(selection, problem):
    X, y, groups = problem
    weight = np.r_[np.ones(70), np.zeros(10)]
    model = GroupSparseRegressor(groups, selection=SELECTIONS[selection](X, y))
    assert_same(clone(model).fit(X, y, sample_weight=weight), clone(model).fit(X[:70], y[:70]))


@pytest.mark.parametrize("rule", RULES)
def test_a_second_fit_is_the_first_one_bit_for_bit(rule, problem):
    X, y, groups = problem
    model = GroupSparseRegressor(groups, **RULES[rule]).fit(X, y)
    first = model.coef_.copy()
    np.testing.assert_array_equal(model.fit(X, y).coef_, first)
