"""Choices without held-out rows: criteria against their formulas and brute force, numbers of groups, discrepancy."""

from itertools import combinations

import numpy as np
import pytest
from scipy.special import comb

from covey import Groups, GroupSparseRegressor
from covey.selection import Discrepancy, InformationCriterion, Size
from estimator_problems import noisy_problem


def small_problem(seed=0, n=60):
    rng = np.random.default_rng(seed)
    groups = Groups.from_sizes([2, 1, 3, 2, 1, 2])
    X = rng.standard_normal((n, 11)) + 0.4 * rng.standard_normal((n, 1))
    y = X[:, :2].sum(axis=1) + X[:, 5] + 0.7 * rng.standard_normal(n)
    return X, y, groups


def rss_of(X, y, groups, which, weight=None):
    columns = [int(j) for l in which for j in groups.lists()[l]]
    root = np.ones(len(y)) if weight is None else np.sqrt(weight)
    A = np.column_stack([np.ones(len(y)), X[:, columns]])
    w = np.linalg.lstsq(root[:, None] * A, root * y, rcond=None)[0]
    return float(np.sum((root * (y - A @ w)) ** 2)), len(columns) + 1


def value(criterion, rss, df, s, L, n):
    if criterion == "gcv":
        return rss / n / (1 - df / n) ** 2
    return n * np.log(rss / n) + np.log(n) * df + (2 * np.log(comb(L, s)) if criterion == "ebic" else 0.0)


@pytest.mark.parametrize("criterion", ["bic", "ebic", "gcv"])
@pytest.mark.parametrize("seed", range(3))
def test_the_table_holds_the_formula_and_the_choice_is_the_best_of_all_subsets(criterion, seed):
    """On a small problem elimination finds what trying all subsets finds."""
    X, y, groups = small_problem(seed)
    model = GroupSparseRegressor(groups, selection=criterion).fit(X, y)
    table, n = model.candidates_, len(y)
    np.testing.assert_allclose(table[criterion], value(criterion, table["rss"], table["df"], table["groups"], 6, n))
    assert table.loc[table["chosen"], criterion].iloc[0] == pytest.approx(table[criterion].min())
    subsets = [which for size in range(7) for which in combinations(range(6), size)]
    scores = [value(criterion, *rss_of(X, y, groups, which), len(which), 6, n) for which in subsets]
    assert tuple(sorted(model.selected_groups_)) == subsets[int(np.argmin(scores))]
    rss, df = rss_of(X, y, groups, model.selected_groups_)
    (chosen,) = table[table["chosen"]].itertuples()
    assert (chosen.rss, chosen.df) == (pytest.approx(rss), df)


def test_groups_that_are_always_in_are_not_among_those_that_ebic_chooses_from():
    X, y, groups = small_problem()
    model = GroupSparseRegressor(groups=groups, selection="ebic", always=[1, 4, 5]).fit(X, y)
    table = model.candidates_
    L, s, n = 3, table["groups"] - 3, len(y)
    expected = [value("ebic", *one, n) for one in zip(table["rss"], table["df"], s, [L] * len(s), strict=True)]
    assert set(s) == {0, 1, 2, 3}
    np.testing.assert_allclose(table["ebic"], expected)


def test_weights_count_rows():
    X, y, groups = small_problem()
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    weighted = GroupSparseRegressor(groups, selection="ebic").fit(X, y, sample_weight=weight)
    repeated = GroupSparseRegressor(groups, selection="ebic").fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.candidates_["ebic"], repeated.candidates_["ebic"])
    assert weighted.selected_groups_ == repeated.selected_groups_


def test_a_smaller_gamma_pays_less_for_the_choice():
    X, y, groups = small_problem()
    tables = {g: GroupSparseRegressor(groups, selection=InformationCriterion("ebic", g)).fit(X, y).candidates_
              for g in (0.0, 0.5, 1.0)}  # fmt: skip
    bic = GroupSparseRegressor(groups, selection="bic").fit(X, y).candidates_
    np.testing.assert_allclose(tables[0.0]["ebic"], bic["bic"])
    np.testing.assert_allclose(tables[0.5]["ebic"], (tables[0.0]["ebic"] + tables[1.0]["ebic"]) / 2)


@pytest.mark.parametrize("noise", ["weak", "strong"])
@pytest.mark.parametrize("k", [0, 1, 3, 10, 20])
def test_a_size_has_exactly_so_many_groups(k, noise):
    X, y, groups = noisy_problem(noise)
    model = GroupSparseRegressor(groups, selection=Size(k)).fit(X, y)
    assert len(model.selected_groups_) == k
    (chosen,) = model.candidates_[model.candidates_["chosen"]].itertuples()
    same = model.candidates_[model.candidates_["groups"] == k]
    assert chosen.rss <= same["rss"].min() * (1 + 1e-6)


def test_a_size_beyond_what_the_rows_allow_takes_what_there_is():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 30)), rng.standard_normal(12)
    with pytest.warns(UserWarning, match=r"selection=Size\(9\) asks for 9 groups, .*: these rows allow no more"):
        model = GroupSparseRegressor(3, selection=Size(9)).fit(X, y)
    assert 3 <= len(model.selected_groups_) <= 4
    with pytest.warns(UserWarning, match="asks for 5 groups, and the model has 2: there are only 2"):
        many = GroupSparseRegressor([[0], [1]], selection=Size(5)).fit(X[:, :2], y)
    assert len(many.selected_groups_) == 2
    # a constant column that is always in leaves room for all others
    Z = np.column_stack([np.ones(12), X[:, :3]])
    assert len(GroupSparseRegressor(selection=Size(3), always=[0]).fit(Z, y).selected_groups_) == 3


@pytest.mark.parametrize("k", [-1, 1.5, "3"])
def test_a_size_is_a_whole_number(k):
    with pytest.raises((ValueError, TypeError), match="number of groups"):
        Size(k)


def test_discrepancy_takes_the_smallest_model_that_leaves_no_more_than_the_noise():
    X, y, groups = small_problem()
    model = GroupSparseRegressor(groups, selection=Discrepancy(sigma=0.7)).fit(X, y)
    table = model.candidates_
    (chosen,) = table[table["chosen"]].itertuples()
    enough = table[table["rss"] / len(y) <= 0.49]
    assert chosen.rss / len(y) <= 0.49
    assert chosen.df == enough["df"].min()
    assert set(model.selected_groups_) >= {0, 2}
    # a noise that no model comes down to: the least residual
    none = GroupSparseRegressor(groups, selection=Discrepancy(sigma=1e-6)).fit(X, y).candidates_
    assert none.loc[none["chosen"], "rss"].iloc[0] == pytest.approx(none["rss"].min())


def test_an_exact_fit_is_found_without_more_groups_than_it_needs():
    X, _, groups = noisy_problem("weak")
    exact = X[:, groups.lists()[2]].sum(axis=1) - 2 * X[:, groups.lists()[7]].sum(axis=1)
    for selection in ("ebic", "bic", "gcv"):
        model = GroupSparseRegressor(groups, selection=selection).fit(X, exact)
        assert set(model.selected_groups_) == {2, 7}
        np.testing.assert_allclose(model.predict(X), exact, atol=1e-6)
