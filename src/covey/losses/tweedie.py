"""Tweedie responses: amounts that are often exactly zero, such as the claims of a year, with a log link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp

from covey.arrays import doubles
from covey.losses.log_link import LogLink, exponential, log_ratio, replaced
from covey.validation import FloatArray, real

__all__ = ["Tweedie", "log_density"]

# An estimated power stays this far inside of (1, 2): close to 1 the density has peaks at multiples of a number, and
# close to 2 a response of zero is all but impossible.
INSIDE = 0.05

# More rows than this do not change the second decimal of the power; the rest is left out evenly, in order of size.
MOST_ROWS = 20_000

# An estimate that moves by at most this has settled: the model depends little on the power.
SETTLED = 0.01

# Mean log likelihoods this close are equal.
TIE = 1e-6

# Terms of the density's series on either side of the largest, five per standard deviation of their bell, which makes
# the sum as exact as its terms.
TERMS_BEFORE, TERMS_AFTER, TERMS_PER_SD = 40, 48, 5


@dataclass(frozen=True)
class Tweedie(LogLink):
    """Amounts with zeros: variance ``dispersion * mean^power``, ``y exp((1-p) eta) / (p-1) + exp((2-p) eta) / (2-p)``.

    With a power p between 1 and 2, the response is a sum of gamma amounts whose number is a Poisson count: zero if
    there is none. A power of 1 would be `Poisson`, and a power of 2 `Gamma`.

    Parameters
    ----------
    power : float, optional
        Between 1 and 2. None means the maximum-likelihood estimate at the model, which `scaled_to` sets; before that,
        only the null model is available.

    Examples
    --------
    >>> Tweedie(1.5).deviance(np.array([0.0, 1.0]), np.zeros(2))
    array([4., 0.])
    """

    power: float | None = None
    name: ClassVar[str] = "tweedie"
    parameter: ClassVar[str] = "power"
    title: ClassVar[str] = "Tweedie"
    effect: ClassVar[str | None] = "ratio of means"

    def __post_init__(self) -> None:
        if self.power is not None and not 1 < real(self.power, "power") < 2:
            raise ValueError(
                f"power must lie between 1 and 2, not {self.power:g}: use loss='poisson' for a power of 1, "
                "loss='gamma' for 2, and power=None to estimate it."
            )

    def value(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``y exp((1-p) eta) / (p-1) + exp((2-p) eta) / (2-p)``."""
        paid, expected, p = self._parts(y, eta)
        return paid / (p - 1) + expected / (2 - p)

    def residual(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``(y - mean) / mean^(p-1)``."""
        paid, expected, _ = self._parts(y, eta, 1)
        return paid - expected

    def curvature(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``(p-1) y mean^(1-p) + (2-p) mean^(2-p)``."""
        paid, expected, p = self._parts(y, eta, 2)
        return (p - 1) * paid + (2 - p) * expected

    def deviance(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """Twice the excess of the value over its least, ``y^(2-p) / ((p-1) (2-p))``."""
        y, eta = doubles(y, eta)
        p = self.known()
        ratio, near = log_ratio(y, eta)
        small, unit = ratio[near], np.power(y, 2 - p)
        rise = np.expm1((1 - p) * small) / (p - 1) + np.expm1((2 - p) * small) / (2 - p)
        excess = self.value(y, eta) - unit / ((p - 1) * (2 - p))
        return np.maximum(2 * replaced(excess, near, np.broadcast_to(unit, near.shape)[near] * rise), 0)

    @property
    def in_words(self) -> str:
        """The variance of the response."""
        return "" if self.power is None else f"the variance is proportional to mean^{self.power:.3g}"

    def estimate(self, y: FloatArray, eta: FloatArray, weight: FloatArray) -> float:
        """The power of greatest likelihood, to four digits: the search for it amplifies round-off error."""
        y, eta = np.broadcast_arrays(y, eta)
        rows = np.flatnonzero(weight)
        rows = rows[np.lexsort((eta[rows], y[rows]))][:: -(-rows.size // MOST_ROWS)]
        return round(_likeliest_power(y[rows], eta[rows], weight[rows]), 4)

    def settled(self, before: Tweedie) -> bool:
        """Whether the power has hardly moved."""
        return abs(self.known() - before.known()) <= SETTLED

    def _parts(self, y: FloatArray, eta: FloatArray, derivative: int = 0) -> tuple[FloatArray, FloatArray, float]:
        """``y mean^(1-p)`` and ``mean^(2-p)``, or a derivative of their exponentials, and p."""
        y, eta = doubles(y, eta)
        p, log_y = self.known(), np.log(y, out=np.full_like(y, -np.inf), where=y > 0)
        return exponential(log_y - (p - 1) * eta, derivative), exponential((2 - p) * eta, derivative), p

    def _constant(self, y: FloatArray, weight: FloatArray, offset: FloatArray) -> float:
        if not y.any():
            raise ValueError("Every response is zero, which no finite mean fits: give rows with positive responses.")
        # before the power is known, the rate of Poisson counts
        p, top = 1.0 if self.power is None else self.power, float(offset.max())
        shift = offset - top
        paid, expected = (1 - p) * shift, (2 - p) * shift
        most = paid.max()
        received = np.log(weight @ (y * np.exp(paid - most))) + most
        return float(received - np.log(weight @ np.exp(expected)) - top)


def _likeliest_power(y: FloatArray, eta: FloatArray, weight: FloatArray) -> float:
    """The power of greatest likelihood, together with the dispersion."""
    share = weight / weight.sum()
    unit = float(share @ y)  # the density in units of the mean response, so that the search starts near zero
    scaled, mean = y / unit, np.exp(np.clip(eta - np.log(unit), -50, 50))

    def minus(point: FloatArray) -> float:
        power, log_dispersion = point
        return -float(share @ log_density(scaled, mean, float(power), float(np.exp(log_dispersion))))

    ends = []
    for power in (1.5, 1 + INSIDE):  # counts have two peaks there, and round-off error would decide which is climbed
        dispersion = max(float(share @ Tweedie(power).deviance(scaled, np.log(mean))), 1e-8)
        ends.append(
            minimize(
                minus, [power, np.log(dispersion)], method="L-BFGS-B",
                bounds=[(1 + INSIDE, 2 - INSIDE), (np.log(1e-8), np.log(1e8))],
            )
        )  # fmt: skip
    first, second = ends
    return float((second if second.fun < first.fun - TIE else first).x[0])


def log_density(y: FloatArray, mean: FloatArray, power: float, dispersion: float) -> FloatArray:
    """The log density of amounts, or the log probability of zero (Dunn and Smyth, "Series evaluation", 2005).

    The density of a positive amount is a sum over the number of its parts. Its terms form a bell, and they are added up
    around the largest; where the bell is wide, at equal distances instead of every one.

    Examples
    --------
    >>> print(np.exp(log_density(np.zeros(1), np.ones(1), 1.5, 1.0)).round(6))
    [0.135335]
    """
    p, k = power, (2 - power) / (power - 1)
    exponent = (y * mean ** (1 - p) / (1 - p) - mean ** (2 - p) / (2 - p)) / dispersion
    some = y > 0
    x = y[some]
    largest = np.maximum(x ** (2 - p) / (dispersion * (2 - p)), 1.0)
    step = np.maximum(1.0, np.sqrt(largest / (1 + k)) / TERMS_PER_SD)
    first = np.maximum(1.0, np.floor(largest - TERMS_BEFORE * step))
    j = first[:, None] + step[:, None] * np.arange(TERMS_BEFORE + TERMS_AFTER)
    log_z = k * np.log(x) - k * np.log(p - 1) - (1 + k) * np.log(dispersion) - np.log(2 - p)
    terms = j * log_z[:, None] - gammaln(j + 1) - gammaln(k * j)
    out = np.array(exponent)
    out[some] += logsumexp(terms, axis=1) + np.log(step) - np.log(x)
    return out
