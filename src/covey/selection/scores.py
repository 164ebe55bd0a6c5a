"""Held-out rows of a split: losses of models on them, and distances between models."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from covey.limit.response import Response
from covey.losses import Loss, Squared
from covey.validation import FloatArray

__all__ = ["CoupledScores", "LossScores", "Scores", "SquaredScores"]


class Scores(ABC):
    """Held-out rows. Predictions on them are tables with models along the last axis.

    Attributes
    ----------
    loss : Loss
    weight : float
        The total weight of the rows.
    """

    loss: Loss
    weight: float

    @abstractmethod
    def errors(self, table: FloatArray) -> FloatArray:
        """The summed deviance of every model; shape (n_models,)."""

    @abstractmethod
    def distances(self, table: FloatArray, point: FloatArray) -> FloatArray:
        """The distance of every model from another one: its summed deviance from the other model's predicted means.

        For squared loss this is the squared distance of predictions. Two nearby models differ in deviance by a sum over
        the rows of twice the residual times the difference of their predictors. The variance of a residual is the
        dispersion times the curvature of the loss, so the standard error of that sum is twice the root of the
        dispersion times this distance.
        """


class SquaredScores(Scores):
    """Rows scored by squared error; tables hold residuals times the roots of the rows' weights, (n_rows, n_models)."""

    def __init__(self, weight: float) -> None:
        self.loss, self.weight = Squared(), weight

    def errors(self, table: FloatArray) -> FloatArray:
        """The summed squared residuals."""
        return np.asarray(np.einsum("ij,ij->j", table, table))

    def distances(self, table: FloatArray, point: FloatArray) -> FloatArray:
        """The summed squared differences of predictions."""
        apart = table - point[:, None]
        return np.asarray(np.einsum("ij,ij->j", apart, apart))


class LossScores(Scores):
    """Rows scored by the deviance of a loss; tables hold linear predictors, (n_rows, n_outputs, n_models)."""

    def __init__(self, response: Response) -> None:
        self.response, self.loss, self.weight = response, response.loss, response.total_weight
        self._y = response.y[:, None]
        self._offset = response.offset[:, None, :]

    def errors(self, table: FloatArray) -> FloatArray:
        """The summed unit deviances."""
        return np.asarray(self.response.weight @ self.loss.deviance(self._y, self._seen(table)))

    def distances(self, table: FloatArray, point: FloatArray) -> FloatArray:
        """The summed deviance of every model from the other model's predicted means."""
        means = self.loss.inverse_link(self._seen(point.reshape(len(point), -1, 1)))
        return np.asarray(self.response.weight @ self.loss.deviance(means, self._seen(table)))

    def _turned(self, table: FloatArray) -> FloatArray:
        """With the axes in the order of the losses: rows, models, and outputs if there are several."""
        return table.transpose(0, 2, 1) @ self.response.contrasts if self.loss.vector else table[:, 0, :]

    def _seen(self, table: FloatArray) -> FloatArray:
        return self._turned(table) + (self._offset if self.loss.vector else self._offset[:, :, 0])


class CoupledScores(Scores):
    """Rows whose loss depends on the training rows, scored by what they add to the training deviance.

    The score is the deviance of training and held-out rows together minus the deviance of the training rows, at the
    same model (van Houwelingen and others, 2006): the risk sets of a single fold would be small.

    Parameters
    ----------
    response : Response
        Of training and held-out rows; tables have a row for each.
    judging : ndarray of bool, shape (n_rows,)
    """

    def __init__(self, response: Response, judging: NDArray[np.bool_]) -> None:
        self.response, self.loss = response, response.loss
        known = response.loss.informative(response.y)
        counted = response.weight if known is None else response.weight * known
        self.weight = float(counted[judging].sum())
        self._share = self.weight / float(counted.sum())
        self._training = None if judging.all() else response.weighted(np.where(judging, 0.0, response.weight)).on_rows

    def errors(self, table: FloatArray) -> FloatArray:
        """What the held-out rows add to the deviance."""
        eta = self._seen(table)
        made = self.response.on_rows.deviance(eta)
        return np.asarray(made if self._training is None else made - self._training.deviance(eta))

    def distances(self, table: FloatArray, point: FloatArray) -> FloatArray:
        """Twice the held-out rows' share of the loss above its tangent at the other model.

        For a likelihood with independent rows this is the deviance of `LossScores`.
        """
        rows, eta = self.response.on_rows, self._seen(table)
        at = self._seen(point.reshape(len(point), -1, 1))
        rise = rows.total(eta) - rows.total(at) + ((eta - at) * rows.score(at)).sum(axis=0)
        return np.maximum(2 * self._share * rise, 0.0)

    def _seen(self, table: FloatArray) -> FloatArray:
        return np.asarray(table[:, 0, :] + self.response.offset)
