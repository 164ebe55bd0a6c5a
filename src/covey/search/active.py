"""ActiveSet: the groups that are awake on one split, and the minimiser of the loss on them.

The Gram matrix of the awake columns has a Cholesky factor that grows with them. It tells which columns are combinations
of others, and under a quadratic loss it is the second derivative that a refit needs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtrs

from covey.arrays import beside, host, index, like, stack, zeros
from covey.search.curvature import Curvature
from covey.search.newton import minimise
from covey.search.observations import Observations
from covey.search.table import Table
from covey.validation import ArrayOrTensor, FloatArray

__all__ = ["DEPENDENT", "ActiveSet"]

# A column counts as a combination of the awake ones if they leave at most this share of its square unexplained: the
# Gram matrix has too few digits to distinguish less.
DEPENDENT = 1e-9


class ActiveSet:
    """A loss on the training rows of a split, at its minimiser on the awake groups.

    Parameters
    ----------
    table : Table
    response : Observations
        Of all rows of the table; weights are zero outside the training rows.
    rough : bool
        Whether models are only scored and need few digits.
    factors : bool
        Whether common factors are in the model.

    Attributes
    ----------
    groups : list of int
        The awake groups, as positions among the near ones, in the order in which they woke up.
    response : Observations
        Of the training rows alone.
    weight : ndarray
        Of all rows of the table.
    A : array, shape (n_rows, n_columns)
        The training rows of the intercept's column, common factors, and the columns of the awake groups.
    widths, ends : list of int
        The number of columns, and of linearly independent ones, before any group woke up and after each.
    models : list of ndarray, shape (n_columns, n_outputs)
        The minimisers before any group woke up and after each. Columns that are combinations of earlier ones have
        coefficient zero.
    separated : list of bool
        Whether the minimum lies at infinity, for each of these models; those models have a small ridge.
    eta : array, shape (n_rows, n_outputs)
        The linear predictor of the last model on the training rows.
    """

    def __init__(self, table: Table, response: Observations, *, rough: bool, factors: bool = True) -> None:
        self.table, self.rough, self._factors = table, rough, factors
        self.groups: list[int] = []
        self._begin(response)
        # the independent columns, and the Cholesky factor of their Gram matrix
        self.basis: list[int] = []
        self._R: FloatArray = np.empty((0, 0))
        self._curvature = Curvature()
        self._add(np.arange(self.A.shape[1]))
        self.widths, self.ends = [self.A.shape[1]], [len(self.basis)]
        self.models: list[FloatArray] = []
        self.separated: list[bool] = []
        self.eta: ArrayOrTensor = self.predictor_of(self._null())
        self.refit()

    def _begin(self, response: Observations) -> None:
        """Take the training rows of the columns from the table."""
        table = self.table
        one = table.response.one[:, None][:, : int(table.posed.intercept)]
        self._given, self.response, self.weight = response, response.training, response.weight
        # the columns before those of groups, on all rows of the table
        self._first = np.hstack([one, table.extras]) if self._factors else one
        rows = np.flatnonzero(self.weight)
        self._rows = None if rows.size == self.weight.size else rows
        self._rows_of_Z = None if self._rows is None else index(rows, table.Z)
        self.A: ArrayOrTensor = self._training(like(self._first, table.Z))
        self._room: FloatArray = np.empty((len(self.A), 0))
        for group in self.groups:
            self._append(table.block(group))

    def _training(self, columns: ArrayOrTensor) -> ArrayOrTensor:
        """The training rows of columns of the table."""
        return columns if self._rows_of_Z is None else columns[self._rows_of_Z]

    def _on_table(self, values: ArrayOrTensor) -> ArrayOrTensor:
        """Values of the training rows on all rows of the table, with zeros elsewhere."""
        if self._rows is None:
            return values
        out = zeros((self.weight.size, *values.shape[1:]), values)
        out[self._rows if isinstance(values, np.ndarray) else self._rows_of_Z] = values
        return out

    @property
    def n_first(self) -> int:
        """The number of columns before those of groups."""
        return self.widths[0]

    @property
    def deficient(self) -> bool:
        """Whether columns of the model are combinations of others."""
        return len(self.basis) < self.A.shape[1]

    def score(self) -> ArrayOrTensor:
        """Minus the gradient in the predictor of all rows of the table, per unit of weight; (n_rows, n_outputs)."""
        near = self.response.near(self.A)
        return self._on_table(near.score(like(self.eta, near.weight)) / self.response.total_weight)

    def scores(self, first: int, last: int) -> ArrayOrTensor:
        """The same of the models on the first m groups, for every m from first to last.

        Returns
        -------
        array, shape (n_rows, n_models, n_outputs)
        """
        near, W = self.response.near(self.A), self.coefficients(first, last)
        n, m, k = W.shape
        eta = near.predictor(self.A[:, :k], np.ascontiguousarray(W.transpose(2, 0, 1).reshape(k, n * m)))
        found = [near.score(eta[:, a : a + m]) for a in range(0, n * m, m)]
        return self._on_table(stack(found, 1) / self.response.total_weight)

    def predictor_of(self, coef: FloatArray) -> FloatArray:
        """The linear predictor of a model on the first columns, for the training rows; (n_rows, n_outputs)."""
        return host(self.A[:, : len(coef)] @ like(coef, self.A))

    def refit(self, *groups: int) -> None:
        """Wake groups and move to the minimiser on all awake groups; models between are not computed."""
        if groups:
            start, separated = self._take_in(groups), self.separated[-1]
        elif not self.models:
            start, separated = self._null(), False
        else:
            return
        response, posed = self.response, self.table.posed
        # under constraints all columns: one that repeats another may go the other way
        every = posed.cone is not None or not self.deficient
        A, begin = (self.A, start) if every else (self.A[:, self.basis], start[self.basis])
        rows = None
        if posed.cone is not None:
            rows = posed.cone.rows(self.table.groups[self.groups].tolist(), self.n_first)
        factor = self._R if response.loss.quadratic and len(self._R) == A.shape[1] else None
        curvature = self._curvature if every and factor is None else None
        if curvature is not None:
            curvature.extend(A)
        if not separated:
            fit = minimise(
                response, A, begin, rows=rows, eta=self.eta, factor=factor, curvature=curvature, rough=self.rough
            )
            separated = fit.status != "converged" and bool(groups)
        if separated:
            # on all columns: a ridge has one minimum also where some are combinations of others
            every, unit = True, posed.settings.separated_ridge * response.null_curvature(posed.intercept)
            ridge = np.where(np.arange(self.A.shape[1]) < self.n_first, 0.0, unit)
            fit = minimise(response, self.A, start, ridge, rows=rows, curvature=curvature, rough=self.rough)
        coef = fit.coef
        if not every:  # columns that are combinations of earlier ones have coefficient zero
            coef = np.zeros_like(start)
            coef[self.basis] = fit.coef
        self.models.append(coef)
        self.separated.append(separated)
        self.eta = fit.eta

    def _null(self) -> FloatArray:
        """The model without groups that a fit starts from."""
        start = np.zeros((self.A.shape[1], self.response.n_outputs))
        if self.table.posed.intercept:
            start[0] = self.response.null
        return start

    def _take_in(self, groups: Sequence[int]) -> FloatArray:
        """Append the columns of groups; return the last model on all columns."""
        first, last = self.A.shape[1], self.models[-1]
        for group in groups:
            self._append(self.table.block(group))
            self.groups.append(group)
            self.widths.append(self.A.shape[1])
        self._add(np.arange(first, self.A.shape[1]))
        new = self.widths[-len(groups) :]
        self.ends += np.searchsorted(self.basis, new).tolist()
        self.models += [self._padded(last, width) for width in new[:-1]]
        self.separated += [self.separated[-1]] * (len(groups) - 1)
        return self._padded(last, new[-1])

    def truncate(self, n_groups: int) -> None:
        """Go back to the first groups."""
        if n_groups == len(self.groups):
            return
        k, width = self.ends[n_groups], self.widths[n_groups]
        del self.groups[n_groups:]
        for history in (self.widths, self.ends, self.models, self.separated):
            del history[n_groups + 1 :]
        self.A, self.basis, self._R = self.A[:, :width], self.basis[:k], self._R[:k, :k]
        self._curvature.truncate(width)
        self.eta = self.predictor_of(self.models[-1])

    def replace_rows(self, response: Observations) -> None:
        """Continue on rows with the same second moments."""
        self._begin(response)
        self.eta = self.predictor_of(self.models[-1])

    def mean_deviance(self, n_groups: int) -> float:
        """The mean deviance of the model on the first groups."""
        return self.response.deviance(self.predictor_of(self.models[n_groups])) / self.response.total_weight

    def predictors(self, which: NDArray[np.intp], first: int, last: int) -> FloatArray:
        """Predictors of the models on the first m groups, for every m from first to last, on some rows of the table.

        Returns
        -------
        ndarray, shape (n_rows, n_outputs, last - first + 1)
        """
        W, f = self.coefficients(first, last), self.n_first
        out = self.table.predictors(which, self.table.columns(self.groups[:last]), W[:, :, f:])
        before = self._first[which] @ W[:, :, :f].transpose(2, 1, 0).reshape(f, out[0].size)
        return out + before.reshape(out.shape)

    def coefficients(self, first: int, last: int) -> FloatArray:
        """The models on the first m groups, for every m from first to last; (n_models, n_outputs, n_columns).

        Where columns are combinations of others on the training rows, those with the least norm: which columns came
        first would say what other rows, such as those of a level that no training row has, are predicted.
        """
        out = np.zeros((last - first + 1, self.response.n_outputs, self.widths[last]))
        free = self.n_first
        for row, m in zip(out, range(first, last + 1), strict=True):
            coef = self.models[m]
            if self.ends[m] < self.widths[m] and self.table.posed.cone is None:
                null = self._null_space(m)
                coef = coef - null @ np.linalg.lstsq(null[free:], coef[free:], rcond=None)[0]
            row[:, : len(coef)] = coef.T
        return out

    def _null_space(self, n_groups: int) -> FloatArray:
        """Directions in the columns of the first groups that change no prediction of the training rows."""
        k, basis = self.widths[n_groups], self.basis[: self.ends[n_groups]]
        dependent = np.setdiff1d(np.arange(k), basis)
        null = np.zeros((k, dependent.size))
        null[dependent, np.arange(dependent.size)] = 1.0
        if basis:
            R = self._R[: len(basis), : len(basis)]
            across = self._products(dependent, self.A[:, basis])[0]
            null[basis] = -dtrtrs(R, dtrtrs(R, across, trans=1)[0])[0]
        return null

    def without_factors(self) -> ActiveSet:
        """The same groups without common factors in the models."""
        if self.n_first == int(self.table.posed.intercept):
            return self
        replay = ActiveSet(self.table, self._given, rough=self.rough, factors=False)
        for group in self.groups:
            replay.refit(group)
        return replay

    def _append(self, block: ArrayOrTensor) -> None:
        """Append columns of the table to A, which grows in place: many groups may wake one after another."""
        block = self._training(block)
        k, width = self.A.shape[1], self.A.shape[1] + block.shape[1]
        if not isinstance(self.A, np.ndarray):
            self.A = beside(self.A, block)
            return
        if width > self._room.shape[1]:
            self._room = np.empty((len(self.A), max(width, 2 * k)), order="F")
            self._room[:, :k] = self.A
        self._room[:, k:width] = block
        self.A = self._room[:, :width]

    def _padded(self, coef: FloatArray, width: int) -> FloatArray:
        """A model with zeros for further columns."""
        out = np.zeros((width, coef.shape[1]))
        out[: len(coef)] = coef
        return out

    def _add(self, columns: NDArray[np.intp]) -> None:
        """Add columns to the basis, except those that are combinations of earlier ones."""
        if columns.size == 0:
            return
        k, first = len(self.basis), int(columns[0])
        products, squares = self._products(slice(first, None), self.A)
        gram, across = products[first:], np.empty((0, columns.size))
        least = DEPENDENT * (gram.diagonal() if squares is None else squares)
        if k:
            across = dtrtrs(self._R, products[:first] if k == first else products[self.basis], trans=1)[0]
        S = gram - across.T @ across
        root, failed = dpotrf(S)
        if failed or (root.diagonal() ** 2 <= least).any():
            kept = independent(S, least)
            if kept.size == 0:
                return
            root, across, columns = dpotrf(S[np.ix_(kept, kept)])[0], across[:, kept], columns[kept]
        R = np.zeros((k + columns.size, k + columns.size), order="F")
        R[:k, :k], R[:k, k:], R[k:, k:] = self._R, across, root
        self.basis += columns.tolist()
        self._R = R

    def _products(self, columns: NDArray[np.intp] | slice, A: ArrayOrTensor) -> tuple[FloatArray, FloatArray | None]:
        """Products of some columns with others on the training rows, and the squares of a coupled loss's columns."""
        weight, some = like(self.response.near(self.A).weight, self.A)[:, None], self.A[:, columns]
        weighted, squares = some * weight, None
        if self.response.loss.coupled:  # a constant changes no partial likelihood
            squares = host((weighted * some).sum(0))
            weighted = weighted - weight * (weighted.sum(0) / weight.sum())
        return host(A.T @ weighted), squares


def independent(S: FloatArray, least: FloatArray) -> NDArray[np.intp]:
    """The columns of a Gram matrix that are not combinations of those before them."""
    S, kept = S.copy(), []
    for j in range(S.shape[0]):
        if S[j, j] > least[j]:
            kept.append(j)
            S[j:, j:] -= np.outer(S[j:, j], S[j, j:]) / S[j, j]
    return np.array(kept, dtype=np.intp)
