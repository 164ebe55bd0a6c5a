"""The squared loss: gradient and refit from Gram rows, by a Cholesky factorisation that grows with the awake groups.

With an orthonormal basis Q of the awake columns, the table ``P = Q'A`` has one row per awake column and one column per
column of A. The gradient is ``A'y - P'P_y``; a group joins by its Gram rows less what the basis explains of them. Least
squares on the awake groups is ``R w = z`` with R and z columns of P.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtri, dtrtrs

from covey.limit.objective import Objective
from covey.limit.rows import PartedRows
from covey.preprocess.layout import offsets
from covey.validation import FloatArray

__all__ = ["LeastSquares", "NormalEquations"]

# A column of which the awake ones leave no more than this share of its square is a combination of them: below it the
# Gram matrix has too few digits left to tell.
DEPENDENT = 1e-9


class LeastSquares(Objective):
    """Half the mean squared error on the rows of some parts.

    Parameters
    ----------
    rows : PartedRows
    train : sequence of int
        The parts that the loss is taken over.
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
        How many columns stand before those of the groups.
    weight : float
        The total weight of the rows.
    """

    def __init__(self, rows: PartedRows, train: Sequence[int], intercept: bool) -> None:
        self.rows, self.train, self.intercept = rows, list(train), intercept
        self.n_groups = rows.n_groups
        self.basis: list[int] = []
        self.ends: list[int] = []
        self.joined: list[int] = []
        self._P: FloatArray = np.empty((32, rows.width))
        special = rows.special_rows[self.train].sum(axis=0)
        self._squares = float(special[-1, -1])
        e = rows.extras.size
        self.weight = float(special[e, rows.one])
        self._correlation = special[-1, : rows.n_columns]
        self.g = self._correlation.copy()
        if intercept:
            self._add(special[e : e + 1], np.array([rows.one]))
        if e:
            self._add(special[:e], rows.extras)
        self.n_extras = len(self.basis)

    def gradient_norms(self) -> FloatArray:
        """The norm of each group of ``Z'(y - Z w)``, per unit of weight."""
        squares = np.add.reduceat(np.append(self.g * self.g, 0.0), self.rows.starts[:-1])
        return np.sqrt(np.where(self.rows.ranks > 0, squares, 0.0)) / self.weight

    def refit(self, group: int) -> None:
        """Let a group join."""
        a, b = int(self.rows.starts[group]), int(self.rows.starts[group + 1])
        self._add(self.rows.gram_rows(group)[self.train].sum(axis=0), np.arange(a, b))
        self.ends.append(len(self.basis))
        self.joined.append(group)

    def truncate(self, n_awake: int) -> None:
        """Go back to the first so many groups."""
        del self.ends[n_awake:], self.joined[n_awake:]
        k = self.ends[-1] if self.ends else self.n_extras
        if k < len(self.basis):
            del self.basis[k:]
            P = self._P[:k]
            self.g = self._correlation - P[:, self.rows.response] @ P[:, : self.rows.n_columns]

    def _add(self, gram: FloatArray, columns: NDArray[np.intp]) -> None:
        """Put columns into the basis, given their Gram rows."""
        if columns.size == 0:
            return
        k = len(self.basis)
        P = self._P[:k]
        left = gram - P[:, columns].T @ P
        S = left[:, columns]
        kept = np.arange(columns.size)
        least = DEPENDENT * gram[kept, columns]
        L, failed = dpotrf(S, lower=1)
        if failed or (np.diag(L) ** 2 <= least).any():
            kept = _independent(S, least)
            if kept.size == 0:
                return
            L, _ = dpotrf(S[np.ix_(kept, kept)], lower=1)
        inverse, _ = dtrtri(L, lower=1)
        new = np.tril(inverse) @ left[kept]
        end = k + kept.size
        if end > self._P.shape[0]:
            self._P = _longer(self._P, end)
        self._P[k:end] = new
        self.basis += columns[kept].tolist()
        self.g -= new[:, self.rows.response] @ new[:, : self.rows.n_columns]

    # ------------------------------------------------------------------ models

    def knots(self, first: int, last: int) -> FloatArray:
        """Least squares on the first m groups, for every m from first to last; shape (last - first + 1, basis)."""
        lengths = np.array([self.n_extras, *self.ends][first : last + 1])
        W = np.zeros((lengths.size, len(self.basis)))
        k = int(lengths[-1])
        if k:
            R, z = self._P[:k].take(self.basis[:k], axis=1), self._P[:k, self.rows.response]
            # what a model does not have is zero at the end, and stays so going back
            ends = np.where(np.arange(k)[:, None] < lengths, z[:, None], 0.0)
            W[:, :k] = dtrtrs(R.T, ends, lower=1, trans=1)[0].T
        return W

    def unexplained(self) -> FloatArray:
        """The mean squared residual of least squares on the first m groups, for every m; shape (n_awake + 1,)."""
        explained = np.concatenate([[0.0], np.cumsum(self._P[: len(self.basis), self.rows.response] ** 2)])
        left = self._squares - explained[[self.n_extras, *self.ends]]
        return np.asarray(np.maximum(left, 0.0) / self.weight)

    @property
    def deficient(self) -> bool:
        """Whether columns of the groups were left out that are combinations of those before them."""
        return len(self.basis) - self.n_extras < int(self.rows.ranks[self.joined].sum())

    def normal_equations(self, dependent: bool = False) -> NormalEquations:
        """Those of least squares on the groups that joined, without the extra columns, per unit of weight.

        Columns that are combinations of others are in them where `dependent`, and the equations are singular then.
        """
        own, ends = self.rows.columns(self.joined), offsets(self.rows.ranks[self.joined])
        wanted = np.concatenate([own, [self.rows.one, self.rows.response]]).astype(np.intp)
        G = np.empty((own.size, wanted.size))
        for group, a, b in zip(self.joined, ends[:-1], ends[1:], strict=True):
            G[a:b] = self.rows.gram_rows(group)[:, :, wanted][self.train].sum(axis=0)
        if not dependent and self.deficient:
            kept = np.isin(own, self.basis[self.n_extras :])
            G, own = G[np.ix_(kept, np.append(kept, [True, True]))], own[kept]
            ends = np.array([self.n_extras, *self.ends], dtype=np.intp) - self.n_extras
        level = self.rows.total_response(self.train) / self.weight
        K, sums, c = G[:, :-2] / self.weight, G[:, -2] / self.weight, G[:, -1] / self.weight
        if self.intercept:
            K -= np.outer(sums, sums)
            c = c - sums * level
        else:
            sums, level = np.zeros_like(sums), 0.0
        return NormalEquations(K, c, own, ends, sums, level)


class NormalEquations:
    """``K w = c`` on the columns of some groups, with what the intercept follows from.

    Attributes
    ----------
    K, c : ndarray, shape (k, k) and (k,)
    columns : ndarray of int, shape (k,)
        Of the rows' table.
    starts : ndarray of int, shape (m + 1,)
        Where the columns of each group begin.
    means, level : ndarray, shape (k,), and float
        Of the columns and of the response; zero without an intercept.
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
        """Those of the first m groups."""
        k = int(self.starts[m])
        return NormalEquations(
            self.K[:k, :k], self.c[:k], self.columns[:k], self.starts[: m + 1], self.means[:k], self.level
        )

    def positions(self, groups: Sequence[int]) -> NDArray[np.intp]:
        """Where the columns of some of the groups lie."""
        sizes = np.diff(self.starts)[list(groups)]
        first = np.repeat(self.starts[list(groups)] - offsets(sizes)[:-1], sizes)
        return first + np.arange(first.size)

    def intercepts(self, W: FloatArray) -> FloatArray:
        """The intercepts that go with models as rows of W."""
        return self.level - W @ self.means


def _longer(table: FloatArray, least: int) -> FloatArray:
    out = np.empty((max(least, 2 * table.shape[0]), table.shape[1]))
    out[: table.shape[0]] = table
    return out


def _independent(S: FloatArray, least: FloatArray) -> NDArray[np.intp]:
    """The columns of a Gram matrix that are not combinations of those before them."""
    S, kept = S.copy(), []
    for j in range(S.shape[0]):
        if S[j, j] > least[j]:
            kept.append(j)
            S[j:, j:] -= np.outer(S[j:, j], S[j, j:]) / S[j, j]
    return np.array(kept, dtype=np.intp)
