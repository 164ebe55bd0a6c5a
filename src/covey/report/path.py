"""The path as the report draws it: strengths against time, when groups enter and are dropped, and training errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from covey.designs import as_design
from covey.report.drawing import Axis, Plot, Ticks, Vector, steps
from covey.report.page import MOST_COLOURS, colour
from covey.report.quality import coded, is_squared, null_error
from covey.report.traces import LEAD_IN, Frames, GroupTrace
from covey.validation import FloatArray, MatrixLike, PerRow

# The most lines that a plot can hold and stay readable, and the most lines of the timeline.
MOST_DRAWN, MOST_LINES = 120, 30

# The ratio of times from which the axis is logarithmic: on a linear one the first groups would be squeezed together.
WIDE_RANGE = 25.0

# The width of the path, how far its last level extends, and the position of the fitted model.
PATH_END, LEVEL_END, MODEL = 0.9, 0.94, 1.0

# The top of the plot, relative to the strongest group of the fitted model.
MOST_OUTGROWN = 2.0

# The least distance of the numbers along the top, relative to the width.
COUNT_GAP = 0.045

WIDTH = Axis(0.0, 1.0)


def time_axis(frames: Frames) -> Axis:
    """From shortly before the first event to the end of the path, with room for the fitted model."""
    end = float(frames.times[-2]) or 1.0
    first_wake = min((group.woke for group in frames.groups if group.woke > 0), default=end)
    low = min(max(float(frames.times[0]), LEAD_IN * first_wake), 0.9 * end)
    return Axis(low, end, log=low > 0 and end > WIDE_RANGE * low, end=PATH_END)


def positions(frames: Frames, times: Axis) -> Vector:
    """Positions of the frames on the time axis; the fitted model lies at the right edge."""
    x = times.position(frames.times)
    x[-1] = MODEL
    return x


def strength_axis(frames: Frames) -> Axis:
    """From zero to slightly above the strongest group; strengths far above the fitted model are cut off.

    Least squares on many similar groups can make their strengths arbitrarily large.
    """
    top = max((float(group.strengths.max(initial=0)) for group in frames.groups), default=0.0)
    in_model = max((group.strength(frames.chosen) for group in frames.groups), default=0.0)
    top = min(top, MOST_OUTGROWN * in_model) if in_model > 0 else top
    return Axis(0.0, 1.05 * top if top > 0 else 1.0)


class Stretch(NamedTuple):
    """Frames on which a group is in the path's model: the first and the last, and how its line ends."""

    begin: int
    end: int
    to: float  # the position where the line ends
    dropped: bool  # whether the group is dropped there, along the path


def stretches(group: GroupTrace, frames: Frames, x: Vector) -> list[Stretch]:
    """All stretches of a group, not counting the fitted model; several if it is dropped and wakes up again."""
    awake = np.zeros(frames.chosen + 2, dtype=int)
    awake[1 + group.first : -1] = group.strengths[: max(frames.chosen - group.first, 0)] > 0
    turns, found = np.diff(awake), []
    for begin, after in zip(np.flatnonzero(turns == 1).tolist(), np.flatnonzero(turns == -1).tolist(), strict=True):
        dropped = after < frames.chosen
        found.append(Stretch(begin, after - 1, float(x[after]) if dropped else LEVEL_END, dropped))
    return found


def path_view(frames: Frames, along: Along | None) -> dict[str, object]:
    """The plot of the path and what lies around it: counts, crosses, timeline, and the plot of training errors."""
    times, strengths = time_axis(frames), strength_axis(frames)
    x, shown = positions(frames, times), list(enumerate(frames.groups[:MOST_DRAWN]))
    n, named = len(shown), [(i, group, group.strength(frames.chosen)) for i, group in shown[:MOST_COLOURS]]
    description = (
        f"Line plot: strength of {n} group{'s' if n != 1 else ''} against time; the fitted model is at the right edge. "
        "The values are in the table of selected groups below."
    )
    ticks = [(float(times.position(t)), f"{t:g}") for t in times.ticks()]
    plot = Plot("path-plot", description, WIDTH, strengths, ticks=ticks)
    for i, group in reversed(shown):
        plot.line(f"line {colour(i)}", *_levels(group, x, frames), group=i)
    plot.mark_model(MODEL)
    plot.name_ends((group.name, strength, i) for i, group, strength in named if strength > 0)
    crosses = [
        (one.to, float(plot.top(group.strength(one.end))))
        for _, group, strength in named
        for one in stretches(group, frames, x)
        if one.dropped or strength == 0
    ]
    drawn = [(i, group) for i, group in enumerate(frames.groups) if group.strengths.any()][:MOST_LINES]
    drawn.sort(key=lambda one: (one[1].first, one[0]))
    return {
        "plot": plot,
        "dots": [(i, float(plot.top(strength)), strength > 0) for i, _, strength in named],
        "counts": count_ticks(frames, x),
        "crosses": crosses,
        "xlabel": "time (log scale)" if times.log else "time",
        "timeline": [_timeline(i, group, frames, x) for i, group in drawn],
        "n_undrawn": len(frames.groups) - len(drawn),
        "along": None if along is None else _along_plot(along, x, ticks),
    }


def count_ticks(frames: Frames, x: Vector) -> Ticks:
    """The number of groups in the model wherever it changes, thinned out to stay readable."""
    changes = np.flatnonzero(np.diff(frames.awake, prepend=-1))
    found: Ticks = []
    for i in sorted({*changes.tolist(), len(x) - 1}, reverse=True):
        if not found or found[-1][0] - x[i] >= COUNT_GAP:
            found.append((float(x[i]), str(frames.awake[i])))
    return found[::-1]


def _levels(group: GroupTrace, x: Vector, frames: Frames) -> list[tuple[Vector, Vector]]:
    """The steps of each stretch: up where the group enters, down if it is dropped along the path."""
    found = []
    for begin, end, to, dropped in stretches(group, frames, x):
        levels = group.strengths[begin - group.first : end - group.first + 1]
        across, up = steps(x[begin : end + 1], levels, to)
        found.append((np.r_[across[0], across, [to] * dropped], np.r_[0.0, up, [0.0] * dropped]))
    return found


def _timeline(i: int, group: GroupTrace, frames: Frames, x: Vector) -> dict[str, object]:
    """A group of the timeline: where and when it enters, and where and when it is dropped along the path."""
    runs = [
        (float(x[begin]), to, frames.times[begin], frames.times[end + 1] if dropped else None)
        for begin, end, to, dropped in stretches(group, frames, x)
    ]
    return {"name": group.name, "colour": colour(i), "runs": runs, "in_model": group.strength(frames.chosen) > 0}


@dataclass(frozen=True)
class Along:
    """Errors on the training rows, at every frame."""

    deviance: FloatArray  # relative to the deviance of the best constant
    wrong: FloatArray | None  # for classes: the share of misclassified rows

    def words(self, frame: int) -> str:
        """The text for a frame."""
        text = f"deviance {self.deviance[frame]:.0%} of the constant's"
        return text if self.wrong is None else f"{text}, {self.wrong[frame]:.1%} of rows misclassified"


def along_the_path(
    model: BaseEstimator, X: MatrixLike | None, y: PerRow, weight: PerRow, offset: PerRow, frames: Frames
) -> Along | None:
    """The training errors at the frames' times.

    None for squared loss, where the strengths already show the plateaus, and for survival times, where no constant
    gives a deviance to compare with.
    """
    loss, path = model.loss_, model.path_
    if X is None or y is None or is_squared(model) or loss.survival:
        return None
    design, response = as_design(X), coded(model, y)
    q = np.ones(len(response)) if weight is None else np.asarray(weight, dtype=float)
    q = q / q.sum()
    shift = np.zeros((len(q), 1)) if offset is None else np.asarray(offset, dtype=float).reshape(len(q), -1)
    shift = shift if loss.vector else shift[:, 0]
    deviance, wrong = [], []
    for time in frames.times:
        coef, intercept = path.model(path.index(time))
        coef = np.atleast_2d(coef)
        used = np.flatnonzero(coef.any(axis=0))
        eta = np.asarray(design.predict(used, coef[:, used], np.atleast_1d(intercept)))
        eta = (eta if loss.vector else eta[:, 0]) + shift
        deviance.append(float(loss.on(response, q).deviance(eta)))
        if hasattr(model, "classes_"):
            fitted = loss.with_thresholds(response, eta, q) if loss.coupled else loss
            likeliest = fitted.probabilities(eta.reshape(len(q), -1)).argmax(axis=1)
            wrong.append(float(q @ (likeliest != loss.classes(response))))
    share = np.array(deviance) / (null_error(model, y, weight, offset) or 1.0)
    return Along(share, np.array(wrong) if hasattr(model, "classes_") else None)


def _along_plot(along: Along, x: Vector, ticks: Ticks) -> Plot:
    """The training errors against time, on the axis of the path."""
    errors = [along.deviance] if along.wrong is None else [along.deviance, along.wrong]
    what = "deviance" if along.wrong is None else "deviance and share of misclassified rows"
    end = ", ".join(f"{error[-1]:.3g}" for error in errors)
    description = f"Line plot: {what} on the training rows against time; {end} at the fitted model."
    values = Axis(0.0, 1.05 * float(max(error.max() for error in errors)))
    plot = Plot("along-plot", description, WIDTH, values, ticks=ticks)
    for i, error in enumerate(errors):
        plot.line(f"line {colour(i)}", steps(x[:-1], error[:-1], LEVEL_END))
        plot.dot(colour(i), MODEL, error[-1])
    plot.mark_model(MODEL)
    return plot
