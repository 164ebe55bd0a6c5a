"""Held-out class predictions, from the outer folds of a nested score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covey.evidence import NestedScore
from covey.validation import FloatArray

__all__ = ["Bin", "HeldOut"]

# Bins of a calibration plot; half as many with fewer rows than this.
MOST_BINS, MANY_ROWS = 10, 150


@dataclass(frozen=True)
class Bin:
    """Rows with similar predicted probabilities.

    Attributes
    ----------
    predicted, observed : float
        The mean probability, and the share of rows in the class.
    error : float
        The standard error of that share if the probability is right.
    n : int
        The number of rows.
    """

    predicted: float
    observed: float
    error: float
    n: int


@dataclass(frozen=True)
class HeldOut:
    """Predictions by models that were chosen and fitted without the predicted rows.

    Attributes
    ----------
    classes : tuple of str
        In the order of the estimator's `classes_`.
    codes : ndarray of int, shape (n_rows,)
        The class of each row, as an index into `classes`.
    probabilities : ndarray, shape (n_rows, n_classes)
    weight : ndarray, shape (n_rows,)
    n_folds : int
    """

    classes: tuple[str, ...]
    codes: NDArray[np.intp]
    probabilities: FloatArray
    weight: FloatArray
    n_folds: int

    @classmethod
    def from_nested(cls, nested: NestedScore | None) -> HeldOut | None:
        """The predictions of the outer folds; None without class predictions."""
        if nested is None or nested.classes is None or nested.predictions is None:
            return None
        p, values = nested.predictions, nested.response
        if p.ndim == 1:
            p, values = np.column_stack([1 - p, p]), np.column_stack([1 - values, values])
        rows = ~np.isnan(p[:, 0])  # some splitters do not test every row
        codes = values[rows].argmax(axis=1)
        return cls(tuple(map(str, nested.classes)), codes, p[rows], nested.weight[rows], nested.n_folds)

    @property
    def accuracy(self) -> float:
        """The weighted share of rows whose most likely class is correct."""
        return float(np.average(self.predicted == self.codes, weights=self.weight))

    @property
    def predicted(self) -> NDArray[np.intp]:
        """The most likely class of each row."""
        return np.asarray(self.probabilities.argmax(axis=1))

    @property
    def log_loss(self) -> float:
        """The negative mean logarithm of the true class's probability."""
        right = self.probabilities[np.arange(len(self.codes)), self.codes]
        return float(-np.average(np.log(np.maximum(right, np.finfo(float).tiny)), weights=self.weight))

    def confusion(self) -> NDArray[np.intp]:
        """The number of rows by true class (first axis) and predicted class (second axis)."""
        k = len(self.classes)
        return np.bincount(k * self.codes + self.predicted, minlength=k * k).reshape(k, k)

    def calibration(self) -> tuple[Bin, ...]:
        """Rows in equal-width bins of their predicted probability: of the second of two classes, or of every class."""
        p, is_it = self.probabilities, np.eye(len(self.classes))[self.codes]
        if len(self.classes) == 2:
            p, is_it = p[:, 1:], is_it[:, 1:]
        p, is_it = p.ravel(), is_it.ravel()
        n_bins = MOST_BINS if p.size >= MANY_ROWS else MOST_BINS // 2
        own = np.minimum((n_bins * p).astype(int), n_bins - 1)
        bins = (np.flatnonzero(own == k) for k in range(n_bins))
        return tuple(
            Bin(float(p[rows].mean()), float(is_it[rows].mean()), _error(p[rows]), rows.size)
            for rows in bins
            if rows.size
        )


def _error(p: FloatArray) -> float:
    return float(np.sqrt((p * (1 - p)).sum()) / p.size)
