"""Which group entered when and which was dropped, as the report draws it."""

import itertools
import re

import numpy as np
import pytest

from covey import Groups
from covey.report import render
from covey.report.path import count_ticks, keep_frames, positions, time_axis
from report.pages import constructed_report, path_of


@pytest.fixture(scope="module")
def path():
    """Groups a, b, c and d wake up at 1, 1, 2 and 5; c and d are dropped for the fitted model, and only it has e."""
    strengths = np.array(
        [[0, 0, 0, 0, 0], [4, 2, 0, 0, 0], [4, 2, 1, 0, 0], [4, 2, 1, 0, 0], [4, 2, 1, 3, 0]], dtype=float
    )
    groups, model = Groups.from_labels(["a", "b", "c", "<d>", "e"]), np.array([4.0, 2.0, 0.0, 0.0, 1.0])
    return path_of(groups, [0, 1, 2, 3, 5], strengths, model, [(0, 1.0), (1, 1.0), (2, 2.0), (3, 5.0)])


def test_numbers_of_groups_along_the_top(path):
    frames = keep_frames(path)
    x = positions(frames, time_axis(frames))
    ticks = count_ticks(frames, x)
    counts = dict(zip(x.tolist(), frames.awake.tolist(), strict=True))
    assert all(int(label) == counts[at] for at, label in ticks)
    assert ticks[-1] == (1.0, "3")


def test_the_timeline_says_which_group_was_dropped(path):
    page = render(constructed_report(path.groups, path))
    timeline = re.search(r'<ol class="timeline">.*?</ol>', page, re.DOTALL)[0]
    assert re.findall(r'<li title="([^"]*)"', timeline) == [
        "a: in from 1, in the fitted model",
        "b: in from 1, in the fitted model",
        "c: in from 2, dropped for the fitted model",
        "&lt;d&gt;: in from 5, dropped for the fitted model",
        "e: in the fitted model",
    ]
    assert timeline.count('class="cross" style') == 2
    assert "<d>" not in page


def test_lines_go_up_where_groups_enter_and_on_to_the_end_of_the_path(path):
    page = render(constructed_report(path.groups, path))
    lines = dict(re.findall(r'data-line="(\d)" d="([^"]*)"', page))
    # groups are in the order of their strengths in the fitted model: a, b, e, c, d
    for i in "0134":
        points = [tuple(map(int, point.split())) for point in lines[i][1:].split("L")]
        assert points[0][1] == 1000 > points[1][1]
        assert points[0][0] == points[1][0] < points[-1][0] == 940
        assert all(a[0] == b[0] or a[1] == b[1] for a, b in itertools.pairwise(points))  # level or upright
    assert lines["2"] == ""
