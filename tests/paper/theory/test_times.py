"""Time windows, conservation, and the times of groups of signal and of noise, on trajectories."""

import math
from dataclasses import replace

import numpy as np
import pytest

from covey.datasets import make_group_sparse
from covey.paper.dynamics import normalized_descent
from covey.paper.theory import (
    bounds,
    drift_against_step,
    group_noise_bound,
    opening_scale,
    rest_time,
    settle_time,
    time_window,
)


@pytest.fixture(scope="module")
def run():
    data = make_group_sparse(random_state=0)
    path = normalized_descent(data.X, data.y, data.groups, n_steps=1200, record_every=5, w_star=data.w_star)
    return data, path


def test_longest_of_several_stretches(run):
    _, path = run
    short = replace(path, t=path.t[:12], w=np.zeros((12, 300)))
    short.w[[0, 3, 7, 9, 11], 5] = 1.0  # off the support: holds at 1-2, 4-6, 8, 10
    truth = np.zeros(300)
    truth[0] = 0.3
    window = time_window(short, truth, support_radius=0.4, off_radius=0.5)
    assert (window.start, window.stop) == (20.0, 30.0)
    np.testing.assert_array_equal(window.support_error, 0.3)
    np.testing.assert_array_equal(window.off_error, short.w[:, 5])
    assert window.contains((20, 30))
    assert window.contains((19, 31))
    assert not window.contains((-1, 0))
    everywhere = time_window(short, np.zeros(300), support_radius=1.0, off_radius=2.0)
    assert (everywhere.start, everywhere.stop) == (0.0, 55.0)
    assert everywhere.contains((0, 55))
    assert not everywhere.contains((-1, 55))
    assert not everywhere.contains((30, 20))
    never = time_window(short, truth, support_radius=1e-9, off_radius=1e-9)
    assert (never.start, never.stop) == (None, None)
    assert "never" in str(never)
    np.testing.assert_array_equal(everywhere.support_error, 0.0)


def test_the_theorems_window_holds_on_an_orthogonal_design():
    """Theorem convergence-alg-1, all conditions met: both bounds hold on [T_lb_corrected, T_ub_corrected]."""
    data = make_group_sparse(
        100, 30, 3, design="orthogonal", active=2, values=[1.5] * 3 + [1.0] * 3, sigma=0.01, random_state=1
    )
    noise = float(np.abs(data.X.T @ data.noise / 100).max())
    b = bounds(data.u_star, n=100, p=30, L=10, epsilon=0.004, noise=noise)
    options = {"init_scale": b.init_scale, "step_size": b.step_size, "n_steps": math.ceil(b.T_ub_corrected)}
    path = normalized_descent(data.X, data.y, data.groups, record_every=7, **options)
    window = time_window(path, data.w_star, bounds=b)
    assert window.support_radius == b.error_radius_corrected
    assert window.off_radius == b.off_support_radius
    assert window.predicted == (b.T_lb, b.T_ub)
    assert window.predicted_corrected == (b.T_lb_corrected, b.T_ub_corrected)
    assert window.contains(window.predicted_corrected)
    assert window.predicted[0] > window.predicted[1]
    assert "(empty)" in str(window)


def test_window_bad_input(run):
    data, path = run
    with pytest.raises(ValueError, match="w_star must hold 300"):
        time_window(path, [1.0], support_radius=1, off_radius=1)
    with pytest.raises(ValueError, match="Give bounds="):
        time_window(path, data.w_star, support_radius=1)
    with pytest.raises(ValueError, match="off_radius"):
        time_window(path, data.w_star, support_radius=1, off_radius=0)


# ---------------------------------------------------------------------- conservation


@pytest.fixture(scope="module")
def small():
    return make_group_sparse(40, 12, 3, active=2, values=1.0, random_state=0)


def test_drift_is_proportional_to_the_step(small):
    frame = drift_against_step(small.X, small.y, small.groups, steps=(0.02, 0.01, 0.005), total_time=10)
    descent = frame[frame["dynamics"] == "descent"]
    slope = np.polyfit(np.log(descent["step"]), np.log(descent["largest"]), 1)[0]
    assert slope == pytest.approx(1.0, abs=0.05)
    assert frame.iloc[-1]["dynamics"] == "flow"
    assert frame.iloc[-1]["largest"] < 1e-4 * descent["largest"].min()
    assert np.ptp(frame["final_loss"]) < 0.01 * frame["final_loss"].mean()


# ---------------------------------------------------------------------- settling and resting


def scalar_descent(level, alpha, gamma, n_steps):
    """``u <- u (1 + 2 gamma (level - u^2))``: Algorithm 1 of one group on an orthogonal design."""
    u = [alpha]
    for _ in range(n_steps):
        u.append(u[-1] * (1 + 2 * gamma * (level - u[-1] ** 2)))
    return np.array(u)


@pytest.mark.parametrize("level", [0.3, 1.0, 20.0])
@pytest.mark.parametrize("share", [0.25, 0.05, 0.001], ids=["largest step", "default", "small"])
@pytest.mark.parametrize("alpha", [1e-8, 1e-3])
@pytest.mark.parametrize("close", [0.5, 0.01])
def test_a_group_has_settled_by_then_and_not_long_before(level, share, alpha, close):
    gamma, precision = share / level, close * level
    T = settle_time(level, init_scale=alpha, step_size=gamma, precision=precision)
    u = scalar_descent(level, alpha, gamma, math.ceil(T) + 50)
    assert (u**2 <= level * (1 + 1e-12)).all()
    assert (u[math.ceil(T) :] ** 2 >= level - precision).all()
    # sharp but for log(1 + x) >= x/(1 + x), with x = 2 gamma c
    settled = int(np.argmax(u**2 >= level - precision))
    assert settled * (1 + 2 * gamma * level) >= T - 1


def test_a_start_above_the_level_has_settled():
    assert settle_time(1.0, init_scale=2.0, step_size=0.05, precision=0.1) == 0.0
    assert math.isfinite(settle_time(1.0, init_scale=1e-300, step_size=0.05, precision=0.1))
    with pytest.raises(ValueError, match="precision must lie between 0 and the level"):
        settle_time(1.0, init_scale=1e-6, step_size=0.05, precision=1.0)


@pytest.mark.parametrize("noise", [0.01, 1.0])
def test_a_group_of_noise_rests_until_then_and_no_longer(noise):
    alpha, gamma = 1e-6, 0.05
    T = rest_time(noise, init_scale=alpha, step_size=gamma)
    u = alpha * (1 + 2 * gamma * noise) ** np.arange(math.floor(T) + 2.0)
    assert (u[: math.floor(T) + 1] <= math.sqrt(alpha)).all()
    assert u[-1] > math.sqrt(alpha)
    assert rest_time(0.0, init_scale=alpha, step_size=gamma) == math.inf


@pytest.mark.parametrize("noise", [0.2, 0.35, 0.44])
def test_at_the_opening_scale_the_two_times_meet(noise):
    steps = {"step_size": 0.05, "precision": 1e-4}
    alpha = opening_scale(1.0, noise, noise_step=0.04, **steps)
    settled = settle_time(1.0, init_scale=alpha, **steps)
    assert settled == pytest.approx(rest_time(noise, init_scale=alpha, step_size=0.04), rel=2e-3)
    for factor in (0.5, 2.0):
        rests = rest_time(noise, init_scale=factor * alpha, step_size=0.04)
        assert (settle_time(1.0, init_scale=factor * alpha, **steps) < rests) == (factor < 1)
    assert opening_scale(1.0, 0.7, noise_step=0.04, **steps) is None


def test_the_noise_of_groups():
    """By hand, and never exceeded in a hundred draws (the probability allows one in 8 p^3)."""
    assert group_noise_bound(2.0, 100, 10, 5, 4.0, 1.0) == pytest.approx(0.2 * (2 + math.sqrt(2 * math.log(40 * 1000))))
    assert group_noise_bound(2.0, 100, 10, 5, 4.0, 3.0) == pytest.approx(0.2 * (2 + math.sqrt(6 * math.log(40 * 1000))))
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.standard_normal((60, 20)))[0] * math.sqrt(60)
    bound = group_noise_bound(0.5, 60, 20, 5, 4.0, 1.0)
    for draw in (rng.standard_normal, lambda n: rng.choice([-1.0, 1.0], n)):
        norms = [np.linalg.norm((X.T @ (0.5 * draw(60)) / 60).reshape(5, 4), axis=1).max() for _ in range(50)]
        assert 0.25 * bound < max(norms) < bound
