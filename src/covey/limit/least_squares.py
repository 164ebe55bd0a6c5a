"""Squared loss: gradients and refits from Gram rows, by a Cholesky factorisation that grows with the awake groups.

Let Q be an orthonormal basis of the awake columns and ``P = Q'A``, with a row per awake column and a column per column
of A. The gradient is ``A'y - P'P_y``. Adding a group appends its Gram rows, less the part that the basis explains,
orthonormalised. The least-squares solution on the awake groups solves ``R w = z``, where R and z are columns of P.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtri, dtrtrs

from covey.layout import offsets
from covey.limit.events import Objective
from covey.limit.rows import PartedRows
from covey.validation import FloatArray

__all__ = ["DEPENDENT", "LeastSquares", "NormalEquations", "independent"]

# A column counts as a combination of the awake ones if they leave at most this share of its square unexplained: the
# Gram matrix has too few digits to distinguish less.
DEPENDENT = 1e-9

# Spare rows of a new table, and the factor by which a full one grows.
SPARE, GROWN = 24, 1.5


class LeastSquares(Objective):
    """Half the mean squared error on the rows of some parts.

    Parameters
    ----------
    rows : PartedRows
    train : sequence of int
        The parts that the model is fitted on.
    intercept : bool

    Attributes
    ----------
    basis : list of int
        The columns in the model that are linearly independent of those before them: ones, extra columns, groups.
    ends : list of int
        The length of the basis after each group that joined.
    joined : list of int
        The groups in the model, in the order in which they joined.
    n_extras : int
        How many columns come before the groups' columns.
    weight : float
        The total weight of the rows.
    """

    def __init__(self, rows: PartedRows, train: Sequence[int], intercept: bool) -> None:
        self.rows, self.train, self.intercept = rows, list(train), intercept
        self.n_groups = rows.n_groups
        self.basis: list[int] = []
        self.ends: list[int] = []
        self.joined: list[int] = []
        self._P: FloatArray = np.empty((SPARE, rows.width))
        special = rows.special_rows[self.train].sum(axis=0)
        self._squares = float(special[-1, -1])
        e = rows.extras.size
        self.weight = float(special[e, rows.one])
        self._correlation = special[-1, : rows.n_columns]
        self.g = self._correlation.copy()
        if intercept:
            self._add(special[e : e + 1], np.array([rows.one]), slice(rows.one, rows.one + 1))
        if e:
            self._add(special[:e], rows.extras, slice(rows.n_columns, rows.one))
        self.n_extras = len(self.basis)

    def gradient_norms(self) -> FloatArray:
        """The norm of ``Z'(y - Z w)`` on each group, per unit of weight."""
        rows = self.rows
        if rows.equal_rank is not None:
            own = self.g.reshape(-1, rows.equal_rank)
            squares = np.einsum("ij,ij->i", own, own)
        else:
            squares = np.add.reduceat(np.append(self.g * self.g, 0.0), rows.starts[:-1])
            squares[rows.ranks == 0] = 0.0
        return np.asarray(np.sqrt(squares, out=squares) / self.weight)

    def refit(self, group: int) -> None:
        """Add a group."""
        a, b = int(self.rows.starts[group]), int(self.rows.starts[group + 1])
        if b > a:
            self._add(self._over_train(self.rows.gram_rows(group)), np.arange(a, b), slice(a, b))
        self.ends.append(len(self.basis))
        self.joined.append(group)

    def refit_all(self, groups: Sequence[int]) -> None:
        """Add groups, all at once if their columns are linearly independent."""
        columns = self.rows.columns(groups)
        if len(groups) > 1 and columns.size:
            # one product for all of them; the cache of Gram rows would be too small for many
            gram = np.asarray(sum(self.rows.gram(part, columns, slice(None)) for part in self.train))
            if self._add(gram, columns, columns, whole=True):
                self.ends += (self.n_extras + np.cumsum(self.rows.ranks[list(groups)])).tolist()
                self.joined += groups
                return
        super().refit_all(groups)

    def _over_train(self, by_part: FloatArray) -> FloatArray:
        """The sum over the training parts."""
        if len(self.train) == 1:
            return by_part[self.train[0]]
        total = by_part[self.train[0]] + by_part[self.train[1]]
        for part in self.train[2:]:
            total += by_part[part]
        return total

    def widen(self, rows: PartedRows) -> None:
        """Continue with more groups, appended to the present ones."""
        old, self.rows, self.n_groups = self.rows, rows, rows.n_groups
        n, more, k = old.n_columns, rows.n_columns - old.n_columns, len(self.basis)
        self._correlation = rows.special_rows[self.train].sum(axis=0)[-1, : rows.n_columns]
        table = np.empty((k + SPARE, rows.width))
        table[:k, :n], table[:k, n + more :] = self._P[:k, :n], self._P[:k, n:]
        R = self._P[:k].take(self.basis, axis=1)
        self.basis = [j if j < n else j + more for j in self.basis]
        if k:
            own, new = np.array(self.basis), slice(n, n + more)
            table[:k, new] = dtrtrs(R.T, sum(rows.gram(part, own, new) for part in self.train), lower=1)[0]
        self._P = table
        rest = self._correlation[n:] - table[:k, rows.response] @ table[:k, n : n + more]
        self.g = np.concatenate([self.g, rest])

    def truncate(self, n_awake: int) -> None:
        """Go back to the first `n_awake` groups."""
        del self.ends[n_awake:], self.joined[n_awake:]
        k = self.ends[-1] if self.ends else self.n_extras
        if k < len(self.basis):
            del self.basis[k:]
            P = self._P[:k]
            self.g = self._correlation - P[:, self.rows.response] @ P[:, : self.rows.n_columns]

    def _add(
        self, gram: FloatArray, columns: NDArray[np.intp], at: slice | NDArray[np.intp], whole: bool = False
    ) -> bool:
        """Add columns, found at `at` in the table, to the basis, given their Gram rows; return whether any was added.

        Columns that are combinations of others are left out; if `whole`, nothing is added when there are any.
        """
        k = len(self.basis)
        P = self._P[:k]
        left = P[:, at].T @ P
        np.subtract(gram, left, out=left)
        S = left[:, at]
        least = DEPENDENT * gram[:, at].diagonal()
        L, failed = dpotrf(S, lower=1)
        if failed or (L.diagonal() ** 2 <= least).any():
            kept = np.empty(0, dtype=np.intp) if whole else independent(S, least)
            if kept.size == 0:
                return False
            L, _ = dpotrf(S[np.ix_(kept, kept)], lower=1)
            columns, left = columns[kept], left[kept]
        inverse, _ = dtrtri(L, lower=1)
        end = k + columns.size
        if end > self._P.shape[0]:
            self._P = _longer(self._P, end)
        new = self._P[k:end]
        np.matmul(inverse, left, out=new)
        self.basis += columns.tolist()
        self.g -= new[:, self.rows.response] @ new[:, : self.rows.n_columns]
        return True

    # ------------------------------------------------------------------ models

    def knots(self, first: int, last: int) -> FloatArray:
        """Least squares on the first m groups, for every m from first to last; shape (last - first + 1, basis)."""
        lengths = np.array([self.n_extras, *self.ends][first : last + 1])
        W = np.zeros((lengths.size, len(self.basis)))
        k = int(lengths[-1])
        if k:
            R, z = self._P[:k].take(self.basis[:k], axis=1), self._P[:k, self.rows.response]
            # entries beyond a model's columns start at zero, and back substitution keeps them there
            ends = np.where(np.arange(k)[:, None] < lengths, z[:, None], 0.0)
            W[:, :k] = dtrtrs(R.T, ends, lower=1, trans=1)[0].T
        return W

    def unexplained(self) -> FloatArray:
        """The mean squared residual on the first m groups, for every m; shape (n_awake + 1,)."""
        explained = np.concatenate([[0.0], np.cumsum(self._P[: len(self.basis), self.rows.response] ** 2)])
        left = self._squares - explained[[self.n_extras, *self.ends]]
        return np.asarray(np.maximum(left, 0.0) / self.weight)

    def models(self, first: int, intercept: bool) -> tuple[FloatArray, FloatArray]:
        """Least squares on the first m groups, for every m >= first, without extra columns.

        Returns
        -------
        W, levels : ndarray, shape (n_models, 1, k) and (n_models, 1)
            Columns of the groups in the order in which they joined.
        """
        equations = self.normal_equations()
        own = self.rows.columns(self.joined)
        W = np.zeros((len(self.joined) + 1 - first, own.size))
        if equations.c.size:
            inverse = np.linalg.inv(np.linalg.cholesky(equations.K))
            terms = inverse * (inverse @ equations.c)[:, None]
            total = np.vstack([np.zeros((1, equations.c.size)), np.cumsum(terms, axis=0)])[equations.starts[first:]]
            place = {int(j): i for i, j in enumerate(own)}
            W[:, [place[int(j)] for j in equations.columns]] = total
            levels = equations.intercepts(total)
        else:
            levels = np.full(len(W), equations.level)
        return W[:, None, :], levels[:, None]

    @property
    def deficient(self) -> bool:
        """Whether any column was left out because it is a combination of earlier ones."""
        if self.rows.equal_rank is not None:
            return len(self.basis) - self.n_extras < len(self.joined) * self.rows.equal_rank
        return len(self.basis) - self.n_extras < int(self.rows.ranks[self.joined].sum())

    def normal_equations(self, dependent: bool = False) -> NormalEquations:
        """The normal equations on the groups that joined, without the extra columns, per unit of weight.

        If `dependent`, they include columns that are combinations of others and may be singular.
        """
        rows, k = self.rows, len(self.basis)
        own, ends = rows.columns(self.joined), offsets(rows.ranks[self.joined])
        if not dependent and self.deficient:
            own = own[np.isin(own, self.basis[self.n_extras :])]
            ends = np.array([self.n_extras, *self.ends], dtype=np.intp) - self.n_extras
        # the basis is orthonormal, and with an intercept its first column is constant
        first = int(self.intercept)
        A, z = self._P[:k].take(own, axis=1), self._P[first:k, rows.response]
        K, c = A[first:].T @ A[first:] / self.weight, z @ A[first:] / self.weight
        sums, level = np.zeros(own.size), 0.0
        if self.intercept:
            sums, level = A[0] / np.sqrt(self.weight), rows.total_response(self.train) / self.weight
        return NormalEquations(K, c, own, ends, sums, level)


class NormalEquations:
    """``K w = c`` on the columns of some groups, with the means that determine the intercept.

    Attributes
    ----------
    K, c : ndarray, shape (k, k) and (k,)
    columns : ndarray of int, shape (k,)
        Columns of the rows' table.
    starts : ndarray of int, shape (m + 1,)
        Where the columns of each group begin.
    means, level : ndarray, shape (k,), and float
        Means of the columns and of the response; zero without an intercept.
    """

    def __init__(
        self,
        K: FloatArray,
        c: FloatArray,
        columns: NDArray[np.intp],
        starts: NDArray[np.intp],
        means: FloatArray,
        level: float,
    ) -> None:
        self.K, self.c, self.columns, self.starts, self.means, self.level = K, c, columns, starts, means, level

    def first(self, m: int) -> NormalEquations:
        """The equations on the first m groups."""
        k = int(self.starts[m])
        return NormalEquations(
            self.K[:k, :k], self.c[:k], self.columns[:k], self.starts[: m + 1], self.means[:k], self.level
        )

    def positions(self, groups: Sequence[int]) -> NDArray[np.intp]:
        """The positions of the columns of some groups."""
        sizes = np.diff(self.starts)[list(groups)]
        first = np.repeat(self.starts[list(groups)] - offsets(sizes)[:-1], sizes)
        return first + np.arange(first.size)

    def intercepts(self, W: FloatArray) -> FloatArray:
        """The intercepts of models given as rows of W."""
        return self.level - W @ self.means


def _longer(table: FloatArray, least: int) -> FloatArray:
    out = np.empty((max(least, int(GROWN * table.shape[0])), table.shape[1]))
    out[: table.shape[0]] = table
    return out


def independent(S: FloatArray, least: FloatArray) -> NDArray[np.intp]:
    """The columns of a Gram matrix that are not combinations of those before them."""
    S, kept = S.copy(), []
    for j in range(S.shape[0]):
        if S[j, j] > least[j]:
            kept.append(j)
            S[j:, j:] -= np.outer(S[j:, j], S[j, j:]) / S[j, j]
    return np.array(kept, dtype=np.intp)
