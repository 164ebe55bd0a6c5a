from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest

from covey import GroupSparseRegressor, GroupSparseRegressorCV
from covey.datasets import load_diabetes_splines
from covey.plots import CVCurveDisplay, GroupPathDisplay


@pytest.fixture(scope="module")
def model():
    data = load_diabetes_splines()
    return GroupSparseRegressorCV(groups=data.groups, rule="1se", cv=3).fit(data.X, data.y)


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def texts(ax):
    return [t.get_text() for t in ax.texts]


def test_path_marks_the_time_and_names_the_selected(model):
    display = GroupPathDisplay.from_estimator(model)
    assert any(np.allclose(line.get_xdata(), model.n_iter_) for line in display.ax_.lines)
    assert f"stopped at {model.n_iter_}" in texts(display.ax_)
    assert set(model.selected_groups_) <= set(texts(display.ax_))
    assert display.ax_.get_title(loc="left") == f"{len(model.selected_groups_)} of 10 groups awake"


def test_path_without_a_time_and_on_own_axes(model):
    figure, ax = plt.subplots()
    display = GroupPathDisplay.from_path(model.path_, ax=ax, n_labels=2)
    assert display.figure_ is figure
    assert len([text for text in texts(ax) if text != "restarted"]) == 2


def test_restarts_are_marked_and_lines_broken_there(model):
    restarted = model.path_.restarted
    assert len(restarted) > 0
    display = GroupPathDisplay.from_estimator(model)
    assert texts(display.ax_).count("restarted") == len(restarted)
    times = display.ax_.lines[0].get_xdata()
    assert [times[i + 1] for i in np.flatnonzero(np.isnan(times))] == list(restarted)
    labels = [t.get_text() for t in CVCurveDisplay.from_estimator(model).ax_.get_legend().get_texts()]
    assert labels.count("restarted") == 1


def test_cv_curve_shows_both_rules(model):
    display = CVCurveDisplay.from_estimator(model)
    labels = [t.get_text() for t in display.ax_.get_legend().get_texts()]
    assert f"1se: {model.times_by_rule_['1se']:g} (used)" in [label.removeprefix("min and ") for label in labels]
    curve = next(line for line in display.ax_.lines if len(line.get_xdata()) > 2)
    np.testing.assert_allclose(curve.get_ydata()[-1], model.mse_path_[-1].mean())


def drawn_curve(last, rule_times, rule="min"):
    times = np.unique(np.append(np.round(np.geomspace(1, last, 200)), 0.0))
    mse = (1 + 0.3 * times / (times + last / 10))[:, None] * [0.9, 1.0, 1.1]
    return CVCurveDisplay(times, mse, rule_times, rule).plot().ax_


@pytest.mark.parametrize("last", [100, 100_000])
@pytest.mark.parametrize("late", [0.0, 60.0])
def test_a_time_of_zero_is_in_sight(last, late):
    ax = drawn_curve(last, {"min": late, "1se": 0.0}, "1se")
    marks = {line.get_label(): line for line in ax.lines if len(line.get_xdata()) == 2}
    label = "1se: 0 (used)" if late else "min and 1se: 0 (used)"
    assert label in marks
    ends = ax.transAxes.inverted().transform(ax.transData.transform([(0.0, 1.0), (float(last), 1.0)]))[:, 0]
    assert 0 < ends[0] < 0.1
    assert 0.9 < ends[1] < 1
    assert 0 in ax.get_xticks()


@pytest.mark.parametrize("last", [8, 900, 100_000])
@pytest.mark.parametrize("earliest", [0.0, 3.0])
def test_the_axis_of_time_is_readable_whatever_it_spans(last, earliest):
    ax = drawn_curve(last, {"min": 5.0, "1se": earliest})
    labels = [t.get_text() for t in ax.get_legend().get_texts()]
    assert {"min: 5 (used)", f"1se: {earliest:g}"} <= set(labels)
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    shown = [label for label in ax.get_xticklabels() if low <= label.get_position()[0] <= high]
    boxes = sorted((label.get_window_extent() for label in shown), key=lambda box: box.x0)
    assert 3 <= len(boxes) <= 10
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_steep_errors_are_drawn_by_factors():
    times = np.arange(1.0, 50.0)
    mse = np.where(times < 10, 900.0, 1.0 + (times - 30) ** 2 / 100)[:, None] * [0.9, 1.1]
    ax = CVCurveDisplay(times, mse, {"min": 30.0, "1se": 20.0}, "min").plot().ax_
    assert ax.get_yscale() == "log"


def test_what_is_not_fitted_is_refused():
    with pytest.raises(ValueError, match="call fit first"):
        GroupPathDisplay.from_estimator(GroupSparseRegressor())
    with pytest.raises(ValueError, match="fit a GroupSparseRegressorCV"):
        CVCurveDisplay.from_estimator(GroupSparseRegressor())
