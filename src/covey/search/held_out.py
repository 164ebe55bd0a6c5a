"""The selected model without the rows of each fold, and how far these rows are from its predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from covey.designs import Design
from covey.groups import Groups
from covey.layout import offsets
from covey.search.problem import Validation, in_parts
from covey.search.rules import Rule
from covey.validation import FloatArray, on_host, real

__all__ = ["FoldModels", "HeldOut", "fold_models"]

# Of more rows in a fold, evenly spaced scores are kept: shares of rows are then exact to a hundredth of a percent.
MOST_SCORES = 10_000

# Shares of rows are compared with this relative tolerance.
ROUNDING = 1e-12


@dataclass(frozen=True)
class FoldModels:
    """The models without the rows of each fold of the first deal, in the user's columns and units.

    Attributes
    ----------
    coefs : scipy.sparse.csr_array, shape (n_folds, n_outputs * n_columns)
        Coefficients of the columns of X, output by output.
    intercepts : ndarray, shape (n_folds, n_outputs)
    eta : ndarray, shape (n_rows, n_folds, n_outputs)
        Linear predictors of all rows without offsets; of the validation rows, if there are any.
    held_out, trained : ndarray of bool, shape (n_rows, n_folds)
        The rows that each model is scored on, and those that it was fitted on.
    validation : Validation or None
        The validation rows, if they are the rows of `eta`.
    """

    coefs: sp.csr_array
    intercepts: FloatArray
    eta: FloatArray
    held_out: NDArray[np.bool_]
    trained: NDArray[np.bool_]
    validation: Validation | None


def fold_models(groups: Groups, choice: Rule) -> FoldModels:
    """The model without the rows of each fold of the first deal, which were not asked which model to choose, either."""
    found, posed = choice.found, choice.found.posed
    folds = [training for training in found.trainings if training.split.test]
    m, width = posed.scale.size, posed.working.layout.members.size
    coefs, levels = np.zeros((len(folds), m, width)), np.zeros((len(folds), m))
    for coef, level, training, verdict in zip(coefs, levels, folds, choice.without_fold(), strict=True):
        weights = choice.weights_by(verdict)
        for i in np.flatnonzero(weights):
            columns, values, intercept = choice.verdict.recipes[i].fit(training).on_columns()
            coef[:, columns] += weights[i] * values
            level += weights[i] * intercept
    design = posed.design if posed.validation is None else posed.validation.design
    flat = coefs.reshape(len(folds) * m, width)
    used = np.flatnonzero(flat.any(axis=0))
    eta = np.asarray(on_host(design.predict(used, flat[:, used], levels.ravel())), dtype=float)
    # with overlapping groups, the design has a copy of a shared column for every group
    flat = np.array([groups.from_contiguous(one) for one in flat]) if groups.overlapping else flat
    at = slice(0, posed.design.shape[0]) if posed.validation is None else slice(posed.design.shape[0], None)
    labels = posed.labels[at]
    return FoldModels(
        sp.csr_array(flat.reshape(len(folds), -1)),
        levels,
        eta.reshape(len(eta), len(folds), m),
        np.column_stack([in_parts(labels, training.split.test) for training in folds]),
        np.column_stack([in_parts(labels, training.split.train) for training in folds]),
        posed.validation,
    )


@dataclass(frozen=True)
class HeldOut:
    """Models that were fitted without the rows of a fold, and the scores of these rows: the larger, the less expected.

    Attributes
    ----------
    coefs : scipy.sparse.csr_array, shape (n_folds, n_outputs * n_columns)
        Coefficients of the columns of X in the user's units, output by output.
    intercepts : ndarray, shape (n_folds, n_outputs)
    scores : ndarray, shape (n_scores, n_responses)
        Fold after fold, in ascending order within each.
    weights : ndarray, shape (n_scores, n_responses)
        The weights of the scores, in rows.
    starts : ndarray of int, shape (n_folds + 1,)
        The position of each fold's first score, and the number of scores.
    n_rows : float
        The number of rows that were held out, counted by weight.
    whole : bool
        Whether all responses are whole numbers.
    """

    coefs: sp.csr_array
    intercepts: FloatArray
    scores: FloatArray
    weights: FloatArray
    starts: NDArray[np.intp]
    n_rows: float
    whole: bool = False

    @classmethod
    def of(
        cls, models: FoldModels, by_fold: Sequence[tuple[FloatArray, FloatArray]], n_rows: float, whole: bool = False
    ) -> HeldOut:
        """Scores of shape (n_rows, n_responses) and weights of shape (n_rows,), fold by fold."""
        parts = [_in_order(scores, weights) for scores, weights in by_fold]
        return cls(
            models.coefs,
            models.intercepts,
            np.concatenate([scores for scores, _ in parts]),
            np.concatenate([weights for _, weights in parts]),
            offsets(np.array([len(scores) for scores, _ in parts])),
            float(n_rows),
            whole,
        )

    @property
    def columns(self) -> NDArray[np.intp]:
        """The columns of X that some fold's model uses."""
        return np.unique(self.coefs.indices % (self.coefs.shape[1] // self.intercepts.shape[1])).astype(np.intp)

    def predictors(self, design: Design) -> FloatArray:
        """The linear predictors of all fold models; shape (n_rows, n_folds, n_outputs)."""
        n_folds, m = self.intercepts.shape
        coefs = self.coefs.reshape((n_folds * m, self.coefs.shape[1] // m)).tocsc()[:, self.columns].toarray()
        eta = design.predict(self.columns, coefs, self.intercepts.ravel())
        return np.asarray(on_host(eta), dtype=float).reshape(design.shape[0], n_folds, m)

    def needed(self, level: float) -> float:
        """How many of the held-out rows must lie in intervals that contain a share of new rows.

        A new row is one of ``n_rows + 1`` rows, each as likely as the others to have the largest score.
        """
        level = real(level, "interval")
        if not 0 < level < 1:
            raise ValueError(f"interval is the share of rows to cover, between 0 and 1, such as 0.9, not {level:g}.")
        most = self.n_rows / (self.n_rows + 1)
        if level > most * (1 + ROUNDING):
            raise ValueError(
                f"interval={level:g} needs at least {np.ceil(level / (1 - level) - 1e-9):.0f} held-out rows, and the "
                f"fit had {self.n_rows:.6g}: ask for at most {np.floor(most * 1000) / 1000:g}, or fit more rows."
            )
        return level * (self.n_rows + 1) * (1 - ROUNDING)

    def upto(self, values: FloatArray, response: int = 0, side: Literal["left", "right"] = "right") -> FloatArray:
        """The number of rows with a score of at most a value per fold, or below it if `side` is left.

        Parameters
        ----------
        values : ndarray, shape (..., n_folds)
        response : int
        side : {"right", "left"}

        Returns
        -------
        ndarray, shape (...)
        """
        total: FloatArray = np.zeros(values.shape[:-1])
        for k in range(len(self.intercepts)):
            at = slice(self.starts[k], self.starts[k + 1])
            sums = np.concatenate([[0.0], np.cumsum(self.weights[at, response])])
            total += sums[np.searchsorted(self.scores[at, response], values[..., k], side=side)]
        return total

    def quantiles(self, share: float, response: int = 0) -> FloatArray:
        """The least score in each fold that this share of the fold's rows does not exceed; shape (n_folds,)."""
        out = np.zeros(len(self.intercepts))
        for k in range(out.size):
            at = slice(self.starts[k], self.starts[k + 1])
            if at.start < at.stop:
                sums = np.cumsum(self.weights[at, response])
                place = np.searchsorted(sums, share * sums[-1] * (1 - ROUNDING))
                out[k] = self.scores[at, response][min(place, sums.size - 1)]
        return out


def _in_order(scores: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Scores in ascending order, and their weights, both of shape (n_kept, n_responses)."""
    order = np.argsort(scores, axis=0, kind="stable")
    scores, by_response = np.take_along_axis(scores, order, axis=0), weights[order]
    if len(scores) <= MOST_SCORES:
        return scores, by_response
    # the largest of neighbours stands for them
    ends = offsets(np.diff(np.linspace(0, len(scores), MOST_SCORES + 1).astype(np.intp)))
    return scores[ends[1:] - 1], np.add.reduceat(by_response, ends[:-1], axis=0)
