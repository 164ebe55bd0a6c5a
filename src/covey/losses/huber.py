"""Huber's loss: squared for small residuals, linear for large ones, so that a few outliers have little influence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from covey.losses.arrays import common_dtype, weighted_median
from covey.losses.base import Loss
from covey.losses.constant import scalar_constant
from covey.validation import FloatArray, positive

__all__ = ["Huber"]

# Huber's choice: 95% of the efficiency of least squares for Gaussian noise of unit scale.
EFFICIENT = 1.345
# The scale of Gaussian noise divided by its median absolute value, and by its mean absolute value.
MEDIAN_TO_SCALE = 1.4826
MEAN_TO_SCALE = float(np.sqrt(np.pi / 2))


@dataclass(frozen=True)
class Huber(Loss):
    """Huber's loss of ``r = y - eta``: ``r^2 / 2`` up to the threshold, ``threshold (|r| - threshold / 2)`` beyond.

    Parameters
    ----------
    threshold : float, optional
        The residual beyond which the loss is linear. None means 1.345 times a robust scale of the residuals, which
        `scaled_to` sets; before that, only the null model is available.

    Examples
    --------
    >>> Huber(1.0).value(np.array([0.5, 10.0]), np.zeros(2))
    array([0.125, 9.5  ])
    >>> loss = Huber().scaled_to(np.array([-1.0, 1.0, 1.0, 50.0]), np.ones(4))
    >>> print(round(loss.threshold, 6))
    1.994097
    """

    threshold: float | None = None
    name: ClassVar[str] = "huber"
    unpenalised: ClassVar[str] = "least Huber loss"
    identity_link: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.threshold is not None:
            positive(self.threshold, "threshold")

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
        return (np.abs(r) <= threshold).astype(r.dtype)

    def bounding_curvature(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """One up to the threshold, ``threshold / |r|`` beyond: the weights of iteratively reweighted least squares."""
        r, threshold = self._distance(y, eta)
        return threshold / np.maximum(np.abs(r), threshold)

    def deviance(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """Twice the value."""
        return 2 * self.value(y, eta)

    def scaled_to(self, residuals: FloatArray, weight: FloatArray) -> Huber:
        """The loss, with a threshold of 1.345 times the weighted median absolute residual over 0.6745 if it has none.

        If more than half of the residuals are zero, the mean absolute value replaces the median; if all are, any
        threshold will do, and the scale is one.
        """
        if self.threshold is not None:
            return self
        size, weight = np.abs(np.asarray(residuals, dtype=np.float64)), np.asarray(weight, dtype=np.float64)
        scale = MEDIAN_TO_SCALE * weighted_median(size, weight)
        if scale == 0:
            scale = MEAN_TO_SCALE * float(weight @ size) / float(weight.sum()) or 1.0
        return Huber(EFFICIENT * scale)

    def _null_scalar(self, y: FloatArray, weight: FloatArray, offset: FloatArray) -> float:
        distance = y - offset
        middle = weighted_median(distance, weight)
        loss = self.scaled_to(distance - middle, weight)

        def slopes(c: float) -> tuple[float, float, float]:
            residual = loss.residual(distance, np.asarray(c))
            return (
                float(weight @ residual),
                float(weight @ loss.curvature(distance, np.asarray(c))),
                float(loss.threshold or 0),
            )

        return scalar_constant(slopes, start=middle, width=float(loss.threshold or 0))

    def _distance(self, y: FloatArray, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self.threshold is None:
            raise ValueError("Huber() has no threshold yet: give it one, or call scaled_to(residuals, weight).")
        y, eta = common_dtype(y, eta)
        r = y - eta
        return r, np.asarray(self.threshold, dtype=r.dtype)
