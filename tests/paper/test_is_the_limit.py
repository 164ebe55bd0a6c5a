"""`covey.limit_path` is the limit of the flow with direction rate as the start goes to zero, and of the printed
Algorithm 1 where its direction step is stable (docs/limit.md); and it is what the statement says.

Times are compared relative to the first wake-up. For depth 2 the logarithm of a sleeping group grows linearly, so that
a start at alpha is off by a multiple of ``1 / log(1 / alpha)``; for depth N > 2 it is the power ``u^(2 - N)`` that
falls linearly, and the error is a multiple of ``alpha^(N - 2)``. Extrapolated to zero it must vanish in both cases.
"""

from functools import cache

import numpy as np
import pytest
from scipy.optimize import nnls

from covey import Groups, limit_path
from covey.paper.dynamics import normalized_descent
from covey.paper.theory import limit_events

SIZES = [2, 3, 1, 4, 3, 2, 5, 3]
N_EVENTS = 6

# The limit is that of the flow: no magnitude grows by more than this share in one step, so that their logarithms grow
# 0.1% more slowly than in the flow. Groups that are awake need steps below the second number to be stable.
GROWTH, LARGEST_STEP = 2e-3, 0.1

# The norm of a group, in units of the response, at which it is awake.
AWAKE = 1e-3


@cache
def problem(rho):
    """Neighbouring columns correlated; three groups with a signal and five without."""
    rng = np.random.default_rng(1)
    groups = Groups.from_sizes(SIZES)
    X = rng.standard_normal((120, sum(SIZES)))
    for j in range(1, X.shape[1]):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    w = np.zeros(X.shape[1])
    w[groups.lists()[0]], w[groups.lists()[2]], w[groups.lists()[4]] = 2.0, 1.5, 0.7
    return X, X @ w + 0.7 * rng.standard_normal(120), groups


WEIGHTS = {"equal": np.ones(len(SIZES)), "unequal": np.linspace(0.7, 1.5, len(SIZES))}


@cache
def wake_ups(rho, weights, depth, init_scale):
    """The first events of the network: groups, and times relative to the first."""
    X, y, groups = problem(rho)
    return relative(descend(X, y, groups, WEIGHTS[weights], depth, init_scale, N_EVENTS)[0])


def descend(X, y, groups, weights, depth, init_scale, n_events):
    """Algorithm 1 on orthonormal groups until some are awake: the events, and the last coefficients.

    Dividing the columns of a group by its weight divides its gradient by the weight and leaves refits as they are. One
    number divides all columns: the large step on directions is stable if no eigenvalue of the Gram matrix is above 1.
    """
    n, centred, response = len(y), X - X.mean(axis=0), (y - y.mean()) / y.std()
    Q, back = np.empty_like(X), np.zeros((X.shape[1], X.shape[1]))
    for G, c in zip(groups.lists(), weights / weights.min(), strict=True):
        U, R = np.linalg.qr(centred[:, G])
        Q[:, G], back[np.ix_(G, G)] = U * np.sqrt(n) / c, np.linalg.inv(R) * np.sqrt(n) / c
    largest = np.sqrt(np.linalg.eigvalsh(Q.T @ Q / n)[-1])
    Q, back = Q / largest, back / largest
    u, v, time, events = np.full(groups.n_groups, init_scale), groups.sizes[groups.labels] ** -0.5, 0.0, {}
    while len(events) < n_events:
        rate = fastest(Q, response, groups, u, v, depth)
        step = min(LARGEST_STEP, GROWTH / rate)
        path = normalized_descent(
            Q, response, groups, init_scale=u, start=v, step_size=step, depth=depth,
            n_steps=int(np.clip(0.2 / (step * rate), 100, 5000)), record_every=5,
        )  # fmt: skip
        awake = path.group_norms > AWAKE
        for l in np.flatnonzero(awake[-1]).tolist():
            events.setdefault(l, time + step * float(path.t[np.argmax(awake[:, l])]))
        u, v, time = path.u[-1], path.v[-1], time + step * float(path.t[-1])
    last = np.argmax(awake.sum(axis=1) >= n_events)
    return sorted(events.items(), key=lambda event: event[1])[:n_events], back @ path.w[last] * y.std()


def fastest(X, y, groups, u, v, depth):
    """The largest rate at which the logarithm of a magnitude grows or falls."""
    g = X.T @ (y - X @ (u[groups.labels] ** depth * v)) / len(y)
    pull = np.bincount(groups.labels, v * g)
    return np.abs(depth * u ** (depth - 2) * pull).max()


def relative(events):
    return [l for l, _ in events], np.array([time for _, time in events]) / events[0][1]


def errors_at(rho, weights, depth, starts):
    """Relative errors of the network's times, a row for each start; NaN where a group is not among the first yet."""
    X, y, groups = problem(rho)
    order, times = relative(limit_path(X, y, groups, group_weights=WEIGHTS[weights]).entered[:N_EVENTS])
    found = [dict(zip(*wake_ups(rho, weights, depth, start), strict=True)) for start in starts]
    return np.array([[at.get(l, np.nan) / time - 1 for l, time in zip(order, times, strict=True)] for at in found])


STARTS = {2: [1e-6, 1e-12, 1e-24, 1e-48], 3: [1e-2, 1e-3, 1e-4]}


@pytest.mark.parametrize(
    ("depth", "rho", "weights"), [(2, 0.0, "equal"), (2, 0.6, "unequal"), (3, 0.0, "equal"), (3, 0.6, "unequal")]
)
class TestFallingStarts:
    def test_order_and_times_approach_those_of_the_limit_at_the_known_rate(self, depth, rho, weights):
        X, y, groups = problem(rho)
        order = [l for l, _ in limit_path(X, y, groups, group_weights=WEIGHTS[weights]).entered[:N_EVENTS]]
        assert wake_ups(rho, weights, depth, STARTS[depth][-1])[0] == order
        if depth == 2 and rho == 0:  # the order at a start of everyday size is another one
            assert wake_ups(rho, weights, depth, 1e-6)[0] != order
        starts = np.array(STARTS[depth])
        small = 1 / np.log(1 / starts) if depth == 2 else starts ** (depth - 2)
        errors = errors_at(rho, weights, depth, starts)
        worst = np.nanmax(np.abs(errors), axis=1)
        # the worst error is about a fixed multiple of the small quantity, from one start to the next
        np.testing.assert_allclose(worst[2:] / worst[1:-1], small[2:] / small[1:-1], rtol=0.2 if depth == 2 else 0.3)
        assert worst[0] > 4 * worst[-1]
        # a straight line in the small quantity through the last two starts meets the limit where that is zero
        slope = (errors[-2] - errors[-1]) / (small[-2] - small[-1])
        np.testing.assert_allclose(errors[-1] - slope * small[-1], 0, atol=0.01 if depth == 2 else 1e-4)


@pytest.mark.parametrize("size", [1, 2])
def test_an_awake_group_may_pass_through_zero(size):
    """A group that woke up for what two others explain turns round when these are awake: no sign is kept."""
    rng = np.random.default_rng(0)
    A, B, E = rng.standard_normal((3, 200, size))
    X = np.hstack([(A + B) / np.sqrt(2) + 0.3 * E, A, B, rng.standard_normal((200, 2 * size))])
    y = X @ np.repeat([-0.4, 1.0, 1.0, 0.0, 0.0], size) + 0.3 * rng.standard_normal(200)
    groups = Groups.from_size(size, 5 * size)
    limit = limit_path(X, y, groups, group_weights=None, max_groups=4)
    first = limit.coefs.toarray()[:, :size]
    assert (first[1] > 0).all()
    assert (first[-1] < 0).all()
    order, times = relative(limit.entered)
    errors = []
    for start in (1e-24, 1e-48):
        events, coef = descend(X, y, groups, np.ones(5), 2, start, 4)
        found, at = relative(events)
        assert found == order
        errors.append(np.abs(at / times - 1).max())
        np.testing.assert_allclose(coef[:size], first[3], atol=0.01)
    np.testing.assert_allclose(errors[0] / errors[1], 2, rtol=0.1)


class TestThePrintedUpdate:
    """Its direction step of length one is stable only if no tangential eigenvalue of the awake groups is above 2.

    Columns ``(a_l, t_l)`` of unit length, orthogonal but for correlations r between the ``t_l``; truth ``(b_l, 0)``.
    """

    @staticmethod
    def design(r, n_groups):
        K = np.eye(2 * n_groups)
        K[1::2, 1::2] += r * (1 - np.eye(n_groups))
        return np.sqrt(2 * n_groups) * np.linalg.cholesky(K).T

    @pytest.mark.parametrize("step_size", [1e-3, 0.05])
    @pytest.mark.parametrize("r", [0.6, 0.8])
    def test_the_two_cycle_of_three_groups(self, r, step_size):
        X, eigenvalue = self.design(r, 3), 1 + 2 * r
        cosine = np.sqrt(eigenvalue / (2 * (eigenvalue - 1)))
        u = np.sqrt(1 / ((eigenvalue - 1) * cosine))
        v = np.tile([cosine, np.sqrt(1 - cosine**2)], 3)
        path = normalized_descent(
            X, X @ np.tile([1.0, 0.0], 3), 2, init_scale=u, start=v, step_size=step_size, n_steps=4
        )
        np.testing.assert_allclose(path.u, u, rtol=1e-12)
        turned = v * np.tile([1.0, -1.0], 3)
        np.testing.assert_allclose(path.v, [v, turned, v, turned, v], atol=1e-12)

    @pytest.mark.parametrize("init_scale", [1e-6, 1e-24])
    def test_from_a_small_start_it_ends_there_and_never_wakes_the_fourth_group(self, init_scale):
        X = self.design(0.8, 4)
        y = X @ [1.02, 0.01, 1.0, 0.0, 0.98, 0.0, 0.4, 0.0]
        assert [l for l, _, _ in limit_events(X, y, 2)] == [0, 1, 2, 3]

        def run(shrink):
            found = normalized_descent(X / shrink, y, 2, init_scale=init_scale, step_size=0.01, n_steps=20_000)
            return found, found.group_norms[-1] / shrink

        printed, norms = run(1.0)
        assert printed.u[-1, 3] < init_scale  # further asleep than at the start
        assert norms[:3].max() < 0.75
        assert printed.loss[-1] > 0.3 * printed.loss[0]
        assert np.all(printed.v[-1, 1::2] * printed.v[-2, 1::2] < -0.15)  # directions swing at every step
        # the same problem with columns divided by 2: eigenvalues below 1, and the last model of the limit path
        np.testing.assert_allclose(run(2.0)[1], [1.02, 1.0, 0.98, 0.4], atol=1e-3)

    def test_it_is_stable_up_to_an_eigenvalue_of_two(self):
        for r, stable in ((0.45, True), (0.55, False)):
            X = self.design(r, 3)
            y = X @ [1.02, 0.01, 1.0, 0.0, 0.98, 0.0]
            path = normalized_descent(X, y, 2, step_size=0.01, n_steps=20_000)
            assert (path.loss[-1] < 1e-12 * path.loss[0]) == stable


class TestGroupsOfOneColumn:
    """The flow keeps their signs; the printed update flips a sign where the gradient exceeds the coefficient."""

    @pytest.mark.parametrize("pull", [0.5, 2.0])
    def test_the_jump_rule(self, pull):
        # w = -1 in the first column; the gradient of its positive truth exceeds it, or does not
        path = normalized_descent(np.eye(1), [pull - 1.0], 1, init_scale=1.0, start=[-1.0], step_size=1e-3, n_steps=1)
        assert path.v[-1, 0] == (1.0 if pull > 1 else -1.0)

    def test_without_jumps_a_driven_group_falls_asleep(self):
        rng = np.random.default_rng(0)
        A, B, E = rng.standard_normal((3, 200, 1))
        X = np.hstack([(A + B) / np.sqrt(2) + 0.3 * E, A, B]) / 2
        y = X @ [-0.8, 2.0, 2.0]

        def last(**options):
            return normalized_descent(X, y, 1, init_scale=1e-8, step_size=0.05, n_steps=20_000, **options).w[-1]

        np.testing.assert_allclose(last(), [-0.8, 2.0, 2.0], atol=1e-6)
        np.testing.assert_allclose(last(direction_step=1e-3), nnls(X, y)[0], atol=1e-6)


class TestTheStatement:
    """`limit_path` gives what the thirty lines of `limit_events` give; `search/test_events` has its other settings."""

    @pytest.mark.parametrize("weights", ["equal", "unequal"])
    @pytest.mark.parametrize("rho", [0.0, 0.6, 0.95])
    def test_on_columns_as_they_are(self, rho, weights):
        X, y, groups = problem(rho)
        path = limit_path(X, y, groups, group_weights=WEIGHTS[weights], standardize=False, fit_intercept=False)
        events = limit_events(X, y, groups, WEIGHTS[weights])
        self.compare(path, events)

    @staticmethod
    def compare(path, events):
        order, times = relative(path.entered)
        expected, at = relative([(l, time) for l, time, _ in events])
        assert order == expected
        np.testing.assert_allclose(times, at, rtol=1e-8)
        np.testing.assert_allclose(path.coefs.toarray()[1:], [w for _, _, w in events], rtol=1e-7, atol=1e-9)


class TestEvents:
    """The reference itself, where the answer is known."""

    def test_an_orthogonal_design_wakes_groups_at_one_over_their_norms(self):
        rng = np.random.default_rng(0)
        X = np.linalg.qr(rng.standard_normal((30, 12)))[0] * np.sqrt(30)
        w = rng.standard_normal(12)
        norms, c = np.linalg.norm(w.reshape(4, 3), axis=1), np.array([1.0, 2.0, 0.5, 1.0])
        events = limit_events(X, X @ w, 3, c)
        order = np.argsort(c / norms)
        assert [l for l, _, _ in events] == order.tolist()
        np.testing.assert_allclose([time for _, time, _ in events], (c / norms)[order])
        np.testing.assert_allclose(events[-1][2], w)

    def test_a_copy_of_an_awake_group_never_wakes(self):
        rng = np.random.default_rng(0)
        A, B = rng.standard_normal((2, 30, 3))
        events = limit_events(np.hstack([A, A, B]), A @ [1.0, 2.0, 3.0] + 0.1 * rng.standard_normal(30), 3)
        assert len({l for l, _, _ in events} & {0, 1}) == 1
        assert len(events) == 2
        assert limit_events(np.eye(4), np.zeros(4), 2) == [], "nothing to explain"
