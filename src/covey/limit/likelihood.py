"""Any smooth convex loss: gradients from one product with the rows, refits by Newton's method."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtrs

from covey.limit.events import Objective
from covey.limit.least_squares import DEPENDENT, independent
from covey.limit.loss_rows import LossRows
from covey.limit.newton import Fit, minimise
from covey.limit.response import Response
from covey.limit.rows import Split
from covey.validation import FloatArray

__all__ = ["SEPARATED_RIDGE", "Likelihood", "group_squares"]

# If the minimum lies at infinity, models get this penalty on the working columns, which have unit variance. Its unit is
# the curvature of the null model. It is far below any ridge that is tried, and enough to keep coefficients finite.
SEPARATED_RIDGE = 1e-3


class Likelihood(Objective):
    """A loss on the training rows of a split, at its minimiser on the awake groups.

    Parameters
    ----------
    rows : LossRows
    split : Split
    intercept : bool
        Whether the first extra column is constant.

    Attributes
    ----------
    response : Response
        Its weights are zero outside the training rows.
    joined : list of int
        The groups in the model, in the order in which they joined.
    ends : list of int
        The number of independent columns in the model after each of them, including extra columns.
    coefs : list of ndarray, shape (n_columns, n_outputs)
        The models before any group joined and after each one, with columns in the order in which they joined. Columns
        that are combinations of earlier ones have coefficient zero.
    n_extras : int
        How many columns come before the groups' columns.
    separated : list of bool
        Whether the minimum lies at infinity, for each of these models; those models have a small ridge.
    """

    def __init__(self, rows: LossRows, split: Split, intercept: bool) -> None:
        self.rows, self.split, self.intercept = rows, split, intercept
        self.n_groups = rows.n_groups
        self.response: Response = rows.training(split)
        self.joined: list[int] = []
        self.ends: list[int] = []
        self.n_extras = rows.extras.shape[1]
        self._A = np.asfortranarray(rows.extras)
        # the independent columns, and the Cholesky factor of their Gram matrix
        self._basis: list[int] = []
        self._R: FloatArray = np.empty((0, 0))
        self._add(np.arange(self.n_extras))
        start = np.zeros((self.n_extras, self.response.n_outputs))
        if intercept:
            start[0] = self.response.null
        self._last = minimise(self.response, self._A, None, start)
        self.coefs: list[FloatArray] = [self._last.coef]
        self.separated: list[bool] = [False]
        self._deviances = [self.response.deviance(self._last.eta)]

    @cached_property
    def curvature(self) -> float:
        """The summed curvature of the null model: the unit of penalties."""
        return float(self.response.curvature(self.response.at_null(self.intercept)).sum())

    def predictor(self, n_awake: int) -> FloatArray:
        """The linear predictor of the model on the first `n_awake` groups, for all rows; shape (n_rows, n_outputs)."""
        coef = self.coefs[n_awake]
        return np.asarray(self._A[:, : len(coef)] @ coef)

    def gradient_norms(self) -> FloatArray:
        """The norm of ``Z' score`` on each group, over all outputs, per unit of weight."""
        product = self.rows.Z.T @ self.response.score(self._last.eta)
        return np.sqrt(group_squares(product, self.rows)) / self.response.total_weight

    def refit(self, group: int) -> None:
        """Add a group."""
        own = self.rows.Z[:, self.rows.starts[group] : self.rows.starts[group + 1]]
        self._A = np.hstack([self._A, own])
        self._add(np.arange(len(self.coefs[-1]), self._A.shape[1]))
        start = np.vstack([self.coefs[-1], np.zeros((own.shape[1], self.response.n_outputs))])
        separated = self.separated[-1]
        if not separated:
            fit = self._minimised(self._basis, start)
            separated = fit.status != "converged"
        if separated:
            fit = self._minimised(self._basis, start, self.n_extras)
        self.joined.append(group)
        self.ends.append(len(self._basis))
        self.coefs.append(fit.coef)
        self.separated.append(separated)
        self._deviances.append(self.response.deviance(fit.eta))
        self._last = fit

    def widen(self, rows: LossRows) -> None:
        """Continue with more groups, appended to the present ones; no model contains them yet."""
        self.rows, self.n_groups = rows, rows.n_groups

    def truncate(self, n_awake: int) -> None:
        """Go back to the first `n_awake` groups."""
        if n_awake == len(self.joined):
            return
        del self.ends[n_awake:], self.joined[n_awake:]
        del self.coefs[n_awake + 1 :], self.separated[n_awake + 1 :], self._deviances[n_awake + 1 :]
        self._A = self._A[:, : len(self.coefs[-1])]
        self._basis = [j for j in self._basis if j < self._A.shape[1]]
        self._R = self._R[: len(self._basis), : len(self._basis)]
        self._last = Fit(self.coefs[-1], self.predictor(n_awake), "converged", 0)

    def unexplained(self) -> FloatArray:
        """The mean deviance of the model on the first m groups, for every m; shape (n_awake + 1,)."""
        return np.array(self._deviances) / self.response.total_weight

    def models(self, first: int, intercept: bool) -> tuple[FloatArray, FloatArray]:
        """Models on the first m groups, for every m >= first, without extra columns other than the intercept.

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
        """The model on the same groups without the common factors."""
        kept = np.array([j for j in self._basis if j < len(coef) and (j < i or j >= self.n_extras)], dtype=np.intp)
        fit = None if separated else self._minimised(kept, coef)
        if fit is None or fit.status != "converged":
            fit = self._minimised(kept, coef, i)
        return np.vstack([fit.coef[:i], fit.coef[self.n_extras :]])

    @property
    def deficient(self) -> bool:
        """Whether columns of the model are combinations of others."""
        return len(self._basis) < self._A.shape[1]

    def _minimised(self, basis: Sequence[int] | NDArray[np.intp], start: FloatArray, free: int | None = None) -> Fit:
        """The minimiser on some columns, zero elsewhere; given `free`, columns from there on get a small ridge."""
        every = len(basis) == len(start)
        A = self._A[:, : len(start)] if every else self._A[:, basis]
        penalty = None
        if free is not None:
            penalty = np.diag(np.where(np.asarray(basis) < free, 0.0, SEPARATED_RIDGE * self.curvature))
        fit = minimise(self.response, A, penalty, start if every else start[basis], self.rows.tolerance(self.split))
        if every:
            return fit
        coef = np.zeros_like(start)
        coef[basis] = fit.coef
        return Fit(coef, fit.eta, fit.status, fit.n_steps)

    def _add(self, columns: NDArray[np.intp]) -> None:
        """Add columns to the basis, except those that are combinations of earlier ones."""
        if columns.size == 0:
            return
        weight, k = self.response.weight[:, None], len(self._basis)
        own = self._A[:, columns] * weight
        across = np.empty((0, columns.size))
        if k:
            across = dtrtrs(self._R, self._A[:, self._basis].T @ own, trans=1)[0]
        gram = own.T @ self._A[:, columns]
        S = gram - across.T @ across
        kept = independent(S, DEPENDENT * np.diag(gram))
        if kept.size == 0:
            return
        R = np.zeros((k + kept.size, k + kept.size))
        R[:k, :k], R[:k, k:], R[k:, k:] = self._R, across[:, kept], dpotrf(S[np.ix_(kept, kept)])[0]
        self._basis += columns[kept].tolist()
        self._R = R


def group_squares(product: FloatArray, rows: LossRows) -> FloatArray:
    """The squared norm on each group, summed over outputs; shape (n_columns, n_outputs) to (n_groups,)."""
    squares = np.add.reduceat(np.append((product * product).sum(axis=1), 0.0), rows.starts[:-1])
    return np.asarray(np.where(rows.ranks > 0, squares, 0.0))
