import copy
import itertools
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from covey import GroupSparseClassifier, GroupSparseRegressor, limit_path
from covey.datasets import load_diabetes_splines
from covey.plots import CandidatesDisplay, GroupPathDisplay
from covey.plots.style import label_ends
from covey.search.chosen import Judged


@pytest.fixture(scope="module")
def data():
    return load_diabetes_splines()


@pytest.fixture(scope="module")
def model(data):
    return GroupSparseRegressor(groups=data.groups, selection=3).fit(data.X, data.y)


def texts(ax):
    return [t.get_text() for t in ax.texts]


def test_a_limit_path_is_drawn_in_steps_and_the_model_apart_from_it(model):
    ax = GroupPathDisplay.from_estimator(model).ax_
    strongest = [model.selected_groups_[i] for i in np.argsort(-model.group_table()["strength"].to_numpy())[:8]]
    assert {"the model", *strongest} <= set(texts(ax))
    assert ax.get_title(loc="left") == f"{len(model.selected_groups_)} of 10 groups"
    paths = [line for line in ax.lines if len(line.get_xdata()) == len(model.path_)]
    assert paths
    assert {line.get_drawstyle() for line in paths} == {"steps-post"}
    points = [line for line in ax.lines if line.get_marker() == "o"]
    assert len(points) == min(8, len(model.selected_groups_))
    strengths = sorted(model.group_strengths_, reverse=True)[: len(points)]
    assert sorted((float(line.get_ydata()[0]) for line in points), reverse=True) == pytest.approx(strengths)
    assert all(line.get_xdata()[0] > model.path_.times[-2] for line in points)
    assert model.path_.ends_apart  # drawing leaves the path as it was
    # what least squares makes of many groups that resemble each other does not flatten the rest
    assert ax.get_ylim()[1] <= 2 * max(strengths)
    assert ax.get_xlabel() == "time"


def test_other_paths_are_drawn_on_given_axes(data):
    figure, ax = plt.subplots()
    path = limit_path(data.X, data.y, data.groups)
    display = GroupPathDisplay.from_path(path, ax=ax, n_labels=2)
    assert display.figure_ is figure
    assert len(texts(ax)) == 2
    time = float(path.times[2])
    GroupPathDisplay.from_path(path, time=time, ax=ax, n_labels=0)
    assert f"time {time:g}" in texts(ax)
    smooth = GroupPathDisplay.from_path(replace(path, stepwise=False, strengths=None)).ax_
    assert {line.get_drawstyle() for line in smooth.lines} == {"default"}
    assert (smooth.get_xlabel(), smooth.get_ylabel()) == ("iteration", "norm of the group's coefficients")


def test_names_at_the_edge_keep_apart_and_inside():
    for heights in ([1.0] * 8, [0.0, 0.01, 0.5], [0.3], []):
        _, ax = plt.subplots()
        ax.set_ylim(-0.02, 1.02)
        label_ends(ax, list(range(len(heights))), heights)
        places = [text.xy[1] for text in ax.texts]
        assert all(right - left >= 0.05 for left, right in itertools.pairwise(places))
        assert all(0 <= place <= 1.02 for place in places)


def test_candidates_show_the_best_of_each_size_and_the_chosen_one(model):
    display = CandidatesDisplay.from_estimator(model)
    table = model.candidates_
    curve = next(line for line in display.ax_.lines if len(line.get_xdata()) > 2)
    np.testing.assert_allclose(curve.get_ydata(), table.groupby("groups")["mse"].min())
    chosen = table[table["chosen"]].iloc[0]
    labels = [t.get_text() for t in display.ax_.get_legend().get_texts()]
    assert labels == ["one standard error", f"chosen: {chosen['groups']} groups"]
    mark = display.ax_.lines[-1]
    assert mark.get_ydata()[0] == pytest.approx(chosen["mse"])
    assert display.ax_.get_xticklabels()[int(mark.get_xdata()[0])].get_text() == f"{chosen['groups']}"


@pytest.mark.parametrize("most", [9, 400])
def test_the_axis_of_groups_is_readable_whatever_it_spans(most):
    x = np.append(np.arange(40.0 if most > 40 else 9.0), most)
    ax = CandidatesDisplay(Judged("error", x, 1 + x / most, None, 3.0, 1.0, 50)).plot().ax_
    ax.figure.canvas.draw()
    boxes = sorted((label.get_window_extent() for label in ax.get_xticklabels()), key=lambda box: box.x0)
    assert 3 <= len(boxes) <= 16
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))


def test_steep_errors_are_drawn_by_factors():
    x = np.arange(20.0)
    values = np.where(x < 3, 900.0, 1.0 + (x - 8) ** 2 / 100)
    ax = CandidatesDisplay(Judged("error", x, values, values / 10, 8.0, 1.0, 50)).plot().ax_
    assert ax.get_yscale() == "log"


def test_a_model_without_alternatives_has_no_candidates(model):
    alone = copy.copy(model)
    alone.candidates_ = model.candidates_[model.candidates_["chosen"]]
    with pytest.raises(ValueError, match="no candidates to draw"):
        CandidatesDisplay.from_estimator(alone)


SEVERAL = {
    "classes": (GroupSparseClassifier, {"selection": 3}, "mean deviance on held-out rows"),
    "counts": (GroupSparseRegressor, {"selection": 3, "loss": "poisson"}, "mean deviance on held-out rows"),
    "responses": (
        GroupSparseRegressor,
        {"selection": 3},
        "squared error on held-out rows, summed over responses of unit variance",
    ),
    "criterion": (GroupSparseClassifier, {"selection": "bic"}, "Bayesian information criterion"),
}


@pytest.mark.parametrize("case", SEVERAL, ids=str)
def test_errors_are_called_what_they_are(case):
    kind, options, label = SEVERAL[case]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 12))
    eta = X @ np.r_[1.5, -1.0, np.zeros(6), 1.2, 0.0, 0.0, 0.0]
    y = {
        "counts": rng.poisson(np.exp(0.5 * eta)),
        "responses": np.column_stack([eta, -eta]) + rng.standard_normal((90, 2)),
    }.get(case, np.digitize(eta + rng.logistic(size=90), [-1.0, 1.0]))
    display = CandidatesDisplay.from_estimator(kind(2, **options).fit(X, y))
    assert display.ax_.get_ylabel() == label
