"""Huber's loss: squared for small residuals, linear for large ones, so that a few outliers have little influence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from covey.losses.base import Loss
from covey.losses.responses import robust_scale, weighted_quantile
from covey.validation import FloatArray, positive

__all__ = ["Huber"]

# Huber's choice: 95% of the efficiency of least squares for Gaussian noise of unit scale.
EFFICIENT = 1.345
# The scale of Gaussian noise divided by the upper quartile of its absolute value.
QUARTILE_TO_SCALE = 0.8693
# Deviances are those of residuals of at most this many times the spread of the response, where good data have none.
MOST_SPREADS = 7.0


@dataclass(frozen=True)
class Huber(Loss):
    """Huber's loss of ``r = y - eta``: ``r^2 / 2`` up to the threshold, ``threshold (|r| - threshold / 2)`` beyond.

    Parameters
    ----------
    threshold : float, optional
        The residual beyond which the loss is linear. None means 1.345 times a robust scale of the residuals, which
        `scaled_to` sets; before that, only the null model is available.
    limit : float, optional
        The residual from which on the deviance, by which models are compared, no longer grows; None for no limit.
        `limited_to` sets it from the spread of the response. Without it, the deviance of one wild response would hide
        what the other rows say. The loss itself has no limit, and stays convex.

    Examples
    --------
    >>> Huber(1.0).value(np.array([0.5, 10.0]), np.zeros(2))
    array([0.125, 9.5  ])
    >>> loss = Huber().scaled_to(np.array([-1.0, 1.0, 1.0, 50.0]), np.zeros(4), np.ones(4))
    >>> print(round(loss.threshold, 6))
    1.994097
    """

    threshold: float | None = None
    limit: float | None = None
    name: ClassVar[str] = "huber"
    parameter: ClassVar[str] = "threshold"
    unpenalised: ClassVar[str] = "least Huber loss"
    identity_link: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.threshold is not None:
            positive(self.threshold, "threshold")
        if self.limit is not None:
            positive(self.limit, "limit")

    def value(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``r^2 / 2`` up to the threshold, ``threshold (|r| - threshold / 2)`` beyond."""
        r, threshold = self._distance(y, eta)
        near = np.clip(r, -threshold, threshold)
        return near * (r - near / 2)

    def residual(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``y - eta``, clipped at the threshold."""
        r, threshold = self._distance(y, eta)
        return np.clip(r, -threshold, threshold)

    def curvature(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """One up to the threshold, zero beyond."""
        r, threshold = self._distance(y, eta)
        return (np.abs(r) <= threshold).astype(float)

    def bounding_curvature(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """One up to the threshold, ``threshold / |r|`` beyond: the weights of iteratively reweighted least squares."""
        r, threshold = self._distance(y, eta)
        return threshold / np.maximum(np.abs(r), threshold)

    def deviance(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """Twice the value, at most that of a residual of size `limit`."""
        r, threshold = self._distance(y, eta)
        if self.limit is not None:
            r = np.clip(r, -self.limit, self.limit)
        near = np.clip(r, -threshold, threshold)
        return near * (2 * r - near)

    def dispersion(self, mean_deviance: float) -> float:
        """The mean deviance, at most the squared threshold.

        The variance of a difference of deviances depends on the mean square of the clipped residuals, and both of these
        numbers are bounds on it: the first is close for clean data, and no outlier moves the second.
        """
        return float(mean_deviance) if self.threshold is None else min(float(mean_deviance), self.threshold**2)

    def limited_to(self, residuals: FloatArray, weight: FloatArray) -> Huber:
        """The loss, with a limit of seven times the spread of these residuals of the null model if it has none."""
        if self.limit is not None:
            return self
        size, weight = np.abs(np.asarray(residuals, dtype=np.float64)), np.asarray(weight, dtype=np.float64)
        # the quartile too, because most rows may be equal, and far from the others
        spread = max(robust_scale(size, weight), QUARTILE_TO_SCALE * weighted_quantile(size, weight, 0.75))
        return replace(self, limit=MOST_SPREADS * spread)

    @property
    def has_scale(self) -> bool:
        """Always: which rows are outliers depends on the model, even if the threshold is known."""
        return True

    def estimate(self, y: FloatArray, eta: FloatArray, weight: FloatArray) -> float:
        """A threshold of 1.345 times the weighted median absolute residual over 0.6745.

        If at least half of the residuals are zero, the median of the others replaces it; if all are, any threshold will
        do, and the scale is one.
        """
        return EFFICIENT * robust_scale(np.abs(y - eta), weight)

    def _distance(self, y: FloatArray, eta: FloatArray) -> tuple[FloatArray, float]:
        return np.subtract(y, eta, dtype=float), self.known()
