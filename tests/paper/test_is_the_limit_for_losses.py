"""`covey.limit_path` with a loss is the limit of the network for that loss, and what `limit_events` says.

As for the squared loss (`test_is_the_limit.py`), times relative to the first wake-up are off by a multiple of
``1 / log(1 / alpha)`` at depth 2 and of ``alpha`` at depth 3.
"""

from functools import cache

import numpy as np
import pytest
from scipy.special import expit

from covey import limit_path
from covey.losses import Binomial
from covey.paper.dynamics import normalized_descent
from covey.paper.theory import limit_events

N_EVENTS = 4
STEPS = {("binomial", 2): 0.06, ("binomial", 3): 0.3, ("poisson", 2): 0.01, ("poisson", 3): 0.04}
STARTS = {2: (1e-4, 1e-8), 3: (0.02, 0.01)}
AS_THEY_ARE = {"fit_intercept": False, "standardize": False, "group_weights": None}


@cache
def problem(name):
    """Five groups of two correlated columns, three of them active; an offset in place of the intercept."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 10))
    for j in range(1, 10):
        X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
    w = np.repeat([0.0, 1.0, 0.0, -0.6, 0.35], 2)
    if name == "binomial":
        offset = np.full(150, 0.4)
        return X, rng.binomial(1, expit(X @ w + offset)).astype(float), offset
    offset = rng.uniform(-1, 1, 150)
    return X, rng.poisson(np.exp(0.6 * X @ w + offset)).astype(float), offset


def relative(events):
    return [l for l, _ in events], np.array([time for _, time in events]) / events[0][1]


def wake_ups(name, depth, start):
    X, y, offset = problem(name)
    path = normalized_descent(
        X, y, 2, loss=name, offset=offset, depth=depth, init_scale=start, step_size=STEPS[name, depth],
        n_steps=100_000, record_every=2, stop=lambda t, w: np.sum(np.hypot(w[::2], w[1::2]) > 0.01) >= N_EVENTS,
    )  # fmt: skip
    awake = path.group_norms > 0.01
    first = [(l, float(path.t[np.argmax(awake[:, l])])) for l in np.flatnonzero(awake[-1]).tolist()]
    return relative(sorted(first, key=lambda event: event[1]))


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("name", ["binomial", "poisson"])
def test_the_network_comes_to_wake_groups_at_the_times_of_the_limit(name, depth):
    X, y, offset = problem(name)
    order, times = relative(limit_path(X, y, 2, loss=name, offset=offset, **AS_THEY_ARE).entered[:N_EVENTS])
    starts = np.array(STARTS[depth])
    small = 1 / np.log(1 / starts) if depth == 2 else starts
    found = [wake_ups(name, depth, start) for start in starts]
    assert [groups for groups, _ in found] == [order, order]
    errors = np.array([at / times - 1 for _, at in found])
    worst = np.abs(errors).max(axis=1)
    np.testing.assert_allclose(worst[1] / worst[0], small[1] / small[0], rtol=0.25)
    # a straight line through both meets the limit where the small quantity is zero
    slope = (errors[0] - errors[1]) / (small[0] - small[1])
    np.testing.assert_allclose(errors[1] - slope * small[1], 0, atol=0.04 if depth == 2 else 0.02)


@pytest.mark.parametrize("name", ["binomial", "poisson"])
@pytest.mark.parametrize("weights", [None, [1.0, 0.7, 1.5, 0.6, 1.2]], ids=["equal", "unequal"])
def test_the_statement(name, weights):
    X, y, offset = problem(name)
    options = AS_THEY_ARE | {"group_weights": weights}
    path = limit_path(X, y, 2, loss=name, offset=offset, **options)
    events = limit_events(X, y, 2, weights, loss=name, offset=offset)
    order, times = relative(path.entered)
    expected, at = relative([(l, time) for l, time, _ in events])
    assert order == expected
    assert len(order) == 5
    np.testing.assert_allclose(times, at, rtol=1e-7)
    np.testing.assert_allclose(path.coefs.toarray()[1:], [w for _, _, w in events], rtol=1e-6, atol=1e-8)


class TestSeparatedClasses:
    """Gradients are gone within a plateau once the awake groups tell the classes apart: no group wakes after that."""

    @staticmethod
    def problem():
        rng = np.random.default_rng(4)
        X = rng.standard_normal((60, 8))
        return X, (X[:, 2] + X[:, 3] > 0).astype(float)

    def test_events_end(self):
        X, y = self.problem()
        events = limit_events(X, y, 2, loss="binomial")
        assert [l for l, _, _ in events] == [1]
        eta = X @ events[-1][2]
        assert ((eta > 0) == (y == 1)).all()
        assert Binomial().value(y, eta).mean() < 1e-6
        with pytest.raises(ValueError, match="several linear predictors"):
            limit_events(np.eye(4), np.eye(4), 2, loss="multinomial")

    def test_the_path_says_so_and_goes_on_with_a_ridge(self):
        X, y = self.problem()
        path = limit_path(X, y, 2, loss="binomial", **AS_THEY_ARE)
        assert path.status == "separated"
        assert path.entered[0][0] == 1
        assert f"From time {path.times[1]:g} on" in path.message
        assert "ridge" in path.message
        assert np.isfinite(path.coefs.data).all()
        at_once = limit_path(X, y, 2, loss="binomial", always=[1], max_groups=2)
        assert at_once.status == "separated"
        assert "From time 0 on" in at_once.message
