"""Ridge regressions on sets of groups, with the penalty on scaled columns.

In working coordinates all directions of a group count the same, even those in which its columns hardly vary. A ridge
on the columns themselves, each in its own scale, shrinks such directions first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv, dpotrf, dtrtrs

from covey.layout import offsets, spans
from covey.limit.least_squares import NormalEquations
from covey.preprocess import WorkingProblem
from covey.validation import FloatArray

__all__ = ["Penalties", "ridge_models"]

# Working columns whose inner products differ from the identity by more than this are not meant to be orthonormal.
ORTHONORMAL = 1e-4

# Numbers of X per tile: 8 MiB.
TILE = 2**20

# The range of some hundred normal values in standard deviations: 5.5 for 200 of them, 6.5 for 1000.
RANGE = 6.0


class Penalties:
    """``M_l`` such that ``w_l' M_l w_l`` is the squared norm of a group's coefficients on its scaled columns.

    The squared scale of a column is its standard deviation times a sixth of its range, which is its variance if its
    values are roughly normal. A column that is nearly constant except in a few rows (a rare category, the end of a
    spline, a product of two columns) has a larger scale: its coefficient rests on these rows and is shrunk more.

    If columns are linearly dependent, it is the least norm among all coefficients that give the same predictions.

    Parameters
    ----------
    problem : WorkingProblem
    equal_shares : bool
        Use the variance as the squared scale instead, and for a two-valued column the variance it would have if both
        values were equally frequent, so that the effect of a category is shrunk the same however rare it is.
    """

    def __init__(self, problem: WorkingProblem, equal_shares: bool = False) -> None:
        self.problem, self.equal_shares = problem, equal_shares
        self._known: dict[int, FloatArray] = {}
        self._gains: dict[int, FloatArray] = {}

    def learn(self, groups: Sequence[int] | NDArray[np.intp]) -> None:
        """Compute the penalties of some groups, groups of the same shape at once."""
        missing = {int(l) for l in groups} - self._known.keys()
        if not missing:
            return
        new = np.array(sorted(missing), dtype=np.intp)
        sizes, ranks = self.problem.layout.sizes[new], self.problem.ranks[new]
        ranges, starts = None if self.equal_shares else self._ranges(new), offsets(sizes)
        for size, rank in {(int(s), int(r)) for s, r in zip(sizes, ranks, strict=True)}:
            which = np.flatnonzero((sizes == size) & (ranks == rank))
            alike = new[which]
            at = self.problem.factor_starts[alike][:, None] + np.arange(size * rank)
            T = self.problem.factors[at].reshape(alike.size, size, rank)
            # in units of each column: squares of columns of extreme scale would overflow or underflow
            unit = np.abs(T).max(axis=2, initial=0.0)
            unit[unit == 0] = 1.0
            given, T = T, T / unit[:, :, None]
            R = np.linalg.inv(T) if size == rank else self._coordinates(alike, given) * unit[:, None, :]
            variance = np.einsum("lkj,lkj->lj", R, R)
            if ranges is None:
                scale = self._equal_shares(alike, variance / unit**2) * unit**2
            else:
                scale = np.sqrt(variance) * (ranges[starts[which][:, None] + np.arange(size)] * unit) / RANGE
            M = T.transpose(0, 2, 1) @ (scale[:, :, None] * T)
            if size > rank > 0:
                M = np.linalg.inv((R / np.where(scale > 0, scale, 1.0)[:, None, :]) @ R.transpose(0, 2, 1))
            self._known.update(zip(alike.tolist(), M, strict=True))
            gains = np.divide(unit, np.sqrt(scale), out=np.zeros_like(scale), where=scale > 0)
            self._gains.update(zip(alike.tolist(), gains, strict=True))

    def _ranges(self, groups: NDArray[np.intp]) -> FloatArray:
        """The ranges of all columns of some groups; if there is no intercept, zero counts as a value."""
        problem = self.problem
        own = spans(problem.layout.starts, groups)
        low, high = problem.design.extremes(problem.layout.members[own], problem.q)
        # the mean of a centred column lies in its range; columns that are not centred have mean zero here
        return np.asarray(np.maximum(high, problem.mean[own]) - np.minimum(low, problem.mean[own]))

    def _equal_shares(self, groups: NDArray[np.intp], variance: FloatArray) -> FloatArray:
        """The variances of columns; for two-valued columns, as if both values were equally frequent."""
        problem = self.problem
        columns = problem.layout.members[spans(problem.layout.starts, groups)]
        used = np.flatnonzero(problem.q > 0)
        span, two = np.empty(columns.size), np.empty(columns.size, dtype=bool)
        step = max(1, TILE // problem.design.shape[0])
        for a in range(0, columns.size, step):
            own = slice(a, a + step)
            X = problem.design.take(columns[own])
            X = X if used.size == len(X) else X[used]
            low, high = X.min(axis=0), X.max(axis=0)
            span[own], two[own] = high - low, ((low == X) | (high == X)).all(axis=0)
        equal = ((span / 2) ** 2).reshape(variance.shape)
        return np.where(two.reshape(variance.shape) & (variance > 0), equal, variance)

    def _coordinates(self, groups: NDArray[np.intp], T: FloatArray) -> FloatArray:
        """R with ``X_l = Z_l R_l`` for groups of one shape with linearly dependent columns."""
        problem = self.problem
        own = spans(problem.layout.starts, groups)
        columns, mean = problem.layout.members[own], problem.mean[own]
        gram = problem.design.gram_parts(columns, mean, problem.response, [problem.q])[0][1:-1, 1:-1]
        at = np.arange(own.size).reshape(T.shape[:2])
        R = T.transpose(0, 2, 1) @ gram[at[:, :, None], at[:, None, :]]
        # columns that are not orthonormalised are scaled one by one, and those left out are constant
        scaled = np.abs(R @ T - np.eye(T.shape[2])).max(axis=(1, 2), initial=0.0) > ORTHONORMAL
        R[scaled] = np.linalg.pinv(T[scaled])
        return np.asarray(R)

    def gains(self, groups: NDArray[np.intp]) -> FloatArray:
        """Factors that give the columns of some groups scale one; zero for constant columns."""
        self.learn(groups)
        return np.concatenate([self._gains[int(l)] for l in groups])

    def of(self, groups: Sequence[int] | NDArray[np.intp]) -> list[FloatArray]:
        """The penalties of some groups, each of shape (rank, rank)."""
        self.learn(groups)
        return [self._known[int(l)] for l in groups]

    def block(self, groups: Sequence[int], own: Sequence[NDArray[np.intp]]) -> FloatArray:
        """The block-diagonal penalty of several groups, each restricted to its working columns `own`."""
        size, forms = sum(at.size for at in own), self.of(groups)
        out = np.zeros((size, size))
        if forms and {len(M) for M in forms} == {at.size for at in own} == {own[0].size}:
            each = np.arange(len(forms))
            out.reshape(each.size, own[0].size, each.size, own[0].size)[each, :, each, :] = forms
            return out
        a = 0
        for M, at in zip(forms, own, strict=True):
            b = a + at.size
            out[a:b, a:b] = M if at.size == len(M) else M[np.ix_(at, at)]
            a = b
        return out


def ridge_models(
    equations: NormalEquations,
    M: FloatArray,
    order: NDArray[np.intp],
    lengths: NDArray[np.intp],
    penalties: Sequence[float],
) -> FloatArray:
    """Solve ``(K + penalty M) w = c`` on nested sets of columns; one row per set and penalty, zero elsewhere.

    One factorisation per penalty serves all sets.

    Parameters
    ----------
    equations : NormalEquations
    M : ndarray, shape (k, k)
    order : ndarray of int
        Columns, ordered so that every set is a prefix.
    lengths : ndarray of int
        Sizes of the sets.
    penalties : sequence of float
    """
    longest = int(lengths.max(initial=0))
    order = order[:longest]
    at = order[:, None], order
    K, P, c = equations.K[at], M[at], equations.c[order]
    left_out = np.arange(longest)[:, None] >= lengths
    W = np.zeros((lengths.size, len(penalties), equations.c.size))
    for i, penalty in enumerate(penalties):
        S = K + penalty * P
        R, failed = dpotrf(S.T, lower=0, clean=0)
        if failed:
            for row, k in enumerate(lengths):
                W[row, i, order[:k]] = dposv(S[:k, :k], c[:k])[1]
            continue
        z = np.repeat(dtrtrs(R, c, trans=1)[0][:, None], lengths.size, axis=1)
        # entries beyond a set's columns start at zero, and back substitution keeps them there
        z[left_out] = 0.0
        W[:, i, order] = dtrtrs(R, z)[0].T
    return W.reshape(-1, equations.c.size)
