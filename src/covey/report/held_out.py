"""Held-out class predictions, from the outer folds of a nested score: confusion and calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from covey.evidence import NestedScore
from covey.report.axis import Axis
from covey.report.drawing import Plot
from covey.validation import FloatArray

__all__ = ["Bin", "HeldOut", "class_view"]

# The most classes of a full confusion table; beyond it, the most common mistakes are listed.
MOST_CLASSES, MOST_MISTAKES = 12, 20

# Bins of a calibration plot; half as many with fewer rows than this.
MOST_BINS, MANY_ROWS = 10, 150


class Bin(NamedTuple):
    """Rows with similar predicted probabilities.

    It has their mean probability, the share of rows in the class, the standard error of that share if the probability
    is right, and the number of rows.
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
        bin_of = np.minimum((n_bins * p).astype(int), n_bins - 1)
        return tuple(_bin(p[bin_of == k], is_it[bin_of == k]) for k in range(n_bins) if (bin_of == k).any())


def _bin(p: FloatArray, is_it: FloatArray) -> Bin:
    return Bin(float(p.mean()), float(is_it.mean()), float(np.sqrt((p * (1 - p)).sum()) / p.size), p.size)


def class_view(held_out: HeldOut) -> dict[str, Any]:
    """The confusion table or the most common mistakes, and the calibration plot."""
    counts, classes = held_out.confusion(), held_out.classes
    view = {"held_out": held_out, "confusion": None, "mistakes": None, "plot": _calibration_plot(held_out)}
    if len(classes) <= MOST_CLASSES:
        lines = zip(classes, counts.tolist(), strict=True)
        return {**view, "confusion": [(name, row, max(sum(row), 1)) for name, row in lines]}
    np.fill_diagonal(counts, 0)
    order = np.argsort(-counts, axis=None, kind="stable")[:MOST_MISTAKES]
    pairs = np.column_stack(np.unravel_index(order, counts.shape))
    return {**view, "mistakes": [(classes[a], classes[b], int(counts[a, b])) for a, b in pairs if counts[a, b]]}


def _calibration_plot(held_out: HeldOut) -> Plot:
    """Observed shares against predicted probabilities; calibrated probabilities lie on the diagonal."""
    bins, unit = held_out.calibration(), Axis(0.0, 1.0)
    worst = max(bins, key=lambda b: abs(b.observed - b.predicted))
    of = f"of {held_out.classes[1]}" if len(held_out.classes) == 2 else "of the classes"
    description = (
        f"Calibration plot: observed share {of} against the predicted probability in {len(bins)} bins of rows; they "
        f"differ most at a probability of {worst.predicted:.2f}, where the share is {worst.observed:.2f}."
    )
    plot = Plot("calibration-plot", description, unit, unit, n_ticks=6)
    plot.segments("rule", (0.0, 0.0), (1.0, 1.0))
    x, y, error = np.array([(b.predicted, b.observed, 2 * b.error) for b in bins]).T
    plot.segments("curve", (x, y + error), (x, y - error))
    for b in bins:
        plot.dot("c1", b.predicted, b.observed)
    return plot
