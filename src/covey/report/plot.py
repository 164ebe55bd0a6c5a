"""The two plots of every report, as SVG that stretches with the page: the path, and the errors of the candidates."""

from __future__ import annotations

import numpy as np

from covey.report.axis import Axis
from covey.report.drawing import Ticks, Vector, from_top, grid, mark_label, place, plot, points, rule, tick_labels
from covey.report.numbers import shown
from covey.report.page import escape
from covey.report.timeline import count_ticks, stretches
from covey.report.traces import LEAD_IN, Frames, GroupTrace
from covey.search.chosen import Judged

__all__ = [
    "LEVEL_END",
    "MOST_NAMED",
    "end_labels",
    "judged_plot",
    "path_plot",
    "positions",
    "strength_axis",
    "swatch",
    "time_axis",
]

# Groups with their own colour and label; the others are grey.
MOST_NAMED = 7

# The most lines that a plot can hold and stay readable.
MOST_DRAWN = 120

# The ratio of times from which the axis is logarithmic: on a linear one the first groups would be squeezed together.
WIDE_RANGE = 25.0

# The width of the path if the fitted model is shown separately, and how far its last level extends.
PATH_END, LEVEL_END = 0.9, 0.94

# The top of the plot, relative to the strongest group of the fitted model.
MOST_OUTGROWN = 2.0

# The least distance of labels at the right end, relative to the height (1.2 of 18 rem).
LABEL_GAP = 0.068

# The most numbers below an axis.
MOST_TICKS = 12


def time_axis(frames: Frames) -> Axis:
    """From shortly before the first event to the end of the path, with room for a separate fitted model."""
    end = float(frames.times[-2 if frames.apart else -1]) or 1.0
    first_wake = min((group.woke for group in frames.groups if group.woke > 0), default=end)
    low = min(max(float(frames.times[0]), LEAD_IN * first_wake), 0.9 * end)
    return Axis(low, end, log=low > 0 and end > WIDE_RANGE * low, end=PATH_END if frames.apart else 1.0)


def positions(frames: Frames, times: Axis) -> Vector:
    """Positions of the frames on the time axis; a separate fitted model lies at the right edge."""
    x = times.position(frames.times)
    if frames.apart:
        x[-1] = 1.0
    return x


def strength_axis(frames: Frames) -> Axis:
    """From zero to slightly above the strongest group; strengths far above the fitted model are cut off.

    Least squares on many similar groups can make their strengths arbitrarily large.
    """
    top = max((float(group.strengths.max(initial=0)) for group in frames.groups), default=0.0)
    in_model = max((group.strength(frames.chosen) for group in frames.groups), default=0.0)
    top = min(top, MOST_OUTGROWN * in_model) if in_model > 0 else top
    return Axis(0.0, 1.05 * top if top > 0 else 1.0)


def path_plot(frames: Frames, times: Axis, strengths: Axis) -> str:
    """The strength of every group against time, and in the fitted model."""
    x = positions(frames, times)
    drawn = list(enumerate(frames.groups[:MOST_DRAWN]))
    lines = "".join(_line(i, group, x, strengths, frames) for i, group in reversed(drawn))
    named = [(i, group) for i, group in drawn[:MOST_NAMED] if group.strength(frames.chosen) > 0]
    ends = end_labels([(group.name, group.strength(frames.chosen), i) for i, group in named], strengths)
    dots = "".join(_dot(i, 1.0, group.strength(frames.chosen), strengths) for i, group in drawn[:MOST_NAMED])
    n_drawn = len(drawn)
    description = (
        f"Line plot: strength of {n_drawn} group{'s' if n_drawn != 1 else ''} against time; the fitted model is at the "
        "right edge. The values are in the table of selected groups below."
    )
    ticks: Ticks = [(float(times.position(t)), f"{t:g}") for t in times.ticks()]
    counts = "".join(f'<b class="toptick" style="left:{100 * at:.2f}%">{n}</b>' for at, n in count_ticks(frames, x))
    crosses = "".join(_crosses(group, x, strengths, frames) for _, group in drawn[:MOST_NAMED])
    return plot(
        "path-plot",
        description,
        f"{grid(ticks, strengths)}{lines}{rule(1.0)}",
        f"{tick_labels(ticks, strengths)}"
        f'<span aria-hidden="true"><b class="toptick name">groups</b>{counts}{crosses}</span>'
        f"{mark_label(1.0, 'the model')}{ends}{_cursor(1.0)}{dots}",
    )


def judged_plot(chosen_by: Judged) -> str:
    """The candidates' errors against their number of groups, with the chosen model marked."""
    across, ticks = _judged_axis(chosen_by)
    values = _judged_values(chosen_by)
    y = 1 - values.position(chosen_by.values)
    band = ""
    if chosen_by.band is not None:
        upper = 1 - values.position(chosen_by.values + chosen_by.band)
        lower = 1 - values.position(chosen_by.values - chosen_by.band)
        band = f'<path class="band" d="{points(np.r_[across, across[::-1]], np.r_[upper, lower[::-1]])}z"/>'
    order = np.argsort(chosen_by.x)
    mark = float(np.interp(chosen_by.at, chosen_by.x[order], across[order]))
    dot = f'<i class="dot" id="chosen-dot" style="{place(mark, from_top(chosen_by.value, values))}"></i>'
    best = float(chosen_by.x[int(np.argmin(chosen_by.values))])
    description = (
        f"Line plot: {chosen_by.label} against the number of groups; it is lowest at {best:g}, and the model has "
        f"{chosen_by.at:g} at {shown(chosen_by.value, 4)}."
    )
    return plot(
        "judged-plot",
        description,
        f'{grid(ticks, values)}{band}<path class="curve" d="{points(across, y)}"/>{rule(mark)}',
        f"{tick_labels(ticks, values)}{mark_label(mark, 'the model')}{dot}",
    )


def _judged_axis(chosen_by: Judged) -> tuple[Vector, Ticks]:
    """Positions and ticks: numbers of groups are evenly spaced, since 300 may follow 12."""
    x = chosen_by.x
    across = np.linspace(0, 1, x.size) if x.size > 1 else np.array([0.5])
    step = -(-x.size // MOST_TICKS)
    return across, [(float(at), f"{k:g}") for at, k in zip(across[::step], x[::step], strict=True)]


def _judged_values(chosen_by: Judged) -> Axis:
    """The range of the values; errors far above the best candidate's are cut off."""
    values = chosen_by.values
    band = np.zeros_like(values) if chosen_by.band is None else chosen_by.band
    upper, best = values + band, int(np.argmin(values))
    low, high = float((values - band).min()), float(upper.max())
    if best > 0:
        high = min(high, max(upper[0], upper[best], values[best] + 1.8 * (values[0] - values[best])))
    low, high = min(low, chosen_by.value), max(high, chosen_by.value)
    margin = 0.06 * (high - low) or max(abs(high), 1.0)
    return Axis(low - margin, high + margin)


def swatch(i: int) -> str:
    """A sample of a group's line, for the table."""
    style = f"c{i + 1}" if i < MOST_NAMED else "grey"
    return f'<svg class="swatch" viewBox="0 0 24 8" aria-hidden="true"><path class="line {style}" d="M0 4H24"/></svg>'


def _line(i: int, group: GroupTrace, x: Vector, strengths: Axis, frames: Frames) -> str:
    """A group's line along the path, in steps if models are constant between times."""
    if frames.stepwise:
        drawn = "".join(_steps(group, run, x, strengths, frames) for run in stretches(group, frames))
    else:
        first = max(group.first - 1, 0)
        values = np.concatenate([np.zeros(group.first - first), group.strengths])
        drawn = points(x[first:], 1 - strengths.position(values))
    style = f"c{i + 1}" if i < MOST_NAMED else "grey"
    return f'<path class="line {style}" data-line="{i}" d="{drawn}"/>'


def _steps(group: GroupTrace, run: tuple[int, int], x: Vector, strengths: Axis, frames: Frames) -> str:
    """One stretch of a stepwise path: up where the group enters, down if it is dropped along the path."""
    begin, end = run
    levels = 1 - strengths.position(group.strengths[begin - group.first : end - group.first + 1])
    across = np.append(np.repeat(x[begin : end + 1], 2)[1:], _end_of(run, x, frames))
    across, down = np.r_[across[0], across], np.r_[1.0, np.repeat(levels, 2)]
    if _dropped_on_the_way(run, frames):
        across, down = np.append(across, across[-1]), np.append(down, 1.0)
    return points(across, down)


def _end_of(run: tuple[int, int], x: Vector, frames: Frames) -> float:
    if _dropped_on_the_way(run, frames):
        return float(x[run[1] + 1])
    return LEVEL_END if frames.apart else 1.0


def _dropped_on_the_way(run: tuple[int, int], frames: Frames) -> bool:
    return run[1] + 1 < len(frames.times) - (1 if frames.apart else 0)


def _crosses(group: GroupTrace, x: Vector, strengths: Axis, frames: Frames) -> str:
    """Crosses where a group is dropped, along the path or in the fitted model."""
    if not frames.stepwise:
        return ""
    chosen, made = group.strength(frames.chosen) > 0, ""
    for run in stretches(group, frames):
        if _dropped_on_the_way(run, frames) or (frames.apart and not chosen):
            top = from_top(group.strength(run[1]), strengths)
            made += f'<b class="cross" style="{place(_end_of(run, x, frames), top)}">×</b>'
    return made


def _dot(i: int, mark: float, strength: float, strengths: Axis) -> str:
    hidden = "" if strength > 0 else " hidden"
    return f'<i class="dot c{i + 1}" data-dot="{i}" style="{place(mark, from_top(strength, strengths))}"{hidden}></i>'


def _cursor(mark: float) -> str:
    return f'<i class="cursor" style="left:{100 * mark:.2f}%"></i>'


def end_labels(named: list[tuple[str, float, int]], strengths: Axis) -> str:
    """Names next to the ends of their lines, moved apart so that they do not overlap."""
    downwards = sorted(named, key=lambda label: -label[1])
    tops = _spread([from_top(last, strengths) for _, last, _ in downwards])
    labels = "".join(
        f'<b class="end" style="top:{100 * top:.2f}%">{swatch(i)}<bdi>{escape(name)}</bdi></b>'
        for (name, _, i), top in zip(downwards, tops, strict=True)
    )
    return f'<span aria-hidden="true">{labels}</span>'


def _spread(tops: list[float]) -> list[float]:
    """Increasing positions between 0 and 1, moved down and then up until they are at least a gap apart."""
    out: list[float] = []
    for top in tops:
        out.append(max(top, out[-1] + LABEL_GAP if out else 0.0))
    ceiling = 1.0
    for k in reversed(range(len(out))):
        out[k] = min(out[k], ceiling)
        ceiling = out[k] - LABEL_GAP
    return out
