"""Which group entered when and which was dropped, as the report draws it."""

import re

import numpy as np
import pytest

from covey import Groups
from covey.report import render
from covey.report.path import count_ticks, positions, stretches, time_axis
from covey.report.traces import keep_frames
from report.pages import constructed_report, path_of


@pytest.fixture(scope="module")
def path():
    """Group a stays, b is dropped at 3 and wakes up again at 5, c is dropped at 4, d only for the fitted model."""
    strengths = np.array(
        [[0, 0, 0, 0], [4, 2, 0, 0], [4, 2, 1, 0], [4, 0, 1, 0], [4, 0, 0, 0], [4, 2, 0, 3]], dtype=float
    )
    groups, model = Groups.from_labels(["a", "b", "c", "<d>"]), np.array([4.0, 2.0, 0.0, 0.0])
    return path_of(groups, np.arange(6), strengths, model, [(0, 1.0), (1, 1.0), (2, 2.0), (3, 5.0)])


@pytest.fixture(scope="module")
def frames(path):
    return keep_frames(path)


def test_stretches(frames):
    first = int(np.searchsorted(frames.times, 1.0))
    x = positions(frames, time_axis(frames))
    found = {group.name: [(one.begin, one.end) for one in stretches(group, frames, x)] for group in frames.groups}
    expected = {"a": [(1, 5)], "b": [(1, 2), (5, 5)], "c": [(2, 3)], "<d>": [(5, 5)]}
    assert found == {
        name: [(begin - 1 + first, end - 1 + first) for begin, end in runs] for name, runs in expected.items()
    }


def test_numbers_of_groups_along_the_top(frames):
    x = positions(frames, time_axis(frames))
    ticks = count_ticks(frames, x)
    counts = dict(zip(x.tolist(), frames.awake.tolist(), strict=True))
    assert all(int(label) == counts[at] for at, label in ticks)
    assert ticks[-1] == (1.0, "2")


def test_the_timeline_says_which_group_was_dropped(path):
    page = render(constructed_report(path.groups, path))
    timeline = re.search(r'<ol class="timeline">.*?</ol>', page, re.DOTALL)[0]
    assert re.findall(r'<li title="([^"]*)"', timeline) == [
        "a: in from 1, in the fitted model",
        "b: in from 1, dropped at 3, in from 5, in the fitted model",
        "c: in from 2, dropped at 4",
        "&lt;d&gt;: in from 5, dropped for the fitted model",
    ]
    assert timeline.count('class="cross" style') == 3
    assert "<d>" not in page


def test_lines_end_where_groups_are_dropped(path):
    page = render(constructed_report(path.groups, path))
    # one line with two stretches, each up from the bottom; the first goes down again
    (line,) = re.findall(r'data-line="1" d="([^"]*)"', page)
    runs = line.split("M")[1:]
    assert len(runs) == 2
    assert runs[0].split("L")[0].endswith(" 1000")
    assert runs[0].split("L")[-1].endswith(" 1000")
    assert not runs[1].split("L")[-1].endswith(" 1000")
