"""The active set against plain refits, also after going back, and with columns that depend on others."""

from itertools import combinations

import numpy as np
import pytest
from scipy.linalg.lapack import dtrtrs
from scipy.special import expit

import covey
from covey.losses import Binomial, Cox, Poisson, Squared
from covey.search import active as active_set
from covey.search.active import ActiveSet
from covey.search.curvature import Curvature
from covey.search.paths import Paths
from covey.search.table import Table
from search.posing import LOSSES, draw, in_folds, on_all_rows


@pytest.fixture(autouse=True)
def rows_of_x(monkeypatch):
    """Tables with the rows of X; `test_table` compares compressed ones with them."""
    monkeypatch.setattr("covey.search.table.ROWS_PER_COLUMN", np.inf)


def newton(name, A, y, weight):
    """The minimiser by plain Newton steps; least squares in closed form. The predictor of all rows."""
    if name in ("squared", "several"):
        root = np.sqrt(weight)[:, None]
        return A @ np.linalg.lstsq(root * A, root * y.reshape(len(y), -1), rcond=1e-9)[0]
    mean = expit if name == "binomial" else np.exp
    coef = np.zeros(A.shape[1])
    for _ in range(60):
        mu = mean(A @ coef)
        H = A.T @ (A * (weight * (mu * (1 - mu) if name == "binomial" else mu))[:, None])
        coef = coef + np.linalg.lstsq(H, A.T @ (weight * (y - mu)), rcond=1e-10)[0]
    return (A @ coef)[:, None]


def expected_predictor(name, X, y, lists, groups, weight, intercept=True):
    columns = [j for l in groups for j in lists[l]]
    A = np.column_stack([np.ones(len(y)), X[:, columns]]) if intercept else X[:, columns]
    return newton(name, A, y, weight)


def in_user_units(posed, eta):
    return posed.level + (eta @ posed.response.contrasts) * posed.scale


def assert_models(active, name, X, y, lists, weight, order, *, intercept=True):
    """Every model of an active set, against refits on its groups."""
    posed = active.table.posed
    assert active.groups == list(order)
    found = active.predictors(np.arange(len(y)), 0, len(order))
    for m in range(len(order) + 1):
        expected = expected_predictor(name, X, y, lists, order[:m], weight, intercept)
        np.testing.assert_allclose(in_user_units(posed, found[:, :, m]), expected, atol=2e-6)
    np.testing.assert_allclose(active.eta, found[weight > 0, :, -1], atol=1e-12)


ORDER = [4, 1, 6, 0, 9]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", LOSSES)
def test_refits_going_back_and_other_groups(name, intercept):
    X, y, lists = draw(name)
    posed = in_folds(X, y, lists, loss=LOSSES[name], fit_intercept=intercept)
    table, split = Table(posed), posed.splits[0]
    weight = np.where(np.isin(posed.labels, split.train), 1.0, 0.0)
    active = ActiveSet(table, table.on_split(split)[0], rough=False)
    for group in ORDER:
        active.refit(group)
    assert_models(active, name, X, y, lists, weight, ORDER, intercept=intercept)
    for back, then in ((3, [2, 5]), (1, [7]), (0, [8, 3])):
        active.truncate(back)
        order = [*active.groups, *then]
        for group in then:
            active.refit(group)
        assert_models(active, name, X, y, lists, weight, order, intercept=intercept)
    score = active.score()
    assert not score[weight == 0].any()
    assert np.abs(active.A.T @ score[weight > 0]).max() < 1e-8


@pytest.mark.parametrize("name", LOSSES)
def test_dependent_columns_have_no_coefficient_and_change_no_prediction(name):
    """A group that repeats awake ones brings no column, and one that shares a direction brings the others."""
    X, y, lists = draw(name)
    X = X.copy()
    X[:, lists[7]] = X[:, lists[2]][:, :2]
    X[:, lists[3]] = np.column_stack([X[:, lists[0][0]] + X[:, lists[2][1]], X[:, lists[3][1]]])
    posed = on_all_rows(X, y, lists, loss=LOSSES[name])
    table, order = Table(posed), [0, 2, 7, 3]
    active = ActiveSet(table, table.response, rough=False)
    for group in order:
        active.refit(group)
    ranks = posed.ranks[order]
    assert np.diff(active.widths).tolist() == ranks.tolist()
    assert np.diff(active.ends).tolist() == [ranks[0], ranks[1], 0, 1]
    assert active.deficient
    left_out = np.setdiff1d(np.arange(active.A.shape[1]), active.basis)
    assert not active.models[-1][left_out].any()
    assert_models(active, name, X, y, lists, np.ones(len(y)), order)
    active.truncate(2)
    assert not active.deficient


def test_a_group_without_anything_on_the_training_rows(monkeypatch):
    """No column is left to combine others from; LAPACK writes a complaint to the terminal if it is asked about none."""

    def solve(R, right, **options):
        assert len(R)
        return dtrtrs(R, right, **options)

    monkeypatch.setattr(active_set, "dtrtrs", solve)
    X, y, lists = draw("squared")
    posed = in_folds(X, y, lists, fit_intercept=False)
    X[np.isin(posed.labels, posed.splits[0].train)[:, None] & np.isin(np.arange(X.shape[1]), lists[2])] = 0.0
    posed = in_folds(X, y, lists, fit_intercept=False)
    table = Table(posed)
    active = ActiveSet(table, table.on_split(posed.splits[0])[0], rough=False)
    active.refit(2)
    assert active.deficient
    assert not active.predictors(np.arange(len(y)), 0, 1).any()


@pytest.mark.parametrize("loss", [Squared(), Binomial()], ids=lambda loss: loss.name)
def test_models_without_common_factors_are_refits_on_the_groups_alone(loss):
    name = "squared" if loss.quadratic else "binomial"
    X, y, lists = draw(name)
    posed = on_all_rows(X, y, lists, loss=loss, factors=2)
    table = Table(posed)
    active = ActiveSet(table, table.response, rough=False)
    for group in ORDER:
        active.refit(group)
    assert active.n_first == 1 + table.extras.shape[1] == 3
    assert_models(active.without_factors(), name, X, y, lists, np.ones(len(y)), ORDER)


@pytest.mark.parametrize("name", ["squared", "binomial"])
def test_refits_on_every_pair_of_groups_that_a_path_may_start_from(name):
    X, y, lists = draw(name)
    table = Table(on_all_rows(X, y, lists, loss=LOSSES[name]))
    for pair in combinations(range(5), 2):
        expected = expected_predictor(name, X, y, lists, pair, np.ones(len(y)))
        np.testing.assert_allclose(in_user_units(table.posed, Paths(table, [pair]).active(0).eta), expected, atol=1e-6)


# ------------------------------------------------------------------ second derivatives kept between fits


@pytest.mark.parametrize("loss", [Binomial(), Poisson()], ids=lambda loss: loss.name)
def test_a_second_derivative_grows_and_shrinks_with_its_columns(loss):
    X, y, lists = draw(loss.name)
    response = on_all_rows(X, y, lists, loss=loss).response
    A = np.column_stack([np.ones(90), X[:, :8]])
    eta = 0.3 * X[:, :1]
    kept = Curvature()
    kept.extend(A)
    assert not kept.known
    kept.renew(response, A[:, :4], eta)
    np.testing.assert_allclose(kept.K, response.gram(eta, A[:, :4]), atol=1e-14)
    for k in (7, 9):
        kept.extend(A[:, :k])
        np.testing.assert_allclose(kept.K, response.gram(eta, A[:, :k]), atol=1e-14)
    kept.truncate(5)
    np.testing.assert_allclose(kept.K, response.gram(eta, A[:, :5]), atol=1e-14)
    other = np.column_stack([A[:, :5], X[:, 10:12]])  # other columns than before
    kept.extend(other)
    np.testing.assert_allclose(kept.K, response.gram(eta, other), atol=1e-14)


def test_a_second_derivative_that_couples_rows_is_computed_again():
    rng = np.random.default_rng(0)
    X, _, lists = draw("squared")
    loss = Cox()
    y = loss.check(covey.survival(rng.exponential(size=90), rng.random(90) < 0.7))
    response = on_all_rows(X, y, lists, loss=loss).response
    kept = Curvature()
    kept.renew(response, X[:, :3], 0.1 * X[:, :1])
    np.testing.assert_allclose(kept.K, response.gram(0.1 * X[:, :1], X[:, :3]), atol=1e-14)
    kept.extend(X[:, :5])
    assert not kept.known
