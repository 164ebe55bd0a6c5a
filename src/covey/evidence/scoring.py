"""The deviance of predictions on the test rows of an outer fold, scores, and how far these may be from new rows'."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit
from sklearn.base import BaseEstimator

from covey.evidence.folds import Rows
from covey.losses import Binomial, Loss, Multinomial, Ordinal
from covey.losses.classes import read_labels
from covey.losses.responses import read_offset
from covey.validation import Array, FloatArray, IntArray, PerRow, finite_response, on_host

# How often the score on new rows should be within the interval: readers take the number after ± for the range to
# expect, which one standard error would contain only two times out of three.
LEVEL = 0.9

# What the best constant is, where it is not the mean, by the name of the loss.
CONSTANTS = {"quantile": "quantile", "multi-quantile": "quantiles", "huber": "robust centre"}

# The fewest degrees of freedom of an interval, if one row has nearly all of the deviance.
LEAST_FREEDOM = 2.0


@dataclass(frozen=True)
class Response:
    """A response as `fit` takes it, as numbers for a loss (0 and 1, or one column per class), and its classes."""

    given: Any
    values: FloatArray
    classes: Array | None = None


def read_response(y: Any, has_classes: bool, has_deviance: bool) -> Response:
    """The response of every row; without classes or a deviance, only the estimator reads it: records, or a table."""
    if has_classes or has_deviance:
        given = np.asarray(on_host(y))
    elif isinstance(y, tuple):
        raise ValueError(
            "y is a pair of arrays: give one array with an entry per row, for instance from covey.survival."
        )
    else:
        given = y if hasattr(y, "iloc") else np.asarray(on_host(y))
        return Response(given, given)
    if not has_classes:
        values = finite_response(given, "y", vector=given.ndim == 2)
        return Response(given, values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values)
    labels = read_labels(given.ravel())
    # an ordered categorical keeps its order
    ordered = getattr(getattr(y, "dtype", None), "ordered", False)
    return Response(y if ordered else given.ravel(), labels.y, labels.labels)


@dataclass(frozen=True)
class Task:
    """The training rows and the test rows of one outer fold, and the loss of the model that is scored on them."""

    loss: Loss
    y: FloatArray
    weight: FloatArray
    offset: FloatArray
    y_test: FloatArray
    offset_test: FloatArray
    classes: Array | None = None
    ordinal: tuple[Ordinal, IntArray] | None = None  # with an offset: the loss, and where its classes are

    @classmethod
    def of(
        cls, fitted: BaseEstimator, response: Response, weight: FloatArray, offset: PerRow, train: Rows, test: Rows
    ) -> Task:
        """The fold with these rows, of which the estimator was fitted to the first."""
        loss, values, ordinal = fitted.loss_, response.values, None
        if response.classes is not None:
            if offset is not None and isinstance(loss, Ordinal) and values.ndim == 2:
                ordinal = loss, np.searchsorted(response.classes, fitted.classes_)
            # a fold whose training rows lack a class is scored like every other
            loss = Binomial() if response.classes.size == 2 else Multinomial()
        elif loss.outputs:
            values = loss.check(values)
        shift: FloatArray = np.zeros(values.shape)
        if offset is not None:
            outputs = values.shape[1] if values.ndim == 2 and ordinal is None else 1
            shift = read_offset(offset, len(values), outputs, fitted.loss_ if ordinal else loss)
            shift = shift[:, 0] if ordinal else shift.reshape(values.shape)
        rows = values[train], weight[train], shift[train], values[test], shift[test]
        return cls(loss, *rows, response.classes, ordinal)

    @property
    def scale(self) -> FloatArray:
        """The training standard deviation of each of several responses, so that units do not matter."""
        if not self.loss.several:
            return np.ones(self.y.shape[1:])
        share = self.weight / self.weight.sum()
        spread = np.sqrt(share @ np.square(self.y - share @ self.y))
        return np.where(spread > 0, spread, 1.0)

    @property
    def null_in_words(self) -> str:
        """What `null_mean` is."""
        if self.offset.any() or self.offset_test.any():
            if self.loss.log_link:
                return "one rate for all rows, that of the training rows, times the exposure (exp of the offset)"
            return "the offset, plus the best constant of the training rows"
        constant = CONSTANTS.get(self.loss.name, "mean")
        return f"the {constant} of the training rows" if self.classes is None else "the shares of the classes"

    def null_mean(self) -> FloatArray:
        """Predictions of the test rows by the best constant of the training rows."""
        if self.ordinal is not None:  # thresholds are the constant
            loss, places = self.ordinal
            codes, shares = self.y[:, places].argmax(axis=1), np.zeros(self.y_test.shape)
            known = loss.with_thresholds(codes, self.offset, self.weight)
            shares[:, places] = known.probabilities(self.offset_test[:, None])
            return shares
        if self.classes is None or self.y.ndim == 1:
            constant = self.loss.null(self.y, self.weight, self.offset)
            return np.asarray(self.loss.inverse_link(self.offset_test + constant))
        present, shares = self.weight @ self.y > 0, np.zeros(self.y_test.shape)  # others have a probability of zero
        constant = self.loss.null(self.y[:, present], self.weight, self.offset[:, present])
        shares[:, present] = self.loss.inverse_link(self.offset_test[:, present] + constant)
        return shares

    def deviance(self, mean: FloatArray) -> FloatArray:
        """The deviance of each test row at a predicted mean."""
        mean = np.asarray(mean, dtype=float).reshape(self.y_test.shape)
        return np.asarray(self.loss.deviance_at_mean(self.y_test / self.scale, mean / self.scale))


def pooled(loss: FloatArray, null: FloatArray, weight: FloatArray) -> float:
    """The share of the null model's loss that a model explains, over all rows."""
    null_loss = float(weight @ null)
    return 1 - float(weight @ loss) / null_loss if null_loss > 0 else float("nan")


def row_margin(
    loss: FloatArray, null: FloatArray, weight: FloatArray, fold: IntArray, units: PerRow, *, ratio: float,
    n_deals: float = 1.0, beside: FloatArray | None = None,
) -> float:  # fmt: skip
    r"""Half the width of the interval around `pooled`, or around its difference from another method's.

    The score is a ratio of two sums over rows, so each row changes it by about
    :math:`\delta_i = -w_i (l_i - (1 - s) n_i) / \sum_j w_j n_j`. If rows and models were independent, the variance
    would be the sum of :math:`\delta_i^2`. They are not, in two ways. A row is tested in one fold and trained on in the
    others: Nadeau and Bengio's correction multiplies the variance by one plus the number of folds times the ratio of
    test rows to training rows. And some folds' models are better than others: by how much the sums of
    :math:`\delta_i` over folds vary more than those of independent rows would is added. The square root is multiplied
    by a quantile of Student's t; its degrees of freedom are those of a sum of squares with the kurtosis of
    :math:`\delta` (Satterthwaite), because a few rows often have most of the deviance.

    `loss` and `null` are the deviances of every test row in every fold, and `weight` its weight, divided by how often
    the row is tested, `n_deals`. Rows with the same entry of `units` count as one observation. `ratio` is the number of
    test rows of a fold over that of its training rows, and `beside` has the losses of another method.
    """
    null_loss = float(weight @ null)
    if null_loss <= 0:
        return float("nan")
    other = null if beside is None else beside
    difference = float(weight @ (other - loss)) / null_loss
    changes = weight * ((other - loss) - difference * null) / null_loss
    positions = np.unique(np.asarray(units), return_inverse=True)[1].ravel()
    by_unit, by_fold = np.bincount(positions, weights=changes), np.bincount(fold, weights=changes)
    squares, n = float(by_unit @ by_unit), max(by_unit.size, 2)
    if squares == 0:
        return 0.0
    variance, n_folds = squares * n / (n - 1), by_fold.size / n_deals
    excess = n_deals * float(by_fold @ by_fold) * n_folds / (n_folds - 1) - variance if n_folds > 1 else 0.0
    kurtosis = n * float(np.sum(by_unit**4)) / squares**2
    freedom = max(2 * n / max(kurtosis - 1, 1.0), LEAST_FREEDOM)
    error = np.sqrt(variance * (1 + n_folds * ratio) + max(excess, 0.0))
    return float(stdtrit(freedom, (1 + LEVEL) / 2) * error)


def fold_margin(scores: FloatArray, ratio: float) -> float:
    """The same for a mean over folds, if single rows have no scores: Nadeau and Bengio's corrected t interval."""
    k = len(scores)
    if k < 2:
        return float("nan")
    return float(stdtrit(k - 1, (1 + LEVEL) / 2) * np.sqrt((1 / k + ratio) * np.var(scores, ddof=1)))
