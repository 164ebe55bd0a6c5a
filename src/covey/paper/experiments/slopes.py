"""Slopes on log axes with standard errors, and tests of a claimed slope."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import pandas as pd

from covey.paper.experiments.base import where

LEVEL = 0.01  # significance level of the test of a claimed slope


@dataclass(frozen=True)
class Slope:
    """A fitted slope and its standard error."""

    value: float
    error: float

    def rejects(self, claimed: float, level: float = LEVEL) -> bool:
        """Whether the slope is further from the claimed one than chance allows.

        >>> Slope(-0.97, 0.02).rejects(-1.0), Slope(-0.9, 0.02).rejects(-1.0)
        (False, True)
        """
        return bool(abs(self.value - claimed) > NormalDist().inv_cdf(1 - level / 2) * self.error)

    def is_below(self, claimed: float, level: float = LEVEL) -> bool:
        """Whether the slope is further below the claimed one than chance allows."""
        return bool(self.value + NormalDist().inv_cdf(1 - level) * self.error < claimed)

    def __str__(self) -> str:
        return f"{self.value:.2f} ± {self.error:.2f}"


def fit(x: object, values: object) -> Slope:
    """The slope of log(mean value) on log(x), least squares over the distinct x.

    The mean is taken first: the mean of a logarithm would bias the slope, because errors with few degrees of freedom
    are more skewed. The variance of the log of a mean is the variance of the mean divided by its square. A rate that
    holds only for large n has a slope that is off by more than the standard error.

    >>> print(fit([1, 1, 2, 2, 4, 4], [0.9, 1.1, 0.45, 0.55, 0.225, 0.275]))
    -1.00 ± 0.10
    """
    x, values = np.asarray(x, dtype=float), np.asarray(values, dtype=float)
    places = np.unique(x)
    if places.size < 2:
        raise ValueError(f"A slope needs at least two different places, not {places.size}.")
    log_x = np.log(places) - np.log(places).mean()
    slope = variance = 0.0
    for place, weight in zip(places, log_x / np.sum(log_x**2), strict=True):
        repeats = values[x == place]
        mean = float(repeats.mean())
        slope += weight * math.log(mean)
        if repeats.size > 1:
            variance += weight**2 * float(repeats.var(ddof=1)) / repeats.size / mean**2
    return Slope(float(slope), math.sqrt(variance))


def by_axis(frame: pd.DataFrame, axes: Iterable[str]) -> dict[str, Slope]:
    """The slope of the error along each axis of a table of `covey.paper.experiments.rates`."""
    parts = {axis: where(frame, axis=axis) for axis in axes}
    return {axis: fit(part["value"], part["error"]) for axis, part in parts.items()}
