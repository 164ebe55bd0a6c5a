"""Any smooth convex loss: gradients by one product with the rows, refits by Newton's method."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from covey.limit.loss_rows import LossRows
from covey.limit.newton import Fit, minimise
from covey.limit.objective import Objective
from covey.limit.response import Response
from covey.limit.rows import Split
from covey.validation import FloatArray

__all__ = ["SEPARATED_RIDGE", "Likelihood", "group_squares"]

# Where a minimum lies at infinity the fit goes on with this penalty on the working columns, which have unit variance,
# in units of the curvature of the model without groups: far below any ridge that is tried, and enough to stay finite.
SEPARATED_RIDGE = 1e-3


class Likelihood(Objective):
    """A loss on the rows that a split is fitted on, at its minimiser on the awake groups.

    Parameters
    ----------
    rows : LossRows
    split : Split
    intercept : bool
        Whether the first of the extra columns is one of ones.

    Attributes
    ----------
    response : Response
        With weights for the rows of the split.
    joined : list of int
        The groups in the model, in the order in which they joined.
    ends : list of int
        The number of columns of the model after each of them, extra ones included.
    coefs : list of ndarray, shape (n_columns, n_outputs)
        Of the model before any group joined, and after each of them; columns in the order in which they joined.
    n_extras : int
        How many columns stand before those of the groups.
    separated : list of bool
        Whether each of these models has its minimum at infinity, and is one with a small ridge therefore.
    """

    def __init__(self, rows: LossRows, split: Split, intercept: bool) -> None:
        self.rows, self.split, self.intercept = rows, split, intercept
        self.n_groups = rows.n_groups
        self.response: Response = rows.training(split)
        self.joined: list[int] = []
        self.ends: list[int] = []
        self.n_extras = rows.extras.shape[1]
        self._A = np.asfortranarray(rows.extras)
        start = np.zeros((self.n_extras, self.response.n_outputs))
        if intercept:
            start[0] = self.response.null
        self._last = minimise(self.response, self._A, None, start)
        self.coefs: list[FloatArray] = [self._last.coef]
        self.separated = [False]
        self._deviances = [self.response.deviance(self._last.eta)]

    @cached_property
    def curvature(self) -> float:
        """The summed curvature of the model without groups: the unit of penalties."""
        return float(self.response.curvature(self.response.at_null(self.intercept)).sum())

    @property
    def columns(self) -> FloatArray:
        """Those of the model: extra ones, then the groups in the order in which they joined."""
        return self._A

    def predictor(self, n_awake: int) -> FloatArray:
        """The linear predictor of the model on the first so many groups, on all rows; shape (n_rows, n_outputs)."""
        coef = self.coefs[n_awake]
        return np.asarray(self._A[:, : len(coef)] @ coef)

    def gradient_norms(self) -> FloatArray:
        """The norm of each group of ``Z' score``, all outputs together, per unit of weight."""
        product = self.rows.Z.T @ self.response.score(self._last.eta)
        return np.sqrt(group_squares(product, self.rows)) / self.response.total_weight

    def refit(self, group: int) -> None:
        """Let a group join."""
        own = self.rows.Z[:, self.rows.starts[group] : self.rows.starts[group + 1]]
        self._A = np.hstack([self._A, own])
        start = np.vstack([self.coefs[-1], np.zeros((own.shape[1], self.response.n_outputs))])
        separated = self.separated[-1]
        if not separated:
            fit = minimise(self.response, self._A, None, start)
            separated = fit.status != "converged"
        if separated:
            penalty = np.full(self._A.shape[1], SEPARATED_RIDGE * self.curvature)
            penalty[: self.n_extras] = 0.0
            fit = minimise(self.response, self._A, np.diag(penalty), start)
        self.joined.append(group)
        self.ends.append(self._A.shape[1])
        self.coefs.append(fit.coef)
        self.separated.append(separated)
        self._deviances.append(self.response.deviance(fit.eta))
        self._last = fit

    def truncate(self, n_awake: int) -> None:
        """Go back to the first so many groups."""
        if n_awake == len(self.joined):
            return
        del self.ends[n_awake:], self.joined[n_awake:]
        del self.coefs[n_awake + 1 :], self.separated[n_awake + 1 :], self._deviances[n_awake + 1 :]
        self._A = self._A[:, : len(self.coefs[-1])]
        self._last = Fit(self.coefs[-1], self.predictor(n_awake), "converged", 0)

    def unexplained(self) -> FloatArray:
        """The mean deviance of the model on the first m groups, for every m; shape (n_awake + 1,)."""
        return np.array(self._deviances) / self.response.total_weight

    def models(self, first: int, intercept: bool) -> tuple[FloatArray, FloatArray]:
        """Models on the first m groups, for every m from the first on, without extra columns but ones.

        Returns
        -------
        W, levels : ndarray, shape (n_models, n_outputs, k) and (n_models, n_outputs)
            Columns of the groups in the order in which they joined.
        """
        i, m = int(intercept), self.response.n_outputs
        made = self.coefs[first:]
        if self.n_extras > i:
            made = [
                self._without_extras(coef, i, gone) for coef, gone in zip(made, self.separated[first:], strict=True)
            ]
        W = np.zeros((len(made), m, self._A.shape[1] - self.n_extras))
        for row, coef in zip(W, made, strict=True):
            row[:, : len(coef) - i] = coef[i:].T
        return W, np.array([coef[0] if i else np.zeros(m) for coef in made])

    def _without_extras(self, coef: FloatArray, i: int, separated: bool) -> FloatArray:
        """The model of the same groups without the scores of common factors."""
        kept = np.concatenate([np.arange(i), np.arange(self.n_extras, len(coef))])
        A = self._A[:, kept]
        fit = None if separated else minimise(self.response, A, None, coef[kept])
        if fit is None or fit.status != "converged":
            penalty = np.full(len(kept), SEPARATED_RIDGE * self.curvature)
            penalty[:i] = 0.0
            fit = minimise(self.response, A, np.diag(penalty), coef[kept])
        return fit.coef


def group_squares(product: FloatArray, rows: LossRows) -> FloatArray:
    """The squared norm of each group of a vector per output; shape (n_columns, n_outputs) to (n_groups,)."""
    squares = np.add.reduceat(np.append((product * product).sum(axis=1), 0.0), rows.starts[:-1])
    return np.asarray(np.where(rows.ranks > 0, squares, 0.0))
