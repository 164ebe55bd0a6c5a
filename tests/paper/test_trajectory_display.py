import matplotlib.pyplot as plt
import numpy as np
import pytest

from covey.datasets import make_group_sparse
from covey.paper.dynamics import normalized_descent
from covey.paper.plots import TrajectoryDisplay


@pytest.fixture
def run():
    data = make_group_sparse(values=np.arange(5.0, 14.0), random_state=0)
    path = normalized_descent(
        data.X, data.y, data.groups, direction_step=1e-3, switch=400, n_steps=800, record_every=20, w_star=data.w_star
    )
    yield data, path
    plt.close("all")


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
