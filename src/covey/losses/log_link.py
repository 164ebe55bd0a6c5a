"""Poisson and gamma responses, whose mean is the exponential of the linear predictor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from covey.arrays import doubles, namespace, spread
from covey.losses.base import Loss
from covey.losses.responses import LARGEST, refuse_rows, within_range
from covey.validation import FloatArray, finite_response

LIMITS = np.finfo(np.float64)

__all__ = ["Gamma", "LogLink", "Poisson", "exponential", "log_ratio", "replaced"]

# Above 2^53, float64 cannot represent every count.
LARGEST_COUNT = 2.0**53

# Where the exponential is continued by a parabola, and how far that goes, so that its squares are finite.
LAST, FARTHEST = 300.0, 1e80

# A deviance is about the square of the log of a mean over its response. It is computed as a difference of values if
# that log is larger than this, and then has at most two digits fewer than these.
NEAR = 0.1


def exponential(t: FloatArray, derivative: int = 0) -> FloatArray:
    """``exp(t)``, or its first or second derivative, continued by a parabola for very large t.

    The function is convex, twice differentiable, and finite with finite squares wherever an iteration may go. It is the
    exponential itself for every mean that data can have.
    """
    xp = namespace(t)
    if 0 not in t.shape and t.max() <= LAST:
        return xp.exp(t)
    inside = xp.exp(xp.clip(t, None, LAST))
    beyond = xp.clip(t - LAST, 0, FARTHEST)  # a first step from a flat start can lead anywhere
    return inside * (1 + beyond * (1 + beyond / 2), 1 + beyond, 1)[derivative]


def log_ratio(y: FloatArray, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The log of the mean over the response, and where it is so small that differences of values lose their digits."""
    xp = namespace(eta)
    ratio = eta - xp.log(xp.where(y > 0, y, 1))
    return ratio, (abs(ratio) < NEAR) & (y > 0)


def replaced(values: FloatArray, where: FloatArray, others: FloatArray) -> FloatArray:
    """Values with others in some places."""
    out = namespace(values).asarray(values)
    out[where] = others
    return out


class LogLink(Loss):
    """Base class of losses with a log link; `title` and `largest` are the name in messages and the largest response."""

    log_link: ClassVar[bool] = True
    support: ClassVar[tuple[float, float]] = (0.0, np.inf)
    title: ClassVar[str]
    largest: ClassVar[float] = LARGEST

    def check(self, y: ArrayLike, name: str = "y") -> FloatArray:
        """Finite, non-negative numbers."""
        y = finite_response(y, name)
        rule = f"{name} must not be negative for the {self.title} loss"
        refuse_rows(y < 0, y, rule, "Use loss='squared' or loss='huber' for a response of any sign.")
        return within_range(y, name, self.largest)

    def link(self, mean: FloatArray) -> FloatArray:
        """``log(mean)``, finite at zero."""
        return np.log(np.maximum(mean, LIMITS.tiny))

    def inverse_link(self, eta: FloatArray) -> FloatArray:
        """``exp(eta)``, finite everywhere."""
        return np.exp(np.minimum(*doubles(eta, np.floor(np.log(LIMITS.max)))))


@dataclass(frozen=True)
class Poisson(LogLink):
    """Counts: a Poisson response with a log link, ``exp(eta) - y eta``.

    Any non-negative number is accepted, so rates and amounts work too (a quasi-likelihood for responses whose variance
    grows with their mean). `dispersion` accounts for variation beyond that of Poisson counts.

    Examples
    --------
    >>> Poisson().deviance(np.array([0.0, 1.0]), np.zeros(2))
    array([2., 0.])
    """

    name: ClassVar[str] = "poisson"
    title: ClassVar[str] = "Poisson"
    largest: ClassVar[float] = LARGEST_COUNT
    canonical: ClassVar[bool] = True
    takes_tensors: ClassVar[bool] = True
    known_dispersion: ClassVar[bool] = True
    effect: ClassVar[str | None] = "rate ratio"

    def value(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``exp(eta) - y eta``."""
        y, eta = doubles(y, eta)
        return exponential(eta) - y * eta

    def residual(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``y - exp(eta)``."""
        y, eta = doubles(y, eta)
        return y - exponential(eta, 1)

    def curvature(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``exp(eta)``."""
        y, eta = doubles(y, eta)
        return spread(exponential(eta, 2), y)

    def deviance(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``2 (y log(y / mean) - y + mean)``."""
        y, eta = doubles(y, eta)
        xp = namespace(eta)
        ratio, near = log_ratio(y, eta)
        here = xp.broadcast_to(y, ratio.shape)[near]
        rise = replaced(exponential(eta) - y, near, here * xp.expm1(ratio[near]))
        return xp.clip(2 * (rise - y * ratio), 0, None)

    def dispersion(self, mean_deviance: float) -> float:
        """One for Poisson counts, more if they are overdispersed."""
        return max(1.0, float(mean_deviance))

    def _constant(self, y: FloatArray, weight: FloatArray, offset: FloatArray) -> float:
        if not y.any():
            raise ValueError("Every count is zero, which no finite rate fits: give rows with positive counts.")
        top = offset.max()
        return float(np.log(weight @ y) - np.log(weight @ np.exp(offset - top)) - top)


@dataclass(frozen=True)
class Gamma(LogLink):
    """Positive responses whose spread grows with their mean: a gamma response with a log link, ``y exp(-eta) + eta``.

    Examples
    --------
    >>> Gamma().value(np.array([1.0, 2.0]), np.zeros(2))
    array([1., 2.])
    """

    name: ClassVar[str] = "gamma"
    takes_tensors: ClassVar[bool] = True
    effect: ClassVar[str | None] = "ratio of means"

    def check(self, y: ArrayLike, name: str = "y") -> FloatArray:
        """Finite numbers above zero."""
        y = finite_response(y, name)
        rule = f"{name} must be above zero for the gamma loss"
        refuse_rows(y <= 0, y, rule, "Use loss='poisson' where zeros occur, or loss='squared' for any sign.")
        refuse_rows(
            y < LIMITS.tiny,
            y,
            f"{name} must be at least {LIMITS.tiny:.3g}, the least number held in full precision",
            f"Multiply {name} by a constant: measure it in smaller units.",
        )
        return within_range(y, name)

    def value(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``y exp(-eta) + eta``."""
        y, eta = doubles(y, eta)
        return exponential(namespace(eta).log(y) - eta) + eta

    def residual(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``y exp(-eta) - 1``."""
        y, eta = doubles(y, eta)
        return exponential(namespace(eta).log(y) - eta, 1) - 1

    def curvature(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``y exp(-eta)``."""
        y, eta = doubles(y, eta)
        return exponential(namespace(eta).log(y) - eta, 2)

    def deviance(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``2 (y / mean - 1 - log(y / mean))``."""
        y, eta = doubles(y, eta)
        xp = namespace(eta)
        ratio = xp.log(y) - eta
        near = abs(ratio) < NEAR
        rise = replaced(exponential(ratio) - 1, near, xp.expm1(ratio[near]))
        return xp.clip(2 * (rise - ratio), 0, None)

    def _constant(self, y: FloatArray, weight: FloatArray, offset: FloatArray) -> float:
        ratio = np.log(y) - offset
        return float(np.log(weight @ np.exp(ratio - ratio.max())) + ratio.max())
