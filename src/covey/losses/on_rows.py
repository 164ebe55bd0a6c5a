"""A loss on weighted rows as a function of the linear predictor: the interface that solvers use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from covey.validation import FloatArray

if TYPE_CHECKING:
    from covey.losses.base import Loss

__all__ = ["LossOnRows"]


class LossOnRows:
    """The weighted sum of a loss over rows that do not depend on each other.

    The first axis of ``eta`` is rows, and a second one may hold models. If the loss has several outputs, they are the
    last axis of `eta`. Losses whose rows depend on each other override every method.

    Parameters
    ----------
    loss : Loss
    y, weight : ndarray
    """

    def __init__(self, loss: Loss, y: FloatArray, weight: FloatArray) -> None:
        self.loss, self.y, self.weight = loss, y, weight

    def total(self, eta: FloatArray) -> Any:
        """The weighted sum: a float, or one per model."""
        return self._sum(self.loss.value(self.y, eta))

    def deviance(self, eta: FloatArray) -> Any:
        """Twice the excess of the total over the saturated model's."""
        return self._sum(self.loss.deviance(self.y, eta))

    def score(self, eta: FloatArray) -> FloatArray:
        """Minus the gradient of the total."""
        return self._weighted(self.loss.residual(self.y, eta))

    def curvature(self, eta: FloatArray, bounding: bool = False) -> FloatArray:
        """The diagonal of the Hessian of the total, or of a quadratic bound on it, for one model: one per row."""
        of_rows = self.loss.bounding_curvature if bounding else self.loss.curvature
        return np.asarray(self.weight * of_rows(self.y, eta))

    def curvature_product(self, eta: FloatArray, direction: FloatArray) -> FloatArray:
        """The Hessian of the total times a direction, for one model."""
        return self._weighted(self.loss.curvature_product(self.y, eta, direction))

    def gram(self, eta: FloatArray, A: FloatArray, bounding: bool = False) -> FloatArray:
        """``A' H A``, where H is the Hessian of the total, or of a quadratic bound on it, for one model."""
        B = A * np.sqrt(self.curvature(eta, bounding))[:, None]
        return np.asarray(B.T @ B)  # BLAS computes only half of a matrix times its transpose

    def _sum(self, values: FloatArray) -> Any:
        weight, values = np.asarray(self.weight, dtype=np.float64), np.asarray(values, dtype=np.float64)
        return float(weight @ values) if values.ndim == 1 else np.tensordot(weight, values, axes=1)

    def _weighted(self, values: FloatArray) -> FloatArray:
        weight = np.asarray(self.weight, dtype=values.dtype)
        return (weight if values.ndim == 1 else weight.reshape(-1, *[1] * (values.ndim - 1))) * values
