"""Backward elimination against refits of every set that could be left, also where groups share columns."""

import numpy as np
import pytest

from covey.search.elimination import eliminate


def refitted(K, c, kept, starts):
    """The least of ``w'Kw/2 - c'w`` on some groups, and where it is reached."""
    at = np.concatenate([np.arange(starts[l], starts[l + 1]) for l in kept] or [np.empty(0, dtype=int)])
    w = np.zeros_like(c)
    w[at] = np.linalg.lstsq(K[np.ix_(at, at)], c[at], rcond=1e-10)[0]
    return -0.5 * float((c * w).sum()), w


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("n_always", [0, 2])
@pytest.mark.parametrize("design", ["independent", "shared columns", "repeated groups", "nearly repeated"])
@pytest.mark.parametrize("seed", range(3))
def test_every_drop_is_the_cheapest_one(seed, design, n_always, outputs):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, 11)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    k, n = int(starts[-1]), 90
    Z = rng.standard_normal((n, k)) + 0.5 * rng.standard_normal((n, 1))
    if design == "shared columns":
        for l in range(10):
            Z[:, starts[l + 1]] = Z[:, starts[l]]
    if design in ("repeated groups", "nearly repeated"):
        size = min(sizes[3], sizes[4])
        noise = 1e-7 if design == "nearly repeated" else 0.0
        Z[:, starts[4] : starts[4] + size] = Z[:, starts[3] : starts[3] + size] + noise * rng.standard_normal((n, size))
    y = Z @ rng.standard_normal((k, outputs)) + rng.standard_normal((n, outputs))
    K, c = Z.T @ Z / n, Z.T @ y / n
    dropped, W = eliminate(K, c if outputs > 1 else c[:, 0], starts, n_always)
    assert len(dropped) == len(W) - 1 == 11 - n_always
    left = list(range(11))
    for group, w in zip(dropped, W[1:], strict=True):
        base = refitted(K, c, left, starts)[0]
        rises = {l: (refitted(K, c, [o for o in left if o != l], starts)[0] - base) / sizes[l] for l in left[n_always:]}
        assert rises[group] <= min(rises.values()) * (1 + 1e-3) + 1e-5
        left.remove(group)
        own = w if outputs > 1 else w[:, None]
        np.testing.assert_allclose(Z @ own, Z @ refitted(K, c, left, starts)[1], atol=1e-5 * np.abs(y).std())
    assert left == list(range(n_always))
