"""Quadratic: the loss around a model on some groups of a path. Elimination and ridges are read off it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq
from scipy.linalg.lapack import dpotrf, dtrtrs

from covey.arrays import host, like
from covey.layout import spans
from covey.search.active import DEPENDENT, ActiveSet
from covey.validation import FloatArray

__all__ = ["Quadratic", "least_norm"]


@dataclass(frozen=True)
class Quadratic:
    """``tr(W'KW/2 - c'W)`` on the columns of some groups, with the intercept that minimises the loss for each W.

    Attributes
    ----------
    K, c : ndarray, shape (k, k) and (k, n_outputs)
    starts : ndarray of int, shape (n_groups + 1,)
        Where the columns of each group begin.
    means, level : ndarray, shape (k,) and (n_outputs,)
        The intercept is ``level - means @ W``.
    squares : ndarray, shape (k,)
        The diagonal of K before the intercept is projected out: what the digits of K are relative to.
    """

    K: FloatArray
    c: FloatArray
    starts: NDArray[np.intp]
    means: FloatArray
    level: FloatArray
    squares: FloatArray

    @classmethod
    def around(cls, active: ActiveSet, n_groups: int, coef: FloatArray, ridge: FloatArray | None = None) -> Quadratic:
        """The quadratic model of the loss around a model on the first groups of a path.

        Parameters
        ----------
        active : ActiveSet
            Without common factors.
        n_groups : int
        coef : ndarray, shape (n_columns, n_outputs)
            The minimiser on these groups.
        ridge : ndarray, shape (k, k), optional
            A penalty that the minimiser has.
        """
        i = int(active.table.posed.intercept)
        A = active.A[:, : len(coef)]
        H = active.response.gram(active.predictor_of(coef), A)
        K, w = H[i:, i:], coef[i:]
        means, level = np.zeros(len(w)), np.zeros(coef.shape[1])
        if i and H[0, 0] > 0:
            means = H[0, 1:] / H[0, 0]
            K, level = K - np.outer(H[1:, 0], means), coef[0] + means @ w
        if ridge is not None:
            K = K + ridge
        starts = np.array(active.widths[: n_groups + 1], dtype=np.intp) - i
        c = K @ w
        if active.table.posed.cone is not None:  # constraints hold the minimiser back from where the gradient is zero
            gradient = host(A.T @ like(active.response.score(active.predictor_of(coef)), A))[i:]
            c = c + (gradient if ridge is None else gradient - ridge @ w)
        squares = H.diagonal()
        if active.response.loss.coupled:  # constants are projected out already
            h = active.response.curvature(active.predictor_of(coef), bounding=True)
            squares = h @ host(A) ** 2
        return cls(K, c, starts, means, level, squares[i:])

    def positions(self, groups: Sequence[int]) -> NDArray[np.intp]:
        """The positions of the columns of some groups."""
        return spans(self.starts, np.asarray(groups, dtype=np.intp))

    def levels(self, W: FloatArray) -> FloatArray:
        """The intercepts of models of shape (n_models, n_outputs, k)."""
        return np.asarray(self.level - W @ self.means)

    def ridges(
        self, M: FloatArray, order: NDArray[np.intp], lengths: NDArray[np.intp], penalties: Sequence[float]
    ) -> FloatArray:
        """Minimisers with ``penalty tr(W'MW/2)`` added, on nested sets of columns; zero elsewhere.

        One factorisation per penalty serves all sets.

        Parameters
        ----------
        M : ndarray, shape (k, k)
        order : ndarray of int
            Columns, ordered so that every set is a prefix.
        lengths : ndarray of int
            Sizes of the sets.
        penalties : sequence of float

        Returns
        -------
        ndarray, shape (n_sets * n_penalties, n_outputs, k)
        """
        longest, m = int(lengths.max(initial=0)), self.c.shape[1]
        order = order[:longest]
        at = order[:, None], order
        K, P, c, squares = self.K[at], M[at], self.c[order], self.squares[order]
        left_out = np.arange(longest)[:, None] >= lengths
        W = np.zeros((lengths.size, len(penalties), m, len(self.c)))
        for i, penalty in enumerate(penalties if longest else ()):  # LAPACK complains of systems without a column
            S, whole = K + penalty * P, squares + penalty * P.diagonal()
            R, failed = dpotrf(S.T, lower=0, clean=0)
            # columns without a penalty, of groups that are always in, may be constant or combinations of others
            if failed or (R.diagonal() ** 2 <= DEPENDENT * whole).any():
                for row, k in enumerate(lengths):
                    W[row, i][:, order[:k]] = least_norm(S[:k, :k], c[:k], DEPENDENT, whole[:k])[0].T
                continue
            z = np.repeat(dtrtrs(R, c, trans=1)[0][:, :, None], lengths.size, axis=2)
            # entries beyond a set's columns start at zero, and back substitution keeps them there
            z.transpose(0, 2, 1)[left_out] = 0.0
            solution = dtrtrs(R, z.reshape(longest, m * lengths.size))[0].reshape(longest, m, lengths.size)
            W[:, i][:, :, order] = solution.transpose(2, 1, 0)
        return W.reshape(lengths.size * len(penalties), m, len(self.c))

    def least_norm(self, sets: Sequence[Sequence[int]]) -> tuple[FloatArray, list[int]]:
        """Minimisers of least norm on sets of groups with linearly dependent columns, and the rank of each set."""
        W, ranks = np.zeros((len(sets), self.c.shape[1], len(self.c))), []
        for w, kept in zip(W, sets, strict=True):
            at = self.positions(kept)
            solution, rank = least_norm(self.K[np.ix_(at, at)], self.c[at], DEPENDENT, self.squares[at])
            w[:, at] = solution.T
            ranks.append(rank)
        return W, ranks


def least_norm(K: FloatArray, c: FloatArray, tolerance: float, squares: FloatArray) -> tuple[FloatArray, int]:
    """The solution of least norm of ``K w = c``, and the rank of K by a relative tolerance.

    Columns whose entries on the diagonal are round-off error of `squares` have coefficient zero.
    """
    varies = K.diagonal() > tolerance * squares
    if not varies.all():
        K, c = np.where(varies[:, None] & varies, K, 0.0), np.where(varies[:, None], c, 0.0)
    # a complete orthogonal factorisation, which takes half the time of singular values
    solution, _, rank, _ = lstsq(K, c, cond=tolerance, lapack_driver="gelsy", check_finite=False)
    return solution, int(rank)
