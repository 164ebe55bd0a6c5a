"""Kernels of the engine alone, against their formulas."""

import numpy as np
import pytest

from covey.network.awake import largest_eigenvalue
from covey.network.kernels import curvature_of, gains, gram_times, step_groups


@pytest.mark.parametrize("n", [0, 1, 3, 4, 7, 30])
def test_a_product_with_the_leading_block(n):
    rng = np.random.default_rng(n)
    K, w = rng.standard_normal((32, 32)), rng.standard_normal(32)
    out = np.full(32, np.nan)
    gram_times(K, n, w, out)
    np.testing.assert_allclose(out[:n], K[:n, :n] @ w[:n], rtol=1e-12, atol=1e-13)
    assert np.isnan(out[n:]).all()


# no magnitude falls below 1e-40
@pytest.mark.parametrize(
    ("depth", "scale"),
    [(2, 1e-75), (2, 1.0), (2, 1e20), (2, 1e110), (2, 1e150), (3, 1e-115), (3, 1e-20), (3, 1.0), (3, 1e110)],
)
@pytest.mark.parametrize("eta", [0.0, 0.3])
def test_a_fast_step_is_its_formula(depth, scale, eta):
    """``v <- (w + s g) / norm``, ``u <- u (1 + N gamma u^(N-2) v'g)``, whatever the size of the coefficients."""
    rng = np.random.default_rng(0)
    starts = np.array([0, 1, 4, 4, 6])
    norms = scale * rng.uniform(0.5, 2.0, 4)
    u = norms ** (1 / depth)
    directions = [part / np.linalg.norm(part) for part in (rng.standard_normal(k) for k in (1, 3, 2))]
    v = np.concatenate(directions)
    w = np.concatenate([norms[a] * part for a, part in zip((0, 1, 3), directions, strict=True)])
    g = scale * rng.standard_normal(6)
    speeds = rng.uniform(0.5, 2.0, 4)
    gamma, large = 0.01 / (scale * scale ** ((depth - 2) / depth)), 0.7
    expected_u, expected_w = u.copy(), w.copy()
    changes = []
    for a in (0, 1, 3):
        own = slice(starts[a], starts[a + 1])
        s = large if eta == 0 else min(eta * (norms[a] / scale) ** 2, large)
        target = (w[own] + s * g[own]) / scale
        direction = target / np.linalg.norm(target)
        rho = direction @ g[own]
        change = depth * gamma * speeds[a] * rho * u[a] ** (depth - 2)
        changes.append(change)
        expected_u[a] *= 1 + change
        expected_w[own] = expected_u[a] ** depth * direction
    most, _ = step_groups(starts, 4, u, v, w, g, speeds, gamma, large, eta / scale**2, depth, 1.0)
    np.testing.assert_allclose(u, expected_u, rtol=1e-12)
    np.testing.assert_allclose(w, expected_w, rtol=1e-12)
    assert most == pytest.approx(max(map(abs, changes)), rel=1e-12)


def test_a_group_without_a_direction_stays():
    u, v, w = np.ones(1), np.ones(2), np.zeros(2)
    change, drift = step_groups(np.array([0, 2]), 1, u, v, w, np.zeros(2), np.ones(1), 0.1, 1.0, 0.0, 2, 1e-3)
    assert (change, drift, u[0]) == (0.0, 0.0, 1.0)


def test_the_curvature_is_that_of_the_groups_that_have_entered():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 9))
    K = np.full((12, 12), np.nan)
    K[:9, :9] = A.T @ A / 40
    starts, entered_at = np.zeros(13, dtype=np.intp), np.array([3, -1, 7, 9, 0])
    starts[1:5] = [2, 5, 6, 9]
    scratch = np.empty(12), np.empty(12), np.empty(12, dtype=np.intp), np.empty((12, 12))
    for t, own in ((2, []), (7, [0, 1, 5]), (9, [0, 1, 5, 6, 7, 8])):
        vector = np.full(12, 0.3)
        value = curvature_of(K, starts, entered_at, 4, t, vector, *scratch)
        if not own:
            assert value == -1.0
            continue
        block = K[np.ix_(own, own)]
        assert value == pytest.approx(np.linalg.eigvalsh(block)[-1], rel=0.02)
        reference, end = largest_eigenvalue(block.__matmul__, np.full(len(own), 0.3))
        assert value == pytest.approx(reference, rel=1e-12)
        np.testing.assert_allclose(vector[own], end, rtol=1e-10)
        rest = np.setdiff1d(np.arange(12), own)
        np.testing.assert_array_equal(vector[rest], 0.3)


def test_growth_between_nodes_is_exact_for_a_parabola():
    """A norm that is a parabola along the way: its mean lies a third of the way from the middle's to the ends'."""
    w = np.linspace(0, 1, 10_001)
    for share, along in ((0.5, w), (1 / 3, w**2)):  # at even speed, and speeding up
        norm = 2.0 + 3.0 * (along - 0.3) ** 2
        left, right, middle = (2.0 + 3.0 * (at - 0.3) ** 2 for at in (0.0, 1.0, share))
        rate, steps = 1e-9, 1000
        gain, doubt = np.empty(2), np.empty(2)
        asleep = np.array([True, False])
        arrays = [np.full(2, value) for value in (left, right, middle)]
        worst = gains(*arrays, share, steps, np.full(2, rate), 3, 1, asleep, False, gain, doubt)
        low, ends = middle * rate * steps, (left * (1 - share) + right * share) * rate * steps
        assert gain[0] == pytest.approx(low + (ends - low) / 3, rel=1e-12)
        assert doubt[0] == pytest.approx((ends - low) / 3, rel=1e-12)
        assert worst == pytest.approx(doubt[0] / (1.1 * gain[0]), rel=1e-9)
        assert (gain[1], doubt[1]) == (0.0, 0.0)
        if share == 0.5:
            # the mean over the way is exact
            assert gain[0] == pytest.approx(np.mean((norm[1:] + norm[:-1]) / 2) * rate * steps, rel=1e-6)
