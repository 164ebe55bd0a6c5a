"""The deviance of predictions, row by row, and of the null model fitted to the training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.losses import Binomial, Loss, Multinomial
from covey.losses.offsets import read_offset
from covey.validation import FloatArray, on_host

__all__ = ["Response", "Task", "read_response"]


@dataclass(frozen=True)
class Response:
    """A response in the form that losses take.

    Attributes
    ----------
    given : ndarray
        In the form that `fit` takes: numbers or labels.
    values : ndarray, shape (n_rows,) or (n_rows, n_outputs)
        Numbers, 0 and 1, or one column per class.
    classes : ndarray or None
    """

    given: Any
    values: FloatArray
    classes: Any = None


def read_response(y: Any, has_classes: bool) -> Response:
    """The response of every row."""
    given = np.asarray(on_host(y))
    if not has_classes:
        values = given.astype(float)
        return Response(given, values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values)
    classes, codes = np.unique(given.ravel(), return_inverse=True)
    values = codes.astype(float) if classes.size == 2 else np.eye(classes.size)[codes]
    return Response(given.ravel(), values, classes)


@dataclass(frozen=True)
class Task:
    """The training and test rows of one outer fold.

    Attributes
    ----------
    loss : Loss
        The loss by which predictions are scored: the fitted model's.
    y, weight, offset : ndarray
        Data of the training rows.
    y_test, offset_test : ndarray
    classes : ndarray or None
    """

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
