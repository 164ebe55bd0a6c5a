"""Minimisers under linear inequalities, against certificates and other solvers."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear, nnls

from covey.search.constraints.cone import Cone, Constraint, Rows
from covey.search.constraints.multipliers import multipliers
from covey.search.constraints.nested import eliminate_within, ridges_within
from covey.search.quadratic import Quadratic


def draw(seed, n_rows=14):
    """A quadratic function and inequalities that are kept at zero, some of them twice or as sums of others."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 10))
    A = rng.standard_normal((k + 4, k))
    G = rng.standard_normal((n_rows, k))
    if seed % 3 == 0:
        G = np.eye(k)[rng.integers(0, k, n_rows)] * rng.choice([-1.0, 1.0], n_rows)[:, None]
    if seed % 2 == 0:
        G = np.vstack([G, G[:2], G[:1] + G[-1:]])
    G = G[np.linalg.norm(G, axis=1) > 0]
    h = -rng.uniform(0, 1, len(G)) * (rng.random(len(G)) < 0.5)
    return A.T @ A, 3 * rng.standard_normal((k, 1)), Rows(G, h)


@pytest.mark.parametrize("seed", range(60))
def test_a_step_has_the_certificate_of_a_minimum(seed):
    K, c, rows = draw(seed)
    step, left = rows.step(K, np.zeros_like(c), c)
    slack = rows.G @ step[:, 0] - rows.h
    assert slack.min() >= -1e-13 * max(1.0, np.abs(step).max())
    np.testing.assert_allclose(K @ step, left, atol=1e-9)
    # what holds the gradient back are nonnegative multiples of inequalities at their limit
    at_limit = slack <= 1e-9
    force = (left - c)[:, 0]
    assert nnls(rows.G[at_limit].T, force)[1] <= 1e-8 if at_limit.any() else np.abs(force).max() == 0


@pytest.mark.parametrize("seed", range(20))
def test_multipliers_are_those_of_nonnegative_least_squares_whatever_is_likely(seed):
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((12, 8)), rng.standard_normal(12)
    for likely in (np.zeros(8, dtype=bool), np.ones(8, dtype=bool), rng.random(8) < 0.5):
        found = multipliers(A.T @ A, -A.T @ b, np.zeros(8), likely)
        np.testing.assert_allclose(found, nnls(A, b)[0], atol=1e-10)


@pytest.mark.parametrize("seed", range(6))
def test_likely_rows_that_depend_on_each_other_are_not_all_taken(seed):
    rng = np.random.default_rng(seed)
    A = np.exp(-np.square(np.linspace(0, 1, 9)[:, None] - np.linspace(0, 1, 26)))  # 26 rows in nine dimensions
    b = rng.standard_normal(9) + 1
    found = multipliers(A.T @ A, -A.T @ b, np.full(26, 1e-12), np.ones(26, dtype=bool))
    assert found.min() >= 0
    expected = nnls(A, b)[1]
    np.testing.assert_allclose(np.linalg.norm(A @ found - b), expected, rtol=1e-6)


def test_ill_conditioned_functions_keep_the_inequalities():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20, 6))
    A[:, 5] = A[:, 0] + 1e-6 * A[:, 5]
    rows = Rows(np.eye(6), np.zeros(6))
    step, _ = rows.step(A.T @ A, np.zeros((6, 1)), A.T @ rng.standard_normal((20, 1)) * 1e3)
    assert step.min() >= -1e-13


def test_models_that_break_inequalities_are_moved_to_the_nearest_that_do_not():
    rows = Rows(np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]]), np.zeros(2))
    W = np.array([[3.0, 2.0, 1.0], [1.0, 3.0, 0.0], [2.0, 1.0, 1.0 + 1e-9]])
    kept = rows.kept(W.copy())
    assert kept[0].tolist() == W[0].tolist()
    np.testing.assert_allclose(kept[1], [2.0, 2.0, 0.0])
    assert (kept @ rows.G.T).min() >= -1e-15


def test_elimination_keeps_inequalities_on_columns_of_very_different_lengths():
    rng = np.random.default_rng(0)
    A = (rng.standard_normal((60, 30)) + 3 * rng.standard_normal((60, 1))) * 10.0 ** rng.uniform(-4, 4, 30)
    y = rng.standard_normal((60, 1)) + A[:, :1] / np.abs(A[:, :1]).std()
    falling = np.delete(np.eye(30)[:-1] - np.eye(30)[1:], np.arange(4, 29, 5), axis=0) / np.sqrt(2)
    rows = Rows(np.vstack([falling, np.eye(30)]), np.zeros(54))
    W = eliminate_within((A.T @ A, A.T @ y, np.arange(0, 31, 5), ()), rows)[1][:, :, 0]
    slack, size = W @ rows.G.T, np.abs(W) @ np.abs(rows.G).T
    assert (slack + 1e-12 * size).min() >= 0


def nested(seed):
    rng = np.random.default_rng(seed)
    sizes = [1, 3, 2, 1, 2, 1]
    starts = np.cumsum([0, *sizes])
    A, k = rng.standard_normal((30, starts[-1])), starts[-1]
    K, c = A.T @ A, A.T @ rng.standard_normal((30, 1)) * 2
    rows = Rows(np.vstack([np.eye(k)[1:], rng.standard_normal((2, k))]), np.append(np.zeros(k + 1), -0.1)[: k + 1])
    return K, c, starts, rows


@pytest.mark.parametrize("seed", range(8))
def test_elimination_leaves_the_minimiser_of_every_set(seed):
    K, c, starts, rows = nested(seed)
    dropped, W = eliminate_within((K, c, starts, ()), rows, n_always=1)
    assert sorted(dropped) == [1, 2, 3, 4, 5]
    left = np.ones(len(c), dtype=bool)
    for step, w in enumerate(W):
        if step:
            left[starts[dropped[step - 1]] : starts[dropped[step - 1] + 1]] = False
        expected = rows.on(np.flatnonzero(left)).step(K[np.ix_(left, left)], 0 * c[left], c[left])[0]
        np.testing.assert_allclose(w[left], expected, atol=1e-7)
        assert not w[~left].any()
        assert (rows.G @ w[:, 0] - rows.h).min() >= -1e-13


@pytest.mark.parametrize("seed", range(4))
def test_ridges_are_the_minimisers_of_every_set(seed):
    K, c, starts, rows = nested(seed)
    quadratic = Quadratic(K, c, starts, np.zeros(len(c)), np.zeros(1), K.diagonal())
    dropped, M = [5, 1, 3], np.diag(np.arange(1.0, len(c) + 1))
    W = ridges_within(quadratic, M, dropped, [0, 2], [0.1, 3.0], rows)
    for w, (n_dropped, ridge) in zip(W[:, 0], [(0, 0.1), (0, 3.0), (2, 0.1), (2, 3.0)], strict=True):
        left = np.ones(len(c), dtype=bool)
        for group in dropped[:n_dropped]:
            left[starts[group] : starts[group + 1]] = False
        S = (K + ridge * M)[np.ix_(left, left)]
        np.testing.assert_allclose(
            w[left], rows.on(np.flatnonzero(left)).step(S, 0 * c[left], c[left])[0][:, 0], atol=1e-7
        )


@pytest.mark.parametrize("seed", range(4))
def test_a_group_that_is_held_at_zero_is_zero_without_round_off_error(seed):
    rng = np.random.default_rng(seed)
    A, k = rng.standard_normal((40, 7)), 7
    turned = np.hstack([np.linalg.qr(rng.standard_normal((4, 4)))[0], np.zeros((4, 3))])
    K, starts = A.T @ A, np.array([0, 4, 7])
    c = K[:, 4:] @ [[1.0], [2.0], [3.0]]
    c[:4] -= turned[:, :4].sum(axis=0)[:, None]  # the gradient that all four inequalities hold back
    rows = Rows(turned, np.zeros(4))
    quadratic = Quadratic(K, c, starts, np.zeros(k), np.zeros(1), K.diagonal())
    found = [
        rows.step(K, np.zeros_like(c), c)[0][:, 0],
        eliminate_within((K, c, starts, ()), rows)[1][0, :, 0],
        ridges_within(quadratic, np.eye(k), [], [0], [1e-9], rows)[0, 0],
    ]
    for w in found:
        assert not w[:4].any()
        np.testing.assert_allclose(w[4:], [1.0, 2.0, 3.0], atol=1e-6)


class Working:
    """Two groups, of two columns and one, in working coordinates that are rotated."""

    def __init__(self):
        angle = 0.3
        T = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        self.factors, self.factor_starts = np.append(T.ravel(), -2.0), np.array([0, 4, 5])
        self.ranks, self.T = np.array([2, 1]), T
        self.layout = type(
            "Layout", (), {"sizes": np.array([2, 1]), "starts": np.array([0, 2, 3]), "members": np.arange(3)}
        )


def test_gradients_of_sleeping_groups_are_projected_on_their_cones():
    working = Working()
    signs = [Constraint((0,), np.eye(2), np.zeros(2)), Constraint((1,), -np.eye(1), np.zeros(1))]
    cone = Cone(signs, working, np.array([1.5]))
    products = np.random.default_rng(0).standard_normal((3, 20))
    projected = products.copy()
    cone.project(projected, np.array([0, 1]), np.array([0, 2, 3]))
    for before, after in zip(products.T, projected.T, strict=True):
        nearest = lsq_linear(working.T.T, before[:2], bounds=(0, np.inf), tol=1e-14).x
        np.testing.assert_allclose(after[:2], working.T.T @ nearest, atol=1e-7)
        assert after[2] == max(before[2], 0.0)  # the working column points the other way


def test_bounds_away_from_zero_do_not_hold_a_sleeping_group_back():
    cone = Cone([Constraint((1,), np.eye(1), np.array([-1.0]))], Working(), np.ones(1))
    products = np.array([[1.0], [1.0], [5.0]])
    cone.project(products, np.array([0, 1]), np.array([0, 2, 3]))
    assert products[2, 0] == 5.0


def test_shapes_are_kept_to_the_last_digit():
    working = Working()
    working.factors, working.factor_starts, working.ranks = np.eye(4).ravel(), np.array([0, 16]), np.array([4])
    working.layout = type("Layout", (), {"sizes": np.array([4]), "starts": np.array([0, 4]), "members": np.arange(4)})
    rises = np.diff(np.eye(4), axis=0)
    A = np.vstack([-rises, np.diff(rises, axis=0)])
    cone = Cone([Constraint((0,), A, np.zeros(5))], working, np.ones(1))
    for limit in (np.full(4, 1e4), 1e4 * np.arange(4.0)[::-1]):
        coef = limit + 1e-9 * np.random.default_rng(0).standard_normal((50, 1, 4))
        assert (cone.snapped([0], coef) @ A.T).min() >= 0
