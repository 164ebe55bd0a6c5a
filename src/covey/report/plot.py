"""The two plots of a fit's report, drawn as SVG that stretches with the page.

Lines live in a square of 1000 by 1000 that is stretched to whatever room there is, with strokes of constant width;
text and dots are HTML on top, placed in per cent. So text has one size on a phone, a screen and paper, and no script
is needed to fit the page.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from covey.report.axis import Axis, round_ticks
from covey.report.curve import Curve
from covey.report.numbers import iteration
from covey.report.page import escape
from covey.report.traces import LEAD_IN, Frames, GroupTrace

__all__ = ["MOST_NAMED", "curve_axis", "curve_plot", "path_plot", "strength_axis", "swatch", "time_axis"]

# Groups with a colour and a label of their own; further ones are grey.
MOST_NAMED = 7

# Lines beyond these would only blacken the plot.
MOST_DRAWN = 250

# From here on a linear axis shows the first groups in its first few per cent, and a logarithmic one is drawn.
WIDE_RANGE = 25.0

# How much of the curve is drawn beyond the end of the path, in parts of the path.
FURTHER = 0.6

# Labels at the right end are at least this far apart, in parts of the height (of 18 rem: 1.2 rem).
LABEL_GAP = 0.068

Vector = NDArray[np.float64]


def time_axis(frames: Frames, curve: Curve | None) -> Axis:
    """From a little before anything happens to the end of the path, and further where the curve goes on."""
    marks = [float(frames.times[frames.chosen]), *(curve.rules.values() if curve is not None else ())]
    end = max(float(frames.times[-1]), 1.0)
    first_wake = min((group.woke for group in frames.groups), default=end)
    low = max(float(frames.times[0]), min(LEAD_IN * first_wake, *(0.95 * mark for mark in marks)))
    low = min(low, 0.9 * end)
    high = end if curve is None else max(end, min(float(curve.times[-1]), end + FURTHER * (end - low)))
    return Axis(low, high, log=low > 0 and high > WIDE_RANGE * low)


def strength_axis(frames: Frames) -> Axis:
    """From zero to a little above the strongest group."""
    top = max((float(group.strengths.max(initial=0)) for group in frames.groups), default=0.0)
    return Axis(0.0, 1.05 * top if top > 0 else 1.0)


def curve_axis(curve: Curve, axis: Axis) -> Axis:
    """Around the values in sight; an error that grows without limit later on is cut off."""
    seen = (curve.times >= axis.low) & (curve.times <= axis.high)
    values = curve.values[seen] if seen.any() else curve.values
    band = np.zeros_like(values) if curve.band is None else (curve.band[seen] if seen.any() else curve.band)
    upper, best = values + band, int(np.argmin(values))
    low, high = float((values - band).min()), float(upper.max())
    if best > 0:
        high = min(high, max(upper[0], upper[best], values[best] + 1.8 * (values[0] - values[best])))
    margin = 0.06 * (high - low) or max(abs(high), 1.0)
    return Axis(low - margin, high + margin)


def path_plot(frames: Frames, times: Axis, strengths: Axis, chosen_label: str, restarted: Sequence[float] = ()) -> str:
    """Strength of every group against time."""
    x = times.position(frames.times)
    drawn = list(enumerate(frames.groups[:MOST_DRAWN]))
    breaks = np.searchsorted(frames.times, restarted)
    lines = "".join(_line(i, group, x, strengths, breaks) for i, group in reversed(drawn))
    named = drawn[:MOST_NAMED]
    mark = float(x[frames.chosen])
    ends = _end_labels([(group.name, float(group.strengths[-1]), i) for i, group in named], strengths)
    dots = "".join(_dot(i, mark, group.strength(frames.chosen), strengths) for i, group in named)
    n_drawn = len(drawn)
    description = (
        f"Line plot: strength of {n_drawn} group{'s' if n_drawn != 1 else ''} against the iteration. "
        f"{chosen_label}. {_restart_words(restarted)}The values are in the table of selected groups below."
    )
    return _plot(
        "path-plot",
        description,
        f"{_grid(times, strengths)}{lines}{_restarts(restarted, times)}{_rule(mark, 'chosen')}",
        f"{_ticks(times, strengths)}{_restart_labels(restarted, times)}{ends}{_cursor(mark)}{dots}",
    )


def curve_plot(
    curve: Curve, times: Axis, scores: Axis, mark: float, time: float, restarted: Sequence[float] = ()
) -> str:
    """The stopping rule's score against time, with its band and the times that rules choose."""
    seen = (curve.times >= times.low) & (curve.times <= times.high)
    x = times.position(curve.times[seen])
    y = 1 - scores.position(curve.values[seen])
    band = ""
    if curve.band is not None:
        upper = 1 - scores.position((curve.values + curve.band)[seen])
        lower = 1 - scores.position((curve.values - curve.band)[seen])
        band = f'<path class="band" d="{_points(np.r_[x, x[::-1]], np.r_[upper, lower[::-1]])}z"/>'
    rules = "".join(_rule(float(times.position(at)), f"rule-{escape(name)}") for name, at in curve.rules.items())
    value = float(curve.values[curve.position(time)])
    dot = f'<i class="dot" id="curve-dot" style="{_place(mark, _from_top(value, scores))}"></i>'
    rule_words = "; ".join(f"rule {name} chooses iteration {iteration(at)}" for name, at in curve.rules.items())
    best = float(curve.times[int(np.argmin(curve.values))])
    description = f"Line plot: {curve.label} against the iteration; it is least at iteration {iteration(best)}"
    description += f"; {rule_words}." if rule_words else "."
    return _plot(
        "curve-plot",
        description,
        f'{_grid(times, scores)}{band}<path class="curve" d="{_points(x, y)}"/>{_restarts(restarted, times)}{rules}',
        f"{_ticks(times, scores)}{_rule_labels(curve, times)}{_cursor(mark)}{dot}",
    )


def swatch(i: int) -> str:
    """The line of a group as the table's legend shows it."""
    style = f"c{i + 1}" if i < MOST_NAMED else "grey"
    return f'<svg class="swatch" viewBox="0 0 24 8" aria-hidden="true"><path class="line {style}" d="M0 4H24"/></svg>'


def _line(i: int, group: GroupTrace, x: Vector, strengths: Axis, breaks: NDArray[np.intp]) -> str:
    """A group's line, drawn anew from every break on: a line through it would show a slope where there is a jump."""
    first = max(group.first - 1, 0)
    values = np.concatenate([np.zeros(group.first - first), group.strengths])
    style = f"c{i + 1}" if i < MOST_NAMED else "grey"
    y = 1 - strengths.position(values)
    later = breaks[breaks > first] - first
    parts = "".join(map(_points, np.split(x[first:], later), np.split(y, later)))
    return f'<path class="line {style}" data-line="{i}" d="{parts}"/>'


def _points(x: Vector, y: Vector) -> str:
    """A path through the points, in whole thousandths; points in the middle of a level stretch are left out."""
    across, down = np.rint(1000 * x).astype(int), np.rint(1000 * y).astype(int)
    level = np.zeros(len(down), dtype=bool)
    level[1:-1] = (down[1:-1] == down[:-2]) & (down[1:-1] == down[2:])
    pairs = [f"{a} {b}" for a, b in zip(across[~level], down[~level], strict=True)]
    return f"M{'L'.join(pairs)}" if pairs else ""


def _grid(times: Axis, values: Axis) -> str:
    rows = "".join(f"M0 {1000 * _from_top(v, values):.0f}H1000" for v in _value_ticks(values))
    columns = "".join(f"M{1000 * float(times.position(t)):.0f} 0V1000" for t in times.ticks())
    return f'<path class="grid" d="{rows}{columns}"/>'


def _ticks(times: Axis, values: Axis) -> str:
    across = "".join(
        f'<b class="xtick" style="left:{100 * float(times.position(t)):.2f}%">{t:g}</b>' for t in times.ticks()
    )
    down = "".join(
        f'<b class="ytick" style="top:{100 * _from_top(v, values):.2f}%">{v:g}</b>' for v in _value_ticks(values)
    )
    return f'<span aria-hidden="true">{across}{down}</span>'


def _value_ticks(values: Axis) -> list[float]:
    return round_ticks(values.low, values.high, 5)


def _from_top(value: float, values: Axis) -> float:
    return 1 - float(values.position(value))


def _place(left: float, top: float) -> str:
    return f"left:{100 * left:.2f}%;top:{100 * top:.2f}%"


def _dot(i: int, mark: float, strength: float, strengths: Axis) -> str:
    hidden = "" if strength > 0 else " hidden"
    return f'<i class="dot c{i + 1}" data-dot="{i}" style="{_place(mark, _from_top(strength, strengths))}"{hidden}></i>'


def _cursor(mark: float) -> str:
    return f'<i class="cursor" style="left:{100 * mark:.2f}%"></i>'


def _rule(mark: float, kind: str) -> str:
    return f'<path class="rule {kind}" d="M{1000 * mark:.0f} 0V1000"/>'


def _restarts(restarted: Sequence[float], times: Axis) -> str:
    return "".join(_rule(float(times.position(at)), "restart") for at in restarted)


def _restart_words(restarted: Sequence[float]) -> str:
    return "".join(f"The path was restarted at iteration {iteration(at)}. " for at in restarted)


def _restart_labels(restarted: Sequence[float], times: Axis) -> str:
    places = [float(times.position(at)) for at in restarted]
    labels = "".join(
        f'<b class="rule-label {"before" if place > 0.12 else "after"}" style="left:{100 * place:.2f}%">restarted</b>'
        for place in places
    )
    return f'<span aria-hidden="true">{labels}</span>' if labels else ""


def _rule_labels(curve: Curve, times: Axis) -> str:
    """The rules' names at the top, beside their lines."""
    out: list[str] = []
    for at in sorted(set(curve.rules.values())):
        name = ", ".join(rule for rule, time in curve.rules.items() if time == at)
        place = float(times.position(at))
        side = "before" if place > 0.5 or (place > 0.12 and not out) else "after"
        out.append(f'<b class="rule-label {side}" style="left:{100 * place:.2f}%">{escape(name)}</b>')
    return f'<span aria-hidden="true">{"".join(out)}</span>'


def _end_labels(named: list[tuple[str, float, int]], strengths: Axis) -> str:
    """Names beside the ends of their lines, pushed apart so that they do not overlap."""
    downwards = sorted(named, key=lambda label: -label[1])
    tops = _spread([_from_top(last, strengths) for _, last, _ in downwards])
    labels = "".join(
        f'<b class="end" style="top:{100 * top:.2f}%">{swatch(i)}<bdi>{escape(name)}</bdi></b>'
        for (name, _, i), top in zip(downwards, tops, strict=True)
    )
    return f'<span aria-hidden="true">{labels}</span>'


def _spread(tops: list[float]) -> list[float]:
    """Increasing positions between 0 and 1, moved as little as keeps them a gap apart: down first, then up again."""
    out: list[float] = []
    for top in tops:
        out.append(max(top, out[-1] + LABEL_GAP if out else 0.0))
    ceiling = 1.0
    for k in reversed(range(len(out))):
        out[k] = min(out[k], ceiling)
        ceiling = out[k] - LABEL_GAP
    return out


def _plot(id: str, description: str, drawing: str, overlay: str) -> str:
    return (
        f'<div class="plot" id="{id}"><div class="area">'
        f'<svg role="img" aria-label="{escape(description)}" viewBox="0 0 1000 1000" preserveAspectRatio="none">'
        f"{drawing}</svg>{overlay}</div></div>"
    )
