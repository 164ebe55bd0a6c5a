"""Outliers, few or a fifth of the rows, small or huge, do not change what the Huber loss finds."""

import numpy as np
import pytest
from sklearn.linear_model import HuberRegressor
from sklearn.model_selection import PredefinedSplit

from covey import GroupSparseRegressor
from covey.losses import Huber
from covey.selection import Folds, Size
from loss_problems import grouped_problem

FEW = Folds(3, deals=1)


def test_huber_coefficients_are_those_of_scikit_learn_at_its_scale():
    X, y, groups = grouped_problem("huber", n=200)
    first = GroupSparseRegressor(groups, loss="huber", selection=Size(3)).fit(X, y)
    used = np.flatnonzero(first.coef_)
    twin = HuberRegressor(epsilon=1.345, alpha=0, tol=1e-10, max_iter=10_000).fit(X[:, used], y)
    model = GroupSparseRegressor(groups, loss=Huber(1.345 * twin.scale_), selection=Size(3)).fit(X, y)
    np.testing.assert_allclose(model.coef_[used], twin.coef_, atol=1e-4)
    np.testing.assert_allclose(first.coef_[used], twin.coef_, atol=0.1)


@pytest.mark.parametrize("wild", [1e4, 1e100])
def test_one_wild_value_of_any_size_does_not_hide_a_signal(wild):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 12))
    y = X[:, 0] + 0.1 * rng.standard_normal(60)
    clean = GroupSparseRegressor(loss="huber", selection=FEW).fit(X[1:], y[1:])
    y[0] = wild
    model = GroupSparseRegressor(loss="huber", selection=FEW).fit(X, y)
    assert model.selected_groups_ == clean.selected_groups_ == [0]
    np.testing.assert_allclose(model.coef_, clean.coef_, atol=0.02)
    assert model.loss_.threshold == pytest.approx(clean.loss_.threshold, rel=0.15)
    assert model.score(X, y) > 0.5
    assert model.candidates_["deviance"].min() < 0.02


@pytest.mark.parametrize("selection", [FEW, "ebic"], ids=["folds", "ebic"])
@pytest.mark.parametrize(
    ("share", "wild", "sides"),
    [
        (0.01, 1e3, [1]),
        (0.05, 1e12, [1]),
        (0.1, 100.0, [-1, 1]),
        (0.2, 100.0, [1]),
        (0.2, 1e3, [1]),
        (0.2, 1e9, [-1, 1]),
    ],
)
def test_outliers_do_not_change_what_huber_finds(share, wild, sides, selection):
    rng = np.random.default_rng(3)
    n, k = 120, max(1, round(share * 120))
    X = np.sqrt(0.5) * (rng.standard_normal((n, 60)) + rng.standard_normal((n, 1)))
    w = np.zeros(60)
    w[[3, 4, 5, 30, 31, 32, 57, 58, 59]] = [1, -1, 0.5, 1, 1, 1, -1, 0.5, 1]
    y = 3 + X @ w + 0.3 * rng.standard_normal(n)
    y[rng.choice(n, k, replace=False)] += wild * rng.choice(sides, k)
    model = GroupSparseRegressor(3, loss="huber", selection=selection).fit(X, y)
    assert set(model.selected_groups_) >= {1, 10, 19}
    assert len(model.selected_groups_) <= 4
    np.testing.assert_allclose(model.coef_, w, atol=0.25)
    assert model.intercept_ == pytest.approx(3, abs=0.15)
    assert 0.6 * 0.3 < model.loss_.threshold / 1.345 < 1.4 * 0.3


def test_a_huber_fit_with_outliers_does_not_depend_on_units():
    X, y, groups = grouped_problem("huber", n=100)
    y[:10] = 1e5
    plain, scaled = (
        GroupSparseRegressor(groups, loss="huber", selection=FEW).fit(X, units * y) for units in (1.0, 1e-40)
    )
    assert plain.selected_groups_ == scaled.selected_groups_
    np.testing.assert_allclose(scaled.coef_, 1e-40 * plain.coef_, rtol=1e-6)


def test_outliers_that_are_all_rows_of_a_fold():
    X, y, groups = grouped_problem("huber", n=60)
    y[:2] = 1e6
    found = GroupSparseRegressor(groups, loss="huber", selection=FEW).fit(X[2:], y[2:])
    folds = PredefinedSplit(np.r_[0, 0, np.arange(58) % 2 + 1])
    model = GroupSparseRegressor(groups, loss="huber", selection=folds).fit(X, y)
    assert set(found.selected_groups_) <= set(model.selected_groups_)
    np.testing.assert_allclose(model.coef_, found.coef_, atol=0.3)


def test_large_responses_that_columns_explain_are_no_outliers():
    rng = np.random.default_rng(0)
    X = np.exp(1.5 * rng.standard_normal((150, 20)))
    y = 2 * X[:, 0] - X[:, 1] + rng.standard_normal(150)
    y[:15] = 1e6
    model = GroupSparseRegressor(loss="huber", selection=FEW).fit(X, y)
    assert set(model.selected_groups_) == {0, 1}
    np.testing.assert_allclose(model.coef_[:2], [2, -1], atol=0.05)


def test_outliers_with_a_given_threshold_an_offset_and_weights():
    X, y, groups = grouped_problem("huber", n=150)
    offset, weight = np.linspace(-5, 5, 150), np.repeat([1.0, 2.0], 75)
    clean = GroupSparseRegressor(groups, loss=Huber(0.5), selection=FEW).fit(X[12:], y[12:], weight[12:], offset[12:])
    y[:12] = -1e7
    model = GroupSparseRegressor(groups, loss=Huber(0.5), selection=FEW).fit(X, y, weight, offset)
    assert model.loss_.threshold == 0.5
    assert set(model.selected_groups_) == set(clean.selected_groups_)
    np.testing.assert_allclose(model.coef_, clean.coef_, atol=0.15)
