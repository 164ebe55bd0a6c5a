"""Slopes on log axes with standard errors, and a test of a claimed slope."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

__all__ = ["LEVEL", "Slope", "fit"]

LEVEL = 0.01  # significance level of the test of a claimed slope


@dataclass(frozen=True)
class Slope:
    """A fitted slope.

    Attributes
    ----------
    value, error : float
        The slope and its standard error.
    """

    value: float
    error: float

    def rejects(self, claimed: float, *, upwards_only: bool = False, level: float = LEVEL) -> bool:
        """Whether the slope is further from the claimed one (with `upwards_only`: above it) than chance allows.

        >>> Slope(-0.97, 0.02).rejects(-1.0), Slope(-0.9, 0.02).rejects(-1.0)
        (False, True)
        >>> Slope(0.1, 0.02).rejects(1.0, upwards_only=True)
        False
        """
        tails = 1 if upwards_only else 2
        bar = NormalDist().inv_cdf(1 - level / tails) * self.error
        gap = self.value - claimed
        return bool((gap if upwards_only else abs(gap)) > bar)

    def __str__(self) -> str:
        return f"{self.value:.2f} ± {self.error:.2f}"


def fit(x: Any, values: Any) -> Slope:
    """The slope of log(mean value) on log(x), least squares over the distinct x.

    The mean is taken first: the mean of a logarithm would bias the slope, because errors with few degrees of freedom
    are more skewed. The variance of the log of a mean is the variance of the mean divided by its square.

    >>> print(fit([1, 1, 2, 2, 4, 4], [0.9, 1.1, 0.45, 0.55, 0.225, 0.275]))
    -1.00 ± 0.10
    """
    x, values = np.asarray(x, dtype=float), np.asarray(values, dtype=float)
    places = np.unique(x)
    if places.size < 2:
        raise ValueError(f"A slope needs at least two different places, not {places.size}.")
    log_x = np.log(places) - np.log(places).mean()
    weights = log_x / np.sum(log_x**2)
    slope = variance = 0.0
    for place, weight in zip(places, weights, strict=True):
        repeats = values[x == place]
        mean = float(repeats.mean())
        slope += weight * math.log(mean)
        if repeats.size > 1:
            variance += weight**2 * float(repeats.var(ddof=1)) / repeats.size / mean**2
    return Slope(slope, math.sqrt(variance))
