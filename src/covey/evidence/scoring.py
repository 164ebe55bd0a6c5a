"""The deviance of predictions on the test rows of an outer fold, scores, and how far these may be from new rows'."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.losses import Binomial, Loss, Multinomial
from covey.losses.arrays import read_offset
from covey.losses.classes import read_labels
from covey.validation import FloatArray, on_host

__all__ = ["NINE_IN_TEN", "Response", "Task", "fold_error", "pooled", "read_response", "row_error"]

# A Gaussian variable is within this many standard deviations nine times out of ten. The number after ± is read as the
# range of the score on new rows, which one standard deviation would contain only two times out of three.
NINE_IN_TEN = 1.645


@dataclass(frozen=True)
class Response:
    """A response as `fit` takes it, as numbers for a loss (0 and 1, or one column per class), and its classes."""

    given: Any
    values: FloatArray
    classes: Any = None


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
        values = given.astype(float)
        return Response(given, values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values)
    labels = read_labels(given.ravel())
    return Response(given.ravel(), labels.y, labels.labels)


@dataclass(frozen=True)
class Task:
    """The training rows and the test rows of one outer fold, and the loss of the model that is scored on them."""

    loss: Loss
    y: FloatArray
    weight: FloatArray
    offset: FloatArray
    y_test: FloatArray
    offset_test: FloatArray
    classes: Any = None

    @classmethod
    def of(cls, loss: Loss, response: Response, weight: FloatArray, offset: Any, train: Any, test: Any) -> Task:
        """The fold with these rows."""
        values = response.values
        if response.classes is not None:
            # a fold whose training rows lack a class is scored like every other
            loss = Binomial() if response.classes.size == 2 else Multinomial()
        shift: FloatArray = np.zeros(values.shape)
        if offset is not None:
            outputs = values.shape[1] if values.ndim == 2 else 1
            shift = read_offset(offset, len(values), outputs, loss).reshape(values.shape)
        return cls(loss, values[train], weight[train], shift[train], values[test], shift[test], response.classes)

    @property
    def scale(self) -> FloatArray:
        """The training standard deviation of each of several responses, so that units do not matter."""
        if not self.loss.several:
            return np.ones(self.y.shape[1:])
        share = self.weight / self.weight.sum()
        spread = np.sqrt(share @ np.square(self.y - share @ self.y))
        return np.where(spread > 0, spread, 1.0)

    def null_mean(self) -> FloatArray:
        """Predictions of the test rows by the best constant of the training rows."""
        constant = self.loss.null(self.y, self.weight, self.offset)
        return np.asarray(self.loss.inverse_link(self.offset_test + constant))

    def deviance(self, mean: FloatArray) -> FloatArray:
        """The deviance of each test row at a predicted mean."""
        mean = np.asarray(mean, dtype=float).reshape(self.y_test.shape)
        return np.asarray(self.loss.deviance_at_mean(self.y_test / self.scale, mean / self.scale))


def pooled(loss: FloatArray, null: FloatArray, weight: FloatArray) -> float:
    """The share of the null model's loss that a model explains, over all rows."""
    null_loss = float(weight @ null)
    return 1 - float(weight @ loss) / null_loss if null_loss > 0 else float("nan")


def row_error(
    loss: FloatArray, null: FloatArray, weight: FloatArray, n_folds: int, labels: Any = None, beside: Any = None
) -> float:
    r"""How far `pooled`, or its difference from another method's, may be from its value on new rows.

    The score is a ratio of two means over rows, so each row changes it by about
    :math:`\delta_i = -w_i (l_i - (1 - s) n_i) / \sum_j w_j n_j`. If rows and models were independent, the variance
    would be the sum of :math:`\delta_i^2`. They are not: a row is tested in one fold and trained on in the others, so
    the errors of folds are correlated. Nadeau and Bengio's correction multiplies the variance by ``1 + k / (k - 1)``
    for k folds, because the test rows of a fold are a share ``1 / (k - 1)`` of its training rows. The root is
    multiplied by `NINE_IN_TEN`.

    Rows with the same entry in `labels` count as one observation; `beside` has the losses of another method.
    """
    null_loss = float(weight @ null)
    if null_loss <= 0:
        return float("nan")
    other = null if beside is None else beside
    difference = float(weight @ (other - loss)) / null_loss
    changes = weight * ((other - loss) - difference * null) / null_loss
    if labels is not None:
        changes = np.bincount(np.unique(np.asarray(labels), return_inverse=True)[1], weights=changes)
    n = np.count_nonzero(changes) or 1
    variance = float(changes @ changes) * (n / max(n - 1, 1))
    return NINE_IN_TEN * float(np.sqrt(variance * (1 + n_folds / (n_folds - 1))))


def fold_error(scores: FloatArray) -> float:
    """The same for a mean over folds, if single rows have no scores."""
    k = len(scores)
    return NINE_IN_TEN * float(np.sqrt((1 / k + 1 / (k - 1)) * np.var(scores, ddof=1))) if k > 1 else float("nan")
