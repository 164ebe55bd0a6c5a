"""Time windows and conservation, on trajectories."""

import math
from dataclasses import replace

import numpy as np
import pytest

from covey.datasets import make_group_sparse
from covey.paper.dynamics import normalized_descent
from covey.paper.theory import (
    bounds,
    drift_against_step,
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
