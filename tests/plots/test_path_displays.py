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
    assert len(texts(ax)) == 2


def test_cv_curve_shows_both_rules(model):
    display = CVCurveDisplay.from_estimator(model)
    labels = [t.get_text() for t in display.ax_.get_legend().get_texts()]
    assert f"1se: {model.times_by_rule_['1se']:g} (used)" in labels
    assert f"min: {model.times_by_rule_['min']:g}" in labels
    curve = next(line for line in display.ax_.lines if len(line.get_xdata()) > 2)
    np.testing.assert_allclose(curve.get_ydata()[-1], model.mse_path_[-1].mean())


def test_what_is_not_fitted_is_refused():
    with pytest.raises(ValueError, match="call fit first"):
        GroupPathDisplay.from_estimator(GroupSparseRegressor())
    with pytest.raises(ValueError, match="fit a GroupSparseRegressorCV"):
        CVCurveDisplay.from_estimator(GroupSparseRegressor())
