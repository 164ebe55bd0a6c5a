"""Axes of the plots: positions between 0 and 1, and ticks at round numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Axis", "round_ticks"]


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, linear or logarithmic; `end` is the position of the high end.

    >>> Axis(0, 200).position([0, 50, 300]).tolist()
    [0.0, 0.25, 1.0]
    >>> Axis(10, 1000, log=True).ticks()
    [10.0, 30.0, 100.0, 300.0, 1000.0]
    """

    low: float
    high: float
    log: bool = False
    end: float = 1.0

    def position(self, values: ArrayLike) -> NDArray[np.float64]:
        """Positions of values, from 0 at the low end to `end` at the high one; values outside are clipped."""
        at, low, high = np.asarray(values, dtype=float), self.low, self.high
        if self.log:
            at, low, high = np.log(np.maximum(at, low)), math.log(low), math.log(high)
        return ((at - low) / (high - low)).clip(0, 1) * self.end

    def ticks(self, most: int = 5) -> list[float]:
        """Round numbers on the axis, at most `most` of them."""
        if not self.log:
            return round_ticks(self.low, self.high, most)
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for steps in ((1, 2, 5), (1, 3), (1,)):
            found = [step * 10.0**power for power in powers for step in steps]
            found = [value for value in found if self.low <= value <= self.high]
            if len(found) <= most:
                break
        return found[:: math.ceil(len(found) / most)] if found else [self.low]


def round_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten.

    >>> round_ticks(0, 0.93)
    [0.0, 0.2, 0.4, 0.6, 0.8]
    """
    if not high > low:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(k * power for k in (1, 2, 5, 10, 20) if (high - low) / (k * power) < most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]
