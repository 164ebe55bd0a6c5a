"""Negative binomial counts: they vary more than Poisson counts of the same mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from covey.arrays import doubles
from covey.losses.log_link import LogLink, Poisson, log_ratio, replaced
from covey.validation import FloatArray, positive

__all__ = ["NegativeBinomial"]

# The range of estimates: below the least, counts cannot be told from Poisson counts.
LEAST, MOST = 1e-6, 1e6

# An estimate that moves by at most this share has settled. At the likeliest coefficients the likelihood is flat in them
# for every overdispersion, up to sampling error, so that coefficients then move by far less.
SETTLED = 1e-3


@dataclass(frozen=True)
class NegativeBinomial(LogLink):
    """Overdispersed counts with a log link and the variance ``mean + a mean^2``: ``(y + 1/a) log(1 + a mean) - y eta``.

    Any non-negative number is accepted, so rates and amounts work too.

    Parameters
    ----------
    overdispersion : float, optional
        The number ``a`` above zero. None means the maximum-likelihood estimate at the model, which `scaled_to` sets;
        before that, only the null model is available.

    Examples
    --------
    >>> NegativeBinomial(1.0).residual(np.array([0.0, 4.0]), np.zeros(2))
    array([-0.5,  1.5])
    """

    overdispersion: float | None = None
    name: ClassVar[str] = "negative-binomial"
    parameter: ClassVar[str] = "overdispersion"
    title: ClassVar[str] = "negative binomial"
    largest: ClassVar[float] = Poisson.largest
    known_dispersion: ClassVar[bool] = True
    effect: ClassVar[str | None] = "rate ratio"

    def __post_init__(self) -> None:
        if self.overdispersion is not None:
            positive(self.overdispersion, "overdispersion")

    def value(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``(y + 1/a) log(1 + a exp(eta)) - y eta``."""
        y, eta, a = self._given(y, eta)
        return (y + 1 / a) * softplus(eta + np.log(a)) - y * eta

    def residual(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``(y - mean) / (1 + a mean)``."""
        y, eta, a = self._given(y, eta)
        small = np.exp(-np.abs(eta + np.log(a)))
        # with t = a mean: y / (1 + t) - (t / a) / (1 + t)
        above = eta + np.log(a) > 0
        rest, share = np.where(above, small, 1) / (1 + small), np.where(above, 1, small) / (1 + small)
        return y * rest - share / a

    def curvature(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``mean (1 + a y) / (1 + a mean)^2``."""
        y, eta, a = self._given(y, eta)
        small = np.exp(-np.abs(eta + np.log(a)))
        return (y + 1 / a) * small / np.square(1 + small)

    def deviance(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``2 (y log(y / mean) - (y + 1/a) log((1 + a y) / (1 + a mean)))``."""
        y, eta, a = self._given(y, eta)
        ratio, near = log_ratio(y, eta)
        here, small = np.broadcast_to(y, near.shape)[near], ratio[near]
        close = (here + 1 / a) * np.log1p(a * here / (1 + a * here) * np.expm1(small)) - here * small
        far = (y + 1 / a) * (softplus(eta + np.log(a)) - np.log1p(a * y)) - y * ratio
        return np.maximum(2 * replaced(far, near, close), 0)

    @property
    def in_words(self) -> str:
        """The variance of the response."""
        return "" if self.overdispersion is None else f"the variance is mean + {self.overdispersion:.3g} mean^2"

    def estimate(self, y: FloatArray, eta: FloatArray, weight: FloatArray) -> float:
        """The overdispersion of greatest likelihood."""
        used = weight > 0
        y, eta, share = y[used], np.broadcast_to(eta, y.shape)[used], weight[used] / weight.sum()

        def minus(log_a: float) -> float:
            a = np.exp(log_a)
            of_rows = gammaln(y + 1 / a) - gammaln(1 / a) - (y + 1 / a) * softplus(eta + log_a) + y * log_a
            return -float(share @ of_rows)

        # the likelihood may have two maxima: first a coarse search
        grid = np.linspace(np.log(LEAST), np.log(MOST), 49)
        best = int(np.argmin([minus(point) for point in grid.tolist()]))
        if best == 0:  # round-off error would decide where below the next point
            return LEAST
        low, high = grid[best - 1], grid[min(best + 1, grid.size - 1)]
        found = minimize_scalar(minus, bounds=(low, high), method="bounded", options={"xatol": 1e-9})
        return float(np.exp(found.x))

    def settled(self, before: NegativeBinomial) -> bool:
        """Whether the overdispersion has hardly moved."""
        return abs(np.log(self.known() / before.known())) <= SETTLED

    def _given(self, y: FloatArray, eta: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        y, eta = doubles(y, eta)
        return y, eta, self.known()

    def _constant(self, y: FloatArray, weight: FloatArray, offset: FloatArray) -> float:
        rate = Poisson()._constant(y, weight, offset)
        if self.overdispersion is None or not np.ptp(offset):
            return rate
        return super()._constant(y, weight, offset)


def softplus(t: FloatArray) -> FloatArray:
    """``log(1 + exp(t))``; a third of the time of `numpy.logaddexp`."""
    return np.asarray(np.log1p(np.exp(-np.abs(t))) + np.maximum(t, 0))
