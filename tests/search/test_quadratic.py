"""The quadratic model of a loss around a fit: its minimisers are direct solves, and it has the loss's derivatives."""

import numpy as np
import pytest

from covey.losses import Binomial, MultiSquared, Squared
from covey.search.active import ActiveSet
from covey.search.constraints.cone import Rows
from covey.search.constraints.nested import ridges_within
from covey.search.quadratic import Quadratic
from covey.search.table import Table
from search.limit_reference import mixed_problem
from search.posing import on_all_rows

SIZES = (1, 3, 2, 2, 1, 4)
STARTS = np.concatenate([[0], np.cumsum(SIZES)])


def drawn(seed=1, outputs=2, n=30):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, sum(SIZES)))
    K, c = A.T @ A / n, A.T @ rng.standard_normal((n, outputs)) / n
    return Quadratic(K, c, STARTS, rng.standard_normal(len(c)), np.ones(outputs), K.diagonal())


@pytest.mark.parametrize("lengths", [[6, 4, 1], [3, 3], [2, 5], [0], []], ids=str)
def test_ridges_on_nested_sets_are_direct_solves(lengths, capfd):
    quadratic = drawn()
    k = len(quadratic.c)
    M = np.diag(np.linspace(0.5, 2, k))
    order = np.random.default_rng(0).permutation(k)
    W = quadratic.ridges(M, order, np.array(lengths, dtype=int), [0.1, 3.0])
    assert len(W) == 2 * len(lengths)
    for row, (length, penalty) in enumerate([(length, penalty) for length in lengths for penalty in (0.1, 3.0)]):
        expected, at = np.zeros((2, k)), order[:length]
        if length:
            S = quadratic.K[np.ix_(at, at)] + penalty * M[np.ix_(at, at)]
            expected[:, at] = np.linalg.solve(S, quadratic.c[at]).T
        np.testing.assert_allclose(W[row], expected, atol=1e-12)
    assert capfd.readouterr().out == ""  # LAPACK prints its complaints


@pytest.mark.parametrize("seed", range(20))
def test_dependent_columns_without_a_penalty_have_the_least_norm_whatever_round_off_error_leaves(seed):
    """They do not depend on each other in rows that are held out, where any other solution may predict anything."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((9, 6))
    A[:, 2] = A[:, :2] @ rng.standard_normal(2)
    K, c, M = A.T @ A, A.T @ rng.standard_normal((9, 2)), np.diag([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    quadratic = Quadratic(K, c, np.array([0, 3, 6]), np.zeros(6), np.zeros(2), (A * A).sum(axis=0))
    (W,) = quadratic.ridges(M, np.arange(6), np.array([6]), [0.3])
    np.testing.assert_allclose(W.T, np.linalg.lstsq(K + 0.3 * M, c, rcond=1e-9)[0], atol=1e-6)


@pytest.mark.parametrize("left", [-1e-17, 0.0, 1e-17])
def test_a_constant_column_without_a_penalty_has_no_coefficient(left):
    """Once the intercept is projected out, only round-off error is left of it."""
    K, c = np.diag([left, 1.0, 2.0]), np.array([[1e-17], [1.0], [1.0]])
    quadratic = Quadratic(K, c, np.array([0, 1, 3]), np.zeros(3), np.zeros(1), np.ones(3))
    (W,) = quadratic.ridges(np.diag([0.0, 1.0, 1.0]), np.arange(3), np.array([3]), [1.0])
    np.testing.assert_allclose(W, [[0.0, 1 / 2, 1 / 3]], atol=1e-12)
    W, ranks = quadratic.least_norm([[0], [0, 1]])
    np.testing.assert_allclose(W[:, 0], [[0.0, 0.0, 0.0], [0.0, 1.0, 1 / 2]], atol=1e-12)
    assert ranks == [0, 2]


@pytest.mark.parametrize("within", [False, True])
def test_ridges_on_a_path_without_columns(within):
    """Constraints may keep every group of a fold out."""
    none = np.zeros((0, 0))
    quadratic = Quadratic(none, np.zeros((0, 1)), np.array([0]), np.zeros(0), np.zeros(1), np.zeros(0))
    if within:
        W = ridges_within(quadratic, none, [], [0], [0.1, 1.0], Rows(none, np.zeros(0)))
    else:
        W = quadratic.ridges(none, np.empty(0, dtype=np.intp), np.array([0]), [0.1, 1.0])
    assert W.shape == (2, 1, 0)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", [Squared(), MultiSquared(), Binomial()], ids=lambda loss: loss.name)
def test_around_a_fit_it_is_the_loss_minimised_over_the_intercept(loss, intercept):
    """Differences of the loss, with the best intercept for each W, near the minimiser."""
    X, y, lists = mixed_problem(80)
    y = {"binomial": (y > y.mean()).astype(float), "squared": y}.get(loss.name, np.column_stack([y, X[:, 0]]))
    X = 0.2 * X  # classes overlap
    table = Table(on_all_rows(X, y, lists, loss=loss, fit_intercept=intercept))
    active = ActiveSet(table, table.response, rough=False)
    active.refit(7, 2)
    coef = active.models[-1]
    quadratic = Quadratic.around(active, 2, coef)
    i = int(intercept)
    w, step = coef[i:], 1e-3 * np.random.default_rng(0).standard_normal(coef[i:].shape)
    np.testing.assert_allclose(quadratic.K @ w, quadratic.c, atol=1e-12)
    np.testing.assert_allclose(quadratic.levels(w.T[None])[0], coef[0] if i else np.zeros(coef.shape[1]), atol=1e-12)

    def value(W):
        level = quadratic.levels(W.T[None])[0]
        model = np.vstack([level[None, :], W]) if i else W
        return table.response.total(active.predictor_of(model))

    def predicted(W):
        return 0.5 * (W * (quadratic.K @ W)).sum() - (quadratic.c * W).sum()

    rise = value(w + step) - value(w)
    assert predicted(w + step) - predicted(w) == pytest.approx(rise, rel=1e-2 if loss.name == "binomial" else 1e-6)
