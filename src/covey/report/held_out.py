"""Classes of rows that a fit has not seen: the whole fit is repeated without each fold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from covey.validation import FloatArray

__all__ = ["Bin", "HeldOut", "refit_in_folds"]

# Bins of a calibration plot, and half as many with fewer rows than this.
MOST_BINS, MANY_ROWS = 10, 150


@dataclass(frozen=True)
class Bin:
    """Rows of about the same predicted probability.

    Attributes
    ----------
    predicted, observed : float
        The mean probability, and the share of rows that are of the class.
    error : float
        The standard error of that share, were the probability right.
    n : int
        How many rows.
    """

    predicted: float
    observed: float
    error: float
    n: int


@dataclass(frozen=True)
class HeldOut:
    """Predictions of models that were chosen and fitted without the rows that they are for.

    Attributes
    ----------
    classes : tuple of str
        In the order of the estimator's `classes_`.
    codes : ndarray of int, shape (n_rows,)
        The class of each row, as a position.
    probabilities : ndarray, shape (n_rows, n_classes)
    weight : ndarray, shape (n_rows,)
    n_folds : int
    """

    classes: tuple[str, ...]
    codes: NDArray[np.intp]
    probabilities: FloatArray
    weight: FloatArray
    n_folds: int

    @property
    def accuracy(self) -> float:
        """The share of the rows' weight whose most likely class is the right one."""
        return float(np.average(self.predicted == self.codes, weights=self.weight))

    @property
    def predicted(self) -> NDArray[np.intp]:
        """The most likely class of each row."""
        return np.asarray(self.probabilities.argmax(axis=1))

    @property
    def log_loss(self) -> float:
        """Minus the mean logarithm of the probability of the right class."""
        right = self.probabilities[np.arange(len(self.codes)), self.codes]
        return float(-np.average(np.log(np.maximum(right, np.finfo(float).tiny)), weights=self.weight))

    def confusion(self) -> NDArray[np.intp]:
        """How many rows of each class (first axis) are predicted to be of which (second axis)."""
        k = len(self.classes)
        return np.bincount(k * self.codes + self.predicted, minlength=k * k).reshape(k, k)

    def calibration(self) -> tuple[Bin, ...]:
        """Rows in bins of equal width by their predicted probability: of the second class of two, or of every class."""
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


def refit_in_folds(
    model: Any,
    X: Any,
    y: Any,
    n_folds: int = 5,
    *,
    sample_weight: Any = None,
    offset: Any = None,
    told: Callable[[int], None] | None = None,
) -> HeldOut:
    """Repeat the whole fit of a classifier, choice of the model included, without the rows of each fold.

    Parameters
    ----------
    model : GroupSparseClassifier
        Fitted on these data.
    X : array, DataFrame or sparse matrix
    y : array-like of shape (n_rows,)
    n_folds : int
        Fewer are made where a class has fewer rows.
    sample_weight, offset : array-like, optional
        As in `fit`.
    told : callable, optional
        Called with the number of each fold before it is fitted, from 1 on.

    Returns
    -------
    HeldOut

    Raises
    ------
    ValueError
        Where that cannot be done, with the reason.
    """
    rows = _row_taker(X)
    labels = np.asarray(y)
    codes = np.searchsorted(model.classes_, labels)
    fewest = int(np.bincount(codes).min())
    if fewest < 2:
        raise ValueError("a class with a single row cannot be predicted by a fit without it")
    n_folds = min(n_folds, fewest)
    probabilities = np.zeros((len(codes), len(model.classes_)))
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    for fold, (train, test) in enumerate(splitter.split(np.zeros(len(codes)), codes), start=1):
        if told is not None:
            told(fold)
        weight, shift = _part(sample_weight, train), _part(offset, train)
        fitted = clone(model).fit(rows(train), labels[train], weight, shift)
        probabilities[test] = fitted.predict_proba(rows(test), _part(offset, test))
    weight = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    return HeldOut(tuple(map(str, model.classes_)), codes, probabilities, weight, n_folds)


def _row_taker(X: Any) -> Callable[[Any], Any]:
    if hasattr(X, "iloc"):
        return lambda rows: X.iloc[rows]
    if sp.issparse(X):
        table = sp.csr_array(X)
        return lambda rows: table[rows]
    if isinstance(X, np.ndarray | list):
        values = np.asarray(X)
        return lambda rows: values[rows]
    raise ValueError(f"rows of {type(X).__name__} are not taken apart for it")


def _part(values: Any, rows: Any) -> Any:
    return None if values is None else np.asarray(values)[rows]
