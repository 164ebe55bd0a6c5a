"""The section on the effects of splines and categories."""

from __future__ import annotations

import numpy as np

from covey.report.axis import Axis
from covey.report.drawing import Ticks, from_top, grid, plot, points, tick_labels
from covey.report.effects import Effect
from covey.report.group_table import short_name
from covey.report.numbers import shown

__all__ = ["effect_section"]


def effect_section(effects: tuple[Effect, ...], unit: str) -> str:
    """The section, without its heading; `unit` is HTML."""
    curves = [one for one in effects if one.is_curve]
    levels = [one for one in effects if not one.is_curve]
    n_refits = max(one.n_refits for one in effects)
    band = (
        f" The band spans the effects in {n_refits} refits, each chosen and fitted without one outer fold; a column "
        "that a refit does not select has zero effect there."
        if n_refits
        else ""
    )
    told = f"<p>The effect of each column on the prediction, in {unit}, with all other columns held fixed.{band}</p>"
    return f"{told}{_curves(curves, unit)}{''.join(map(_contrasts, levels))}"


def _refits(one: Effect) -> str:
    return f' <small class="always">in {one.n_in} of {one.n_refits} refits</small>' if one.n_refits else ""


def _curves(curves: list[Effect], unit: str) -> str:
    """Plots on a common scale."""
    if not curves:
        return ""
    parts = [part for one in curves for part in (one.effect, one.low, one.high) if part is not None]
    low, high = float(min(map(np.min, parts))), float(max(map(np.max, parts)))
    margin = 0.05 * (high - low) or 1.0
    values = Axis(low - margin, high + margin)
    drawn = "".join(_curve(i, one, values) for i, one in enumerate(curves))
    note = '<p class="note">All plots share one scale. Zero is the mean over the rows; bottom ticks are deciles.</p>'
    return f'{note}<div class="effects">{drawn}</div>'


def _curve(i: int, one: Effect, values: Axis) -> str:
    across = Axis(float(one.values[0]), max(float(one.values[-1]), float(one.values[0]) + 1e-12))
    x, y = across.position(one.values), 1 - values.position(one.effect)
    ticks: Ticks = [(float(across.position(v)), f"{v:g}") for v in across.ticks(6)]
    band = ""
    if one.low is not None and one.high is not None:
        upper, lower = 1 - values.position(one.high), 1 - values.position(one.low)
        band = f'<path class="band" d="{points(np.r_[x, x[::-1]], np.r_[upper, lower[::-1]])}z"/>'
    zero = f'<path class="rule" d="M0 {1000 * from_top(0.0, values):.0f}H1000"/>'
    rug = "".join(f"M{1000 * float(across.position(d)):.0f} 1000V970" for d in one.deciles)
    description = (
        f"Line plot: effect of {one.column}, from {shown(float(one.effect[0]))} at {one.values[0]:g} to "
        f"{shown(float(one.effect[-1]))} at {one.values[-1]:g}."
    )
    drawing = (
        f'{grid(ticks, values, 4)}{zero}{band}<path class="curve" d="{points(x, y)}"/><path class="rug" d="{rug}"/>'
    )
    return (
        f'<figure class="effect"><h3><bdi>{short_name(one.column)}</bdi>{_refits(one)}</h3>'
        f"{plot(f'effect-{i}', description, drawing, tick_labels(ticks, values, 4))}</figure>"
    )


def _contrasts(one: Effect) -> str:
    """A table of the levels against the most common one."""
    parts = [part for part in (one.effect, one.low, one.high) if part is not None]
    low, high = min(0.0, *(float(part.min()) for part in parts)), max(0.0, *(float(part.max()) for part in parts))
    axis = Axis(low, high if high > low else low + 1.0)
    rows = "".join(_level(one, k, axis) for k in range(len(one.values)))
    spread = '<th scope="col">refits</th>' if one.low is not None else ""
    return (
        f'<h3><bdi>{short_name(one.column)}</bdi>{_refits(one)}</h3><div class="scroll"><table class="contrasts">'
        f'<thead><tr><th scope="col">level</th><th scope="col">rows</th><th scope="col">against '
        f"<bdi>{short_name(str(one.values[0]))}</bdi></th>{spread}"
        '<th scope="col"><span class="sr">drawn</span></th></tr>'
        f"</thead><tbody>{rows}</tbody></table></div>"
    )


def _level(one: Effect, k: int, axis: Axis) -> str:
    name = f'<th scope="row"><bdi>{short_name(str(one.values[k]))}</bdi></th><td>{one.counts[k]}</td>'
    if k == 0:
        rest = "<td>–</td>" if one.low is not None else ""
        return f"<tr>{name}<td>reference</td>{rest}<td>{_whisker(0.0, 0.0, 0.0, axis)}</td></tr>"
    effect = float(one.effect[k])
    low, high = (effect, effect) if one.low is None or one.high is None else (float(one.low[k]), float(one.high[k]))
    spread = f"<td>{shown(low)} to {shown(high)}</td>" if one.low is not None else ""
    return f"<tr>{name}<td>{shown(effect)}</td>{spread}<td>{_whisker(effect, low, high, axis)}</td></tr>"


def _whisker(effect: float, low: float, high: float, axis: Axis) -> str:
    at, left, right = (100 * float(axis.position(v)) for v in (effect, low, high))
    zero = 100 * float(axis.position(0.0))
    return (
        f'<span class="whisker" aria-hidden="true"><i class="zero" style="left:{zero:.1f}%"></i>'
        f'<i class="range" style="left:{left:.1f}%;width:{right - left:.1f}%"></i>'
        f'<i class="dot" style="left:{at:.1f}%"></i></span>'
    )
