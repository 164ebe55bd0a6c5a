"""Backward elimination against refits of every set that could be left, also where groups share columns."""

import numpy as np
import pytest

from covey.search.elimination import eliminate, eliminate_all


def refitted(K, c, kept, starts):
    """The least of ``w'Kw/2 - c'w`` on some groups, and where it is reached."""
    at = np.concatenate([np.arange(starts[l], starts[l + 1]) for l in kept] or [np.empty(0, dtype=int)])
    w = np.zeros_like(c)
    w[at] = np.linalg.lstsq(K[np.ix_(at, at)], c[at], rcond=1e-10)[0]
    return -0.5 * float((c * w).sum()), w


@pytest.mark.parametrize(("outputs", "small"), [(1, 0), (1, 256), (3, 256)], ids=["cut down", "as it is", "several"])
@pytest.mark.parametrize("n_always", [0, 2])
@pytest.mark.parametrize("design", ["independent", "shared columns", "repeated groups", "nearly repeated"])
@pytest.mark.parametrize("seed", range(3))
def test_every_drop_is_the_cheapest_one(seed, design, n_always, outputs, small, monkeypatch):
    monkeypatch.setattr("covey.search.elimination.SMALL", small)
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
    dropped, W = eliminate(K, c, starts, n_always=n_always)
    assert len(dropped) == len(W) - 1 == 11 - n_always
    left = list(range(11))
    for group, w in zip(dropped, W[1:], strict=True):
        base = refitted(K, c, left, starts)[0]
        rises = {l: (refitted(K, c, [o for o in left if o != l], starts)[0] - base) / sizes[l] for l in left[n_always:]}
        assert rises[group] <= min(rises.values()) * (1 + 1e-3) + 1e-5
        left.remove(group)
        np.testing.assert_allclose(Z @ w, Z @ refitted(K, c, left, starts)[1], atol=1e-5 * np.abs(y).std())
    assert left == list(range(n_always))


def quadratic(seed, sizes=(1, 3, 2, 2, 1, 4), outputs=1):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((30, sum(sizes)))
    return A.T @ A / 30, A.T @ rng.standard_normal((30, outputs)) / 30, np.concatenate([[0], np.cumsum(sizes)])


def test_groups_without_columns_are_dropped_first():
    K, c, _ = quadratic(0, (2, 3))
    form = K, c, np.array([0, 2, 2, 5]), ()
    for dropped, W in [eliminate(*form), *eliminate_all([form] * 2)]:
        assert dropped[0] == 1
        np.testing.assert_allclose(W[1], W[0])


@pytest.mark.parametrize("n_always", [0, 2])
@pytest.mark.parametrize("sizes", [(1,) * 8, (3,) * 5, (2, 3, 3, 2, 3), (1, 9, 2, 1)], ids=str)
@pytest.mark.parametrize("heredity", [False, True], ids=["no parents", "parents"])
def test_several_eliminations_together_are_one_after_another(sizes, n_always, heredity):
    """Problems of equally many groups in other orders, one with fewer groups, and one that stands alone."""
    rng = np.random.default_rng(3)
    problems = [quadratic(seed, tuple(rng.permutation(sizes))) for seed in range(4)]
    problems += [quadratic(7, sizes[:-1]), quadratic(8, sizes[:-1]), quadratic(9, sizes[:3])]
    parents = [[]] * 2 + [[l - 2, l - 1] for l in range(2, len(sizes))] if heredity else []
    problems = [(K, c, starts, parents[: starts.size - 1]) for K, c, starts in problems]
    for (dropped, W), one in zip(eliminate_all(problems, n_always), problems, strict=True):
        expected = eliminate(*one, n_always=n_always)
        assert dropped == expected[0]
        np.testing.assert_allclose(W, expected[1], atol=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_a_parent_stays_until_its_children_are_dropped(seed):
    """Among the groups without children, the one of least rise is dropped."""
    K, c, starts = quadratic(seed)
    parents = [[], [], [0, 1], [2], [], [4, 0]]
    dropped, W = eliminate(K, c, starts, parents)
    left = list(range(6))
    for group, before, after in zip(dropped, W[:-1], W[1:], strict=True):
        free = [l for l in left if not any(l in parents[child] for child in left)]
        assert group in free
        base = refitted(K, c, left, starts)[0]
        sizes = np.diff(starts)
        rises = {l: (refitted(K, c, [o for o in left if o != l], starts)[0] - base) / sizes[l] for l in free}
        assert group == min(rises, key=rises.get)
        assert not np.allclose(before, after)
        left.remove(group)


@pytest.mark.parametrize("together", [1, 2])
def test_what_a_group_costs_is_measured_in_its_unit(together):
    """One column of ten matters, a lot: per dimension the group costs less than a single column, but not by weight."""
    rng = np.random.default_rng(0)
    A = np.linalg.qr(rng.standard_normal((60, 11)))[0] * np.sqrt(60)
    y = 2.0 * A[:, 0] + 1.0 * A[:, 10]
    form = (A.T @ A / 60, (A.T @ y / 60)[:, None], np.array([0, 10, 11]), ())
    orders = [
        [dropped for dropped, _ in eliminate_all([form] * together, units=units)]
        for units in (None, [np.array([3.0, 1.0])] * together)
    ]
    assert orders == [[[0, 1]] * together, [[1, 0]] * together]
