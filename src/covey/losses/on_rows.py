"""A loss on given rows with their weights, as a function of the linear predictor: what a solver calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from covey.validation import FloatArray

if TYPE_CHECKING:
    from covey.losses.base import Loss

__all__ = ["LossOnRows", "SeparateRows"]


class LossOnRows(ABC):
    """The weighted sum of a loss over rows. ``eta`` has the first axis of the rows, and another one for several models.

    Where the loss is one of several outputs, those are the last axis of `eta`.
    """

    @abstractmethod
    def total(self, eta: FloatArray) -> Any:
        """The weighted sum: a float, or one per model."""

    @abstractmethod
    def deviance(self, eta: FloatArray) -> Any:
        """Twice what the total lies above that of the model that meets every row."""

    @abstractmethod
    def score(self, eta: FloatArray) -> FloatArray:
        """Minus the gradient of the total."""

    @abstractmethod
    def curvature(self, eta: FloatArray, bounding: bool = False) -> FloatArray:
        """The diagonal of the Hessian of the total, or of a quadratic model that lies above it, of one model."""

    @abstractmethod
    def curvature_product(self, eta: FloatArray, direction: FloatArray) -> FloatArray:
        """The Hessian of the total of one model times a direction."""

    @abstractmethod
    def gram(self, eta: FloatArray, A: FloatArray, bounding: bool = False) -> FloatArray:
        """``A' H A`` with H the Hessian of the total of one model, or that of a quadratic model that lies above it."""


class SeparateRows(LossOnRows):
    """Rows that each have a loss of their own.

    Parameters
    ----------
    loss : Loss
    y, weight : ndarray
    """

    def __init__(self, loss: Loss, y: FloatArray, weight: FloatArray) -> None:
        self.loss, self.y, self.weight = loss, y, weight

    def total(self, eta: FloatArray) -> Any:
        """The weighted sum of the values."""
        return self._sum(self.loss.value(self.y, eta))

    def deviance(self, eta: FloatArray) -> Any:
        """The weighted sum of the unit deviances."""
        return self._sum(self.loss.deviance(self.y, eta))

    def score(self, eta: FloatArray) -> FloatArray:
        """Residuals times weights."""
        return self._weighted(self.loss.residual(self.y, eta))

    def curvature(self, eta: FloatArray, bounding: bool = False) -> FloatArray:
        """One number per row."""
        own = self.loss.bounding_curvature if bounding else self.loss.curvature
        return np.asarray(self.weight * own(self.y, eta))

    def curvature_product(self, eta: FloatArray, direction: FloatArray) -> FloatArray:
        """Row by row."""
        return self._weighted(self.loss.curvature_product(self.y, eta, direction))

    def gram(self, eta: FloatArray, A: FloatArray, bounding: bool = False) -> FloatArray:
        """``A' diag(curvature) A``."""
        B = A * np.sqrt(self.curvature(eta, bounding))[:, None]
        return np.asarray(B.T @ B)  # of a matrix with its own transpose BLAS forms half

    def _sum(self, values: FloatArray) -> Any:
        weight, values = np.asarray(self.weight, dtype=np.float64), np.asarray(values, dtype=np.float64)
        return float(weight @ values) if values.ndim == 1 else np.tensordot(weight, values, axes=1)

    def _weighted(self, values: FloatArray) -> FloatArray:
        weight = np.asarray(self.weight, dtype=values.dtype)
        return (weight if values.ndim == 1 else weight.reshape(-1, *[1] * (values.ndim - 1))) * values
