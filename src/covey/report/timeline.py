"""When groups enter and are dropped: the stretches of a path on which each group is in the model."""

from __future__ import annotations

import numpy as np

from covey.report.drawing import Ticks, Vector
from covey.report.numbers import time
from covey.report.page import escape
from covey.report.traces import Frames, GroupTrace

__all__ = ["count_ticks", "stretches", "timeline"]

# The most rows of the timeline.
MOST_ROWS = 30
MOST_COLOURED = 7

# The least distance of the numbers along the top, relative to the width.
COUNT_GAP = 0.045


def stretches(group: GroupTrace, frames: Frames) -> list[tuple[int, int]]:
    """First and last frame of every stretch on which a group is in the path's model, not counting the fitted model.

    A group that is dropped and wakes up again has several stretches.
    """
    n_frames = len(frames.times) - (1 if frames.apart else 0)
    awake = np.zeros(n_frames + 2, dtype=int)
    awake[1 + group.first : -1] = group.strengths[: max(n_frames - group.first, 0)] > 0
    turns = np.diff(awake)
    begins, ends = np.flatnonzero(turns == 1), np.flatnonzero(turns == -1) - 1
    return list(zip(begins.tolist(), ends.tolist(), strict=True))


def count_ticks(frames: Frames, x: Vector) -> Ticks:
    """The number of groups in the model wherever it changes, thinned out to stay readable."""
    changes = np.flatnonzero(np.diff(frames.awake, prepend=-1))
    found: Ticks = []
    for i in sorted({*changes.tolist(), len(x) - 1}, reverse=True):
        if not found or found[-1][0] - x[i] >= COUNT_GAP:
            found.append((float(x[i]), str(frames.awake[i])))
    return found[::-1]


def timeline(frames: Frames, x: Vector, level_end: float) -> str:
    """One row per group in the order in which they woke up: a line while it is in, a cross where it is dropped.

    Parameters
    ----------
    frames : Frames
        Frames of a stepwise path.
    x : ndarray
        Positions of the frames, between 0 and 1.
    level_end : float
        How far the path's last model extends.
    """
    shown = [(i, group) for i, group in enumerate(frames.groups) if group.strengths.any()][:MOST_ROWS]
    shown.sort(key=lambda one: (one[1].first, one[0]))
    rows = "".join(_row(i, group, frames, x, level_end) for i, group in shown)
    left_out = len(frames.groups) - len(shown)
    more = f'<p class="note">{left_out} weaker groups are not drawn here.</p>' if left_out > 0 else ""
    return (
        '<p class="ylabel">Groups in the model: a line starts where a group wakes up, <span class="cross">×</span> '
        "marks where it is dropped, ● the fitted model</p>"
        f'<ol class="timeline">{rows}</ol>{more}'
    )


def _row(i: int, group: GroupTrace, frames: Frames, x: Vector, level_end: float) -> str:
    colour = f"c{i + 1}" if i < MOST_COLOURED else "grey"
    runs, last = stretches(group, frames), len(frames.times) - (2 if frames.apart else 1)
    chosen = group.strength(frames.chosen) > 0
    lines, crosses, said = "", "", []
    for begin, end in runs:
        to = level_end if end == last else float(x[end + 1])
        lines += f"M{1000 * x[begin]:.0f} 5H{1000 * to:.0f}"
        said.append(f"in from {time(float(frames.times[begin]))}")
        if end < last or not chosen:
            crosses += f'<b class="cross" style="left:{100 * to:.2f}%">×</b>'
            said.append("dropped for the fitted model" if end == last else f"dropped at {time(frames.times[end + 1])}")
    if chosen:
        crosses += f'<i class="dot {colour}" style="left:100%"></i>'
        said.append("in the fitted model")
    start = float(x[runs[0][0]]) if runs else 1.0
    place = f"left:{100 * start:.2f}%" if start < 0.6 else f"right:{100 * (1 - start):.2f}%"
    words = f"{group.name}: {', '.join(said)}"
    return (
        f'<li title="{escape(words)}"><span class="sr">{escape(words)}</span>'
        f'<bdi class="who" style="{place}" aria-hidden="true">{escape(group.name)}</bdi>'
        '<svg viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<path class="line {colour}" d="{lines}"/></svg><span aria-hidden="true">{crosses}</span></li>'
    )
