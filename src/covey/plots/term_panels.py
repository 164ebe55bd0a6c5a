"""Panels of single effects: curves, levels, seasons, and pairs as heat maps, curves per level or tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import matplotlib.dates as mdates
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from covey.plots.style import GREY, MARK, colour, label_ends, plain
from covey.terms.effects import Effect
from covey.terms.parts import Axis
from covey.validation import Array, FloatArray

# Levels in one panel, and curves with a colour.
MOST_LEVELS, MOST_CURVES = 14, 6
# Cells of a table that have their number written in.
MOST_WRITTEN = 42
# Longer names of variables and levels would leave no room for what is drawn.
LONGEST, LONGEST_LEVEL = 26, 18
# The least distance of names at the ends of curves, relative to the height of a small panel.
LABEL_GAP = 0.08
DIVERGING = "RdBu_r"


def _labels(axis: Axis) -> list[str]:
    return [plain(label, LONGEST_LEVEL) for label in axis.labels]


# Rows to draw into a map: the values of its two variables.
Dots: TypeAlias = tuple[ArrayLike, ArrayLike] | None


def draw_panel(
    ax: Axes, effect: Effect, output: int, limits: tuple[float, float], dots: Dots, scale: str
) -> tuple[str, str]:
    """Draw the effect of a variable, or of a pair on one output; returns the labels of the two axes.

    A variable is a curve, or a point per level; a pair is a heat map, one curve per level, or a table. `scale` is the
    label of the axis on which effects are.
    """
    first, second = effect.axes[0], effect.axes[-1]
    if len(effect.axes) == 1 and first.has_levels:
        return _draw_levels(ax, effect, limits) or scale, ""
    if len(effect.axes) == 1:
        _draw_curve(ax, effect, limits)
        return plain(first.name, LONGEST), scale
    values = effect.by_output(effect.effect)[..., output]
    if first.has_levels and second.has_levels:
        _draw_table(ax, effect, values)
        return plain(second.name, LONGEST), plain(first.name, LONGEST)
    if first.has_levels or second.has_levels:
        number, levels = (second, first) if first.has_levels else (first, second)
        _draw_curves(ax, number, levels, values.T if number is first else values, limits)
        return plain(number.name, LONGEST), scale
    _draw_map(ax, first, second, values, dots)
    return plain(first.name, LONGEST), plain(second.name, LONGEST)


def _draw_curve(ax: Axes, effect: Effect, limits: tuple[float, float]) -> None:
    axis = effect.axes[0]
    x = _positions(axis, axis.values)
    ax.axhline(0.0, color=MARK, lw=0.8, ls=":")
    values = effect.by_output(effect.effect)
    for k in range(values.shape[1]):
        if effect.low is not None and effect.high is not None:
            low, high = (effect.by_output(band)[:, k] for band in (effect.low, effect.high))
            ax.fill_between(x, low, high, color=colour(k), alpha=0.18, lw=0)
        ax.plot(x, values[:, k], color=colour(k), lw=1.8)
    _rug(ax, axis)
    ax.set_ylim(*limits)
    ax.margins(x=0.02)
    if effect.missing is not None:
        for k, value in enumerate(np.atleast_1d(effect.missing)):
            ax.plot(
                [1.0], [value], "o", color=colour(k), mfc="white", ms=5, transform=ax.get_yaxis_transform(),
                clip_on=False, zorder=4,
            )  # fmt: skip
        first = float(np.atleast_1d(effect.missing)[0])
        up = first < np.mean(limits)
        ax.annotate(
            "missing", (1.0, first), xycoords=("axes fraction", "data"), xytext=(2, 6 if up else -6),
            textcoords="offset points", ha="right", va="bottom" if up else "top", fontsize=7, color=MARK,
        )  # fmt: skip
    _format(ax, axis)


def _draw_levels(ax: Axes, effect: Effect, limits: tuple[float, float]) -> str:
    """Points from top to bottom, with the numbers of rows; returns how many levels are not shown, in words."""
    axis, values = effect.axes[0], effect.by_output(effect.effect)
    shown = np.arange(len(axis.values)) if axis.counts is None else axis.commonest(MOST_LEVELS)
    labels = _labels(axis)
    if axis.counts is not None:
        labels = [f"{label} ({count})" for label, count in zip(labels, axis.counts, strict=True)]
    at = np.arange(len(shown))
    ax.axvline(0.0, color=MARK, lw=0.8, ls=":")
    ax.hlines(at, *limits, color=GREY, lw=0.4, alpha=0.6)
    n_outputs = values.shape[1]
    for k in range(n_outputs):
        place = at + (0.0 if n_outputs == 1 else 0.5 * (k - (n_outputs - 1) / 2) / n_outputs)
        if effect.low is not None and effect.high is not None:
            low, high = (effect.by_output(band)[shown, k] for band in (effect.low, effect.high))
            ax.hlines(place, low, high, color=colour(k), lw=3, alpha=0.3)
        ax.plot(values[shown, k], place, "o", color=colour(k), ms=5)
    left = len(axis.values) - len(shown)
    ax.set_yticks(at, [labels[j] for j in shown], fontsize=8 if len(shown) <= 8 else 7)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.set_xlim(*limits)
    ax.xaxis.set_major_locator(MaxNLocator(5))
    return f"{left} rarer level{'s' * (left > 1)} not shown" if left else ""


def _draw_curves(ax: Axes, number: Axis, levels: Axis, curves: FloatArray, limits: tuple[float, float]) -> None:
    """One curve per level over a number; the most common levels have colours and names."""
    x = _positions(number, number.values)
    named = levels.commonest(MOST_CURVES)
    for j in np.setdiff1d(np.arange(len(curves)), named):
        ax.plot(x, curves[j], color=GREY, lw=0.8)
    for i, j in enumerate(named):
        ax.plot(x, curves[j], color=colour(i), lw=1.6)
    _rug(ax, number)
    ax.set_ylim(*limits)
    ax.margins(x=0.02)
    ax.axhline(0.0, color=MARK, lw=0.8, ls=":")
    labels = _labels(levels)
    label_ends(ax, [labels[j] for j in named], np.clip(curves[named, -1], *limits), LABEL_GAP)
    _format(ax, number)


def _draw_map(ax: Axes, first: Axis, second: Axis, values: FloatArray, dots: Dots) -> None:
    """A heat map with contours, white at zero."""
    x, y = _positions(first, first.values), _positions(second, second.values)
    most = float(np.abs(values).max()) or 1.0
    drawn = ax.pcolormesh(x, y, values.T, cmap=DIVERGING, vmin=-most, vmax=most, shading="gouraud", rasterized=True)
    if np.ptp(values) > 1e-9 * most:
        lines = ax.contour(x, y, values.T, levels=6, colors=MARK, linewidths=0.6)
        ax.clabel(lines, fontsize=6, inline_spacing=2)
    if dots is not None:
        ax.plot(_positions(first, dots[0]), _positions(second, dots[1]), ".", color="black", ms=2.5, alpha=0.35)
    else:
        _rug(ax, first)
        _rug(ax, second, vertical=True)
    ax.set_xlim(x[0], x[-1])
    ax.set_ylim(y[0], y[-1])
    figure = ax.get_figure()
    assert figure is not None
    figure.colorbar(drawn, ax=ax, pad=0.02, shrink=0.9).ax.tick_params(labelsize=7)
    _format(ax, first)
    _format(ax, second, vertical=True)


def _draw_table(ax: Axes, effect: Effect, values: FloatArray) -> None:
    """A table of coloured cells, with numbers if there are few; cells without rows are white."""
    first, second = effect.axes
    assert effect.empty is not None
    rows, columns = (axis.commonest(MOST_LEVELS) for axis in (first, second))
    cells = np.ma.array(values, mask=effect.empty)[np.ix_(rows, columns)]
    most = float(np.abs(cells).max()) or 1.0
    ax.imshow(cells, cmap=DIVERGING, vmin=-most, vmax=most, aspect="auto")
    tall, wide = _labels(first), _labels(second)
    turned = sum(len(wide[j]) for j in columns) > 24
    ax.set_xticks(
        np.arange(len(columns)), [wide[j] for j in columns], fontsize=8, rotation=35 if turned else 0,
        ha="right" if turned else "center",
    )  # fmt: skip
    ax.set_yticks(np.arange(len(rows)), [tall[j] for j in rows], fontsize=8)
    ax.tick_params(length=0)
    if cells.size <= MOST_WRITTEN:
        for (i, j), value in np.ma.ndenumerate(cells):
            dark = abs(value) > 0.6 * most
            ax.text(j, i, f"{value:.3g}", ha="center", va="center", fontsize=7, color="white" if dark else "black")


def _rug(ax: Axes, axis: Axis, vertical: bool = False) -> None:
    """Ticks at the edge, where the rows are."""
    if axis.quantiles is not None:
        at, edge = _positions(axis, axis.quantiles), np.zeros(len(axis.quantiles))
        mark, transform = ("_", ax.get_yaxis_transform()) if vertical else ("|", ax.get_xaxis_transform())
        ax.plot(*((edge, at) if vertical else (at, edge)), mark, color=MARK, ms=7, alpha=0.6, transform=transform)


def _positions(axis: Axis, values: ArrayLike) -> Array:
    """Values as numbers on an axis of matplotlib."""
    if axis.kind in ("date", "season"):
        return np.asarray(mdates.date2num(np.asarray(values, dtype="datetime64[s]")))
    return np.asarray(values, dtype=float)


def _format(ax: Axes, axis: Axis, vertical: bool = False) -> None:
    """Dates and seasons as such; few ticks otherwise."""
    side = ax.yaxis if vertical else ax.xaxis
    if axis.kind == "season":
        of_year = np.ptp(axis.values.astype("datetime64[h]").astype(int)) > 24
        side.set_major_locator(
            mdates.MonthLocator(bymonth=(1, 4, 7, 10)) if of_year else mdates.HourLocator((0, 6, 12, 18))
        )
        side.set_major_formatter(mdates.DateFormatter("%b" if of_year else "%H:00"))
    elif axis.kind == "date":
        locator = mdates.AutoDateLocator(minticks=3, maxticks=7)  # fewer leave 30 months without an interval
        side.set_major_locator(locator)
        side.set_major_formatter(mdates.ConciseDateFormatter(locator))
    else:
        side.set_major_locator(MaxNLocator(5))


def common_limits(effects: Sequence[Effect]) -> tuple[float, float]:
    """One scale for all panels, with a margin."""
    parts = [np.ravel(part) for one in effects for part in (one.effect, one.low, one.high) if part is not None]
    every = np.concatenate([np.zeros(1), *parts])
    low, high = float(every.min()), float(every.max())
    margin = 0.08 * (high - low) or 1.0
    return low - margin, high + margin
