"""Elements of the report's plots: grids, ticks, lines and marks.

Lines are drawn in a 1000 by 1000 square that stretches to the available space, with strokes of constant width. Text and
dots are HTML on top, positioned in per cent, so that text has the same size on phones, screens and paper without a
script.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from covey.report.axis import Axis, round_ticks
from covey.report.page import escape

__all__ = ["Ticks", "Vector", "from_top", "grid", "mark_label", "place", "plot", "points", "rule", "tick_labels"]

Vector = NDArray[np.float64]
Ticks = list[tuple[float, str]]


def points(x: Vector, y: Vector) -> str:
    """An SVG path through the points, in integer thousandths; interior points of level stretches are left out."""
    across, down = np.rint(1000 * x).astype(int), np.rint(1000 * y).astype(int)
    level = np.zeros(len(down), dtype=bool)
    level[1:-1] = (down[1:-1] == down[:-2]) & (down[1:-1] == down[2:])
    pairs = [f"{a} {b}" for a, b in zip(across[~level], down[~level], strict=True)]
    return f"M{'L'.join(pairs)}" if pairs else ""


def grid(ticks: Ticks, values: Axis, most: int = 5) -> str:
    """Horizontal lines at up to `most` round values, and vertical lines at the ticks."""
    rows = "".join(f"M0 {1000 * from_top(v, values):.0f}H1000" for v in _value_ticks(values, most))
    columns = "".join(f"M{1000 * x:.0f} 0V1000" for x, _ in ticks)
    return f'<path class="grid" d="{rows}{columns}"/>'


def tick_labels(ticks: Ticks, values: Axis, most: int = 5) -> str:
    """The numbers on both axes."""
    across = "".join(f'<b class="xtick" style="left:{100 * x:.2f}%">{label}</b>' for x, label in ticks)
    down = "".join(
        f'<b class="ytick" style="top:{100 * from_top(v, values):.2f}%">{v:g}</b>' for v in _value_ticks(values, most)
    )
    return f'<span aria-hidden="true">{across}{down}</span>'


def _value_ticks(values: Axis, most: int) -> list[float]:
    return round_ticks(values.low, values.high, most)


def from_top(value: float, values: Axis) -> float:
    """The position of a value, from 0 at the top to 1 at the bottom."""
    return 1 - float(values.position(value))


def place(left: float, top: float) -> str:
    """A style that positions an element, with coordinates relative to the plot area."""
    return f"left:{100 * left:.2f}%;top:{100 * top:.2f}%"


def rule(mark: float) -> str:
    """A dashed vertical line."""
    return f'<path class="rule" d="M{1000 * mark:.0f} 0V1000"/>'


def mark_label(mark: float, text: str) -> str:
    """A label at the top of a vertical line."""
    side = "before" if mark > 0.12 else "after"
    return f'<b class="rule-label {side}" style="left:{100 * mark:.2f}%" aria-hidden="true">{escape(text)}</b>'


def plot(id: str, description: str, drawing: str, overlay: str) -> str:
    """A plot area with lines, and text and dots on top."""
    return (
        f'<div class="plot" id="{id}"><div class="area">'
        f'<svg role="img" aria-label="{escape(description)}" viewBox="0 0 1000 1000" preserveAspectRatio="none">'
        f"{drawing}</svg>{overlay}</div></div>"
    )
