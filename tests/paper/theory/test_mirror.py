"""Mirror flow and the closed loop of theorem not-mf: returns, brackets, potential and KKT limit, by other means."""

import numpy as np
import pytest
from scipy.optimize import minimize

from covey import Groups
from covey.paper.dynamics import diagonal_descent
from covey.paper.theory import (
    DiagonalNetwork,
    GroupedNetwork,
    diagonal_mirror,
    diagonal_potential,
    drive,
    follow,
    lie_bracket,
    mirror_limit,
)

GROUPED = GroupedNetwork(Groups.from_sizes([2]))


def loop(length, order=(0, 1)):
    return [(sign * np.eye(2)[i], length) for sign in (1.0, -1.0) for i in order]


def moved(network, x, pieces):
    path = drive(network, x, pieces)
    return network.value(path[-1, -1]) - network.value(path[0, 0])


def small_steps(u, v, pieces, n_steps=20_000):
    """The grouped flow by Euler steps, written out: du = 2 u v'c, dv = u^2 c."""
    u, v = float(u), np.array(v, dtype=float)
    for c, length in pieces:
        h = length / n_steps
        for _ in range(n_steps):
            u, v = u + h * 2 * u * (v @ c), v + h * u**2 * np.asarray(c)
    return u**2 * v


def test_the_grouped_flow_does_not_return():
    """The numbers of the closed loop, and the same by small steps written from the paper's equations."""
    off = moved(GROUPED, [1.0, 0.3, 0.5], loop(0.2))
    np.testing.assert_allclose(off, [-0.168, 0.105], atol=5e-4)
    np.testing.assert_allclose(off, small_steps(1.0, [0.3, 0.5], loop(0.2)) - [0.3, 0.5], atol=2e-4)


@pytest.mark.parametrize("x", [[0.5, 0.5, 0.5, 0.5], [1.3, 0.2, 0.4, 0.9]], ids=["balanced", "any"])
@pytest.mark.parametrize("depth", [2, 3])
def test_the_diagonal_flow_returns(x, depth):
    network = DiagonalNetwork(2, depth)
    pieces = [([0.3, -0.5], 0.2), ([0.4, 0.1], 0.3), ([-0.3, 0.5], 0.2), ([-0.4, -0.1], 0.3)]
    assert np.abs(moved(network, x, pieces)).max() < 1e-9
    assert np.abs(moved(network, x, pieces[:3])).max() > 1e-2


def test_a_short_loop_moves_by_the_bracket():
    u, v = 0.9, [0.7, -0.4]
    bracket = u**2 * lie_bracket((0, 1), [u], v)[1:]
    np.testing.assert_allclose(bracket, 4 * u**4 * np.array([0.4, 0.7]))
    errors = [
        np.linalg.norm(moved(GROUPED, [u, *v], loop(length)) / length**2 - bracket) for length in (0.02, 0.01, 0.005)
    ]
    np.testing.assert_allclose(errors[:2], 2 * np.array(errors[1:]), rtol=0.1)  # first order
    assert np.linalg.norm(moved(GROUPED, [u, *v], loop(0.01, order=(1, 0)))) > 0
    np.testing.assert_allclose(
        moved(GROUPED, [u, *v], loop(1e-3, order=(1, 0))), -moved(GROUPED, [u, *v], loop(1e-3)), rtol=0.02
    )


def test_the_mirror_is_the_gradient_of_the_potential():
    rng = np.random.default_rng(0)
    for scale in (0.05, 1.0):
        w, h = rng.standard_normal(4), 1e-6
        numeric = [
            (diagonal_potential(w + h * e, scale) - diagonal_potential(w - h * e, scale)) / (2 * h) for e in np.eye(4)
        ]
        np.testing.assert_allclose(diagonal_mirror(w, scale), numeric, rtol=1e-6)


def test_the_diagonal_network_ends_at_the_least_potential():
    """By following the flow, by descent of covey.paper.dynamics, and by a solver that knows nothing of either."""
    rng = np.random.default_rng(1)
    X, y, scale = rng.standard_normal((2, 5)), np.array([1.0, -0.7]), 0.3
    least = mirror_limit(X, y, scale)
    np.testing.assert_allclose(X @ least, y, atol=1e-10)
    network = DiagonalNetwork(5)
    flow = follow(network, np.full(10, scale), X, y, [0.0, 30.0])
    np.testing.assert_allclose(network.value(flow[-1]), least, atol=1e-6)
    descent = diagonal_descent(X, y, init_scale=scale, step_size=1e-3, n_steps=60_000, record_every=60_000)
    np.testing.assert_allclose(descent.w[-1], least, atol=2e-3)
    # the KKT condition: the mirror image lies in the span of the rows
    image = diagonal_mirror(least, scale)
    assert np.linalg.norm(image - X.T @ np.linalg.lstsq(X.T, image, rcond=None)[0]) < 1e-8
    null = np.linalg.svd(X)[2][2:]
    at = np.linalg.lstsq(X, y, rcond=None)[0]
    found = minimize(lambda z: diagonal_potential(at + z @ null, scale), np.zeros(3), tol=1e-12)
    np.testing.assert_allclose(at + found.x @ null, least, atol=1e-4)


def test_the_scale_decides_between_l1_and_l2():
    X, y = np.array([[1.0, 2.0]]), np.array([2.0])
    np.testing.assert_allclose(mirror_limit(X, y, 100.0), np.linalg.lstsq(X, y, rcond=None)[0], atol=1e-3)
    np.testing.assert_allclose(mirror_limit(X, y, 1e-8), [0.0, 1.0], atol=1e-3)


def test_the_way_decides_where_the_grouped_flow_ends():
    X, y = np.array([[1.0, 2.0]]), np.array([2.0])
    ends = {}
    for name, network, x in (
        ("grouped", GROUPED, np.array([1.0, 0.3, 0.5])),
        ("diagonal", DiagonalNetwork(2), np.full(4, 0.5)),
    ):
        after = drive(network, x, loop(0.2))[-1, -1]
        ends[name] = [network.value(follow(network, begin, X, y, [0.0, 20.0])[-1]) for begin in (x, after)]
        for end in ends[name]:
            assert X @ end == pytest.approx(y, abs=1e-6)
    assert np.linalg.norm(ends["grouped"][0] - ends["grouped"][1]) > 0.1
    assert np.linalg.norm(ends["diagonal"][0] - ends["diagonal"][1]) < 1e-8


def test_bad_pieces():
    with pytest.raises(ValueError, match="one per column"):
        drive(GROUPED, [1.0, 0.3, 0.5], [([1.0], 0.2)])
    with pytest.raises(ValueError, match="the length of a piece must be above 0"):
        drive(GROUPED, [1.0, 0.3, 0.5], [([1.0, 0.0], -0.2)])
