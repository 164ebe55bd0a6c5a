"""Plots as data for one template: lines in a square that stretches with the page, with text and dots on top.

Lines are drawn in a 1000 by 1000 square with strokes of constant width. Text and dots are HTML, positioned in per cent,
so that text has the same size on phones, screens and paper without a script.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covey.validation import FloatArray

Vector = NDArray[np.float64]
Ticks = list[tuple[float, str]]

# The least distance of labels at the right end, relative to the height (1.2 of 18 rem).
LABEL_GAP = 0.068


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, linear or logarithmic; `end` is the position of the high end.

    >>> Axis(0, 200).position([0, 50, 300]).tolist()
    [0.0, 0.25, 1.0]
    >>> Axis(0, 0.93).ticks(), Axis(10, 1000, log=True).ticks()
    ([0.0, 0.2, 0.4, 0.6, 0.8], [10.0, 30.0, 100.0, 300.0, 1000.0])
    """

    low: float
    high: float
    log: bool = False
    end: float = 1.0

    @classmethod
    def around(cls, values: ArrayLike, margin: float = 0.05) -> Axis:
        """From below the smallest value to above the largest, by a margin relative to their range."""
        low, high = float(np.min(values)), float(np.max(values))
        room = margin * (high - low) or max(abs(high), 1.0)
        return cls(low - room, high + room)

    def position(self, values: ArrayLike) -> NDArray[np.float64]:
        """Positions of values, from 0 at the low end to `end` at the high one; values outside are clipped."""
        at, low, high = np.asarray(values, dtype=float), self.low, self.high
        if self.log:
            at, low, high = np.log(np.maximum(at, low)), math.log(low), math.log(high)
        return ((at - low) / (high - low)).clip(0, 1) * self.end

    def ticks(self, most: int = 5) -> list[float]:
        """Round numbers on the axis, at most `most` of them: multiples of 1, 2 or 5 times a power of ten."""
        if not self.high > self.low:
            return [self.low]
        if not self.log:
            power = 10.0 ** math.floor(math.log10((self.high - self.low) / most))
            step = next(k * power for k in (1, 2, 5, 10, 20) if (self.high - self.low) / (k * power) < most)
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            return [float(f"{k * step:.12g}") for k in range(first, last + 1)]
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for steps in ((1, 2, 5), (1, 3), (1,)):
            found = [step * 10.0**power for power in powers for step in steps]
            found = [value for value in found if self.low <= value <= self.high]
            if len(found) <= most:
                break
        return found[:: math.ceil(len(found) / most)] if found else [self.low]


@dataclass
class Plot:
    """One plot, to which lines, dots and labels are added in the coordinates of its axes."""

    id: str
    description: str  # for screen readers
    across: Axis
    down: Axis
    n_ticks: int = 5  # the most numbers below the plot
    n_levels: int = 5  # the most numbers at the left
    ticks: Ticks = field(default_factory=list)  # positions and labels below; by default round numbers on the axis
    paths: list[tuple[str, str, int | None]] = field(default_factory=list)  # style, points, number of the group
    dots: list[tuple[str, float, float]] = field(default_factory=list)  # style, position from the left and the top
    ends: list[tuple[str, float, int]] = field(default_factory=list)  # name, position from the top, number of colour
    mark: float | None = None  # the position of the fitted model

    def __post_init__(self) -> None:
        self.ticks = self.ticks or [(float(self.across.position(t)), f"{t:g}") for t in self.across.ticks(self.n_ticks)]
        grid = [f"M0 {1000 * top:.0f}H1000" for top, _ in self.levels] + [
            f"M{1000 * x:.0f} 0V1000" for x, _ in self.ticks
        ]
        self.paths.append(("grid", "".join(grid), None))

    @property
    def levels(self) -> Ticks:
        """Positions from the top and labels of the numbers at the left."""
        return [(float(self.top(v)), f"{v:g}") for v in self.down.ticks(self.n_levels)]

    def top(self, values: ArrayLike) -> Vector:
        """Positions from 0 at the top to 1 at the bottom."""
        return np.asarray(1 - self.down.position(values))

    def line(
        self, style: str, *curves: tuple[ArrayLike, ArrayLike], group: int | None = None, closed: bool = False
    ) -> None:
        """Add a path through the points (x, y) of each curve."""
        drawn = "".join(_points(self.across.position(x), self.top(y)) for x, y in curves)
        self.paths.append((style, f"{drawn}{'z' if closed else ''}", group))

    def band(self, x: FloatArray, low: FloatArray, high: FloatArray) -> None:
        """Add the area between two curves."""
        self.line("band", (np.r_[x, x[::-1]], np.r_[high, low[::-1]]), closed=True)

    def segments(self, style: str, begin: tuple[ArrayLike, ArrayLike], end: tuple[ArrayLike, ArrayLike]) -> None:
        """Add straight lines from points to points; one of no length is a dot, which stretching leaves round."""
        sides = [place for x, y in (begin, end) for place in (self.across.position(x), self.top(y))]
        a, b, c, d = np.rint(1000 * np.column_stack(np.broadcast_arrays(*sides))).astype(int).T
        drawn = "".join(f"M{x} {y}l{dx} {dy}" for x, y, dx, dy in zip(a, b, c - a, d - b, strict=True))
        self.paths.append((style, drawn, None))

    def dot(self, style: str, x: float, y: float) -> None:
        """Add a dot."""
        self.dots.append((style, float(self.across.position(x)), float(self.top(y))))

    def mark_model(self, x: float) -> None:
        """Add a vertical line with the label "the model"."""
        self.mark = float(self.across.position(x))
        self.segments("rule", (x, self.down.low), (x, self.down.high))

    def name_ends(self, named: Iterable[tuple[str, float, int]]) -> None:
        """Add names at the right edge, next to the ends of their lines, moved apart so that they do not overlap."""
        downwards = sorted(named, key=lambda label: -label[1])
        tops = spread([float(self.top(last)) for _, last, _ in downwards])
        self.ends = [(name, top, i) for (name, _, i), top in zip(downwards, tops, strict=True)]


def steps(x: ArrayLike, y: ArrayLike, end: float) -> tuple[Vector, Vector]:
    """A curve that is level from each point to the next, and from the last one to `end`."""
    return np.append(np.repeat(x, 2)[1:], end), np.repeat(y, 2)


def spread(tops: Sequence[float]) -> list[float]:
    """Increasing positions between 0 and 1, moved down and then up until they are at least a gap apart."""
    out: list[float] = []
    for top in tops:
        out.append(max(top, out[-1] + LABEL_GAP if out else 0.0))
    ceiling = 1.0
    for k in reversed(range(len(out))):
        out[k] = min(out[k], ceiling)
        ceiling = out[k] - LABEL_GAP
    return out


def _points(x: Vector, y: Vector) -> str:
    """An SVG path through points in integer thousandths; interior points of level stretches are left out."""
    across, down = np.rint(1000 * x).astype(int), np.rint(1000 * y).astype(int)
    level = np.zeros(len(down), dtype=bool)
    level[1:-1] = (down[1:-1] == down[:-2]) & (down[1:-1] == down[2:])
    pairs = [f"{a} {b}" for a, b in zip(across[~level], down[~level], strict=True)]
    return f"M{'L'.join(pairs)}" if pairs else ""
