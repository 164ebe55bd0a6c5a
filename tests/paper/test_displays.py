"""Displays of the paper: what is drawn is what was computed."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from covey import Groups
from covey.datasets import make_group_sparse
from covey.paper.dynamics import gradient_flow, normalized_descent, plain_descent
from covey.paper.plots import BalanceDisplay, CoherenceDisplay, TimeWindowDisplay, TrajectoryDisplay
from covey.paper.theory import balance_drift, bounds, coherence_matrix, drift_against_step, time_window


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def X():
    X = np.random.default_rng(0).standard_normal((60, 40))
    X[:, 5] = X[:, 38]
    return X


def test_heat_map(X):
    groups = Groups.from_labels(np.repeat(list("abcdefghij"), 4).tolist())
    display = CoherenceDisplay.from_design(X, groups)
    np.testing.assert_array_equal(display.axes_[0].images[0].get_array(), coherence_matrix(X, groups))
    assert [t.get_text() for t in display.axes_[0].get_xticklabels()] == list("abcdefghij")
    bars = display.axes_[1]
    assert bars.get_yticklabels()[0].get_text() == "b – j"
    assert bars.patches[0].get_width() == pytest.approx(display.coherence.delta_out)
    display.figure_.canvas.draw()


def test_profile_with_limits(X):
    b = bounds([2.0, 1.0], n=60, p=40, L=10, sigma=0.1)
    display = CoherenceDisplay.from_design(X, 4, kind="profile", bounds=b)
    assert display.kind == "profile"
    outer, inner = display.axes_[0].lines[:2]
    np.testing.assert_array_equal(outer.get_ydata(), np.sort(display.coherence.outer)[::-1])
    np.testing.assert_array_equal(inner.get_ydata(), np.sort(display.coherence.inner)[::-1])
    levels = [line.get_ydata()[0] for line in display.axes_[0].lines[2:4]]
    assert levels == [b.delta_out(1), b.delta_in(1)]
    display.figure_.canvas.draw()


def test_single_group_and_unknown_kind(X):
    display = CoherenceDisplay.from_design(X, 40)
    assert display.axes_[1].texts[0].get_text() == "a single group"
    assert CoherenceDisplay.from_design(np.random.default_rng(0).standard_normal((20, 200)), 1).kind == "profile"
    with pytest.raises(ValueError, match="kind"):
        CoherenceDisplay.from_design(X, 4, kind="pie")


def test_window():
    data = make_group_sparse(random_state=0)
    path = normalized_descent(data.X, data.y, data.groups, n_steps=800, record_every=10)
    b = bounds(data.u_star, n=150, p=300, L=100, sigma=0.5, init_scale=1e-6, step_size=1e-3)
    window = time_window(path, data.w_star, bounds=b, support_radius=0.2, off_radius=1e-3)
    display = TimeWindowDisplay(window).plot()
    ax = display.axes_[0]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), window.support_error)
    labels = [t.get_text() for t in ax.get_legend().get_texts()]
    assert "both hold" in labels
    assert f"printed: T_lb {b.T_lb:.4g} > T_ub {b.T_ub:.4g}, empty" in labels
    assert any(label.startswith("corrected: [") for label in labels)
    assert list(ax.lines[-1].get_xdata()) == [b.T_lb_corrected, b.T_ub_corrected]
    display.figure_.canvas.draw()
    never = time_window(path, data.w_star, support_radius=1e-9, off_radius=1e-9)
    labels = [t.get_text() for t in TimeWindowDisplay(never).plot().axes_[0].get_legend().get_texts()]
    assert "both hold" not in labels


def test_balance():
    data = make_group_sparse(40, 12, 3, active=1, values=1.0, random_state=0)
    flow = balance_drift(gradient_flow(data.X, data.y, data.groups, init_scale=0.1, t_end=5.0))
    descent = balance_drift(plain_descent(data.X, data.y, data.groups, init_scale=0.1, start="aligned", n_steps=100))
    table = drift_against_step(data.X, data.y, data.groups, steps=(0.02, 0.01), total_time=5)
    display = BalanceDisplay({"flow": flow, "descent": descent}, table).plot()
    np.testing.assert_array_equal(display.axes_[0].lines[1].get_ydata(), np.abs(descent.drift[1:]).max(axis=1))
    np.testing.assert_array_equal(display.axes_[1].lines[0].get_xdata(), [0.01, 0.02])
    display.figure_.canvas.draw()
    assert len(BalanceDisplay({"flow": flow}).plot().axes_) == 1


@pytest.fixture
def run():
    data = make_group_sparse(values=np.arange(5.0, 14.0), random_state=0)
    path = normalized_descent(
        data.X, data.y, data.groups, direction_step=1e-3, switch=400, n_steps=800, record_every=20, w_star=data.w_star
    )
    return data, path


def test_all_panels_with_the_truth(run):
    data, path = run
    display = TrajectoryDisplay.from_path(path, w_star=data.w_star)
    assert [ax.get_title(loc="left") for ax in display.axes_] == [
        "Recovery error", "Entries (grey: off the support)", "Group magnitudes", "Directions",
    ]  # fmt: skip
    np.testing.assert_array_equal(display.axes_[0].lines[0].get_ydata(), path.error)
    assert display.support == [0, 1, 2]
    drawn = {tuple(line.get_ydata()) for line in display.axes_[2].lines if len(line.get_ydata()) == len(path)}
    assert {tuple(path.group_norms[:, l]) for l in range(3)} <= drawn
    assert sorted(TrajectoryDisplay.from_path(path, panels=["entries", "directions"]).support) == [0, 1, 2]
    for ax in display.axes_:
        assert ax.get_xlabel()
        assert ax.get_ylabel()
        assert any(line.get_xdata()[0] == path.switch for line in ax.lines)


def test_given_axes(run):
    _, path = run
    figure, axes = plt.subplots(1, 2)
    display = TrajectoryDisplay(path).plot(panels=["error", "magnitudes"], ax=axes)
    assert display.figure_ is figure
    with pytest.raises(ValueError, match="2 panels need 2 axes; 1 were given"):
        TrajectoryDisplay(path).plot(panels=["error", "magnitudes"], ax=axes[0])


def test_bad_input(run):
    data, path = run
    with pytest.raises(ValueError, match="Unknown panels: 'loss'"):
        TrajectoryDisplay(path).plot(panels=["loss"])
    with pytest.raises(ValueError, match="300 finite numbers"):
        TrajectoryDisplay(path, w_star=data.w_star[:10])
    bare = normalized_descent(data.X, data.y, data.groups, n_steps=5)
    with pytest.raises(ValueError, match="needs the truth"):
        TrajectoryDisplay(bare).plot(panels=["error"])
