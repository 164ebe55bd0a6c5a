"""Ridge regressions on sets of groups, with a penalty in units of the columns.

In working coordinates all directions of a group count the same, also those in which its columns hardly vary. A ridge
on the columns themselves, each of unit variance, shrinks such directions first, whatever the units of the columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv, dpotrf, dtrtrs

from covey.limit.least_squares import NormalEquations
from covey.preprocess import WorkingProblem, spans
from covey.validation import FloatArray

__all__ = ["Penalties", "ridge_models"]

# Working columns whose inner products are this far from those of orthonormal ones are not meant to be orthonormal.
ORTHONORMAL = 1e-4


class Penalties:
    """``M_l`` with ``w_l' M_l w_l`` the squared norm of a group's coefficients on its columns of unit variance.

    Where columns depend on each other, of all coefficients that make the same prediction those of least norm count.
    """

    def __init__(self, problem: WorkingProblem) -> None:
        self.problem = problem
        self._known: dict[int, FloatArray] = {}
        self._gains: dict[int, FloatArray] = {}

    def learn(self, groups: Sequence[int] | NDArray[np.intp]) -> None:
        """Make those of some groups, all of one shape at once."""
        new = np.array([l for l in np.unique(groups).tolist() if l not in self._known], dtype=np.intp)
        sizes, ranks = self.problem.layout.sizes[new], self.problem.ranks[new]
        for size, rank in {(int(s), int(r)) for s, r in zip(sizes, ranks, strict=True)}:
            alike = new[(sizes == size) & (ranks == rank)]
            at = self.problem.factor_starts[alike][:, None] + np.arange(size * rank)
            T = self.problem.factors[at].reshape(alike.size, size, rank)
            R = np.linalg.inv(T) if size == rank else self._coordinates(alike, T)
            variance = np.einsum("lkj,lkj->lj", R, R)
            M = T.transpose(0, 2, 1) @ (variance[:, :, None] * T)
            if size > rank > 0:
                M = np.linalg.inv((R / np.where(variance > 0, variance, 1.0)[:, None, :]) @ R.transpose(0, 2, 1))
            self._known.update(zip(alike.tolist(), M, strict=True))
            gains = np.divide(1.0, np.sqrt(variance), out=np.zeros_like(variance), where=variance > 0)
            self._gains.update(zip(alike.tolist(), gains, strict=True))

    def _coordinates(self, groups: NDArray[np.intp], T: FloatArray) -> FloatArray:
        """R with ``X_l = Z_l R_l`` for groups of one shape with columns that depend on each other."""
        problem = self.problem
        own = spans(problem.layout.starts, groups)
        columns, mean = problem.layout.members[own], problem.mean[own]
        gram = problem.design.gram_parts(columns, mean, problem.response, [problem.q])[0][1:-1, 1:-1]
        at = np.arange(own.size).reshape(T.shape[:2])
        R = T.transpose(0, 2, 1) @ gram[at[:, :, None], at[:, None, :]]
        # where columns are not made orthonormal they are scaled one by one, and those left out do not vary
        scaled = np.abs(R @ T - np.eye(T.shape[2])).max(axis=(1, 2), initial=0.0) > ORTHONORMAL
        R[scaled] = np.linalg.pinv(T[scaled])
        return np.asarray(R)

    def gains(self, groups: NDArray[np.intp]) -> FloatArray:
        """What the columns of some groups are multiplied by to have unit variance; zero for those that do not vary."""
        self.learn(groups)
        return np.concatenate([self._gains[int(l)] for l in groups])

    def of(self, groups: Sequence[int] | NDArray[np.intp]) -> list[FloatArray]:
        """Those of some groups, each of shape (rank, rank)."""
        self.learn(groups)
        return [self._known[int(l)] for l in groups]

    def block(self, groups: Sequence[int], own: Sequence[NDArray[np.intp]]) -> FloatArray:
        """Those of several groups along a diagonal, of each the working columns `own`."""
        size = sum(at.size for at in own)
        out = np.zeros((size, size))
        a = 0
        for M, at in zip(self.of(groups), own, strict=True):
            b = a + at.size
            out[a:b, a:b] = M if at.size == len(M) else M[np.ix_(at, at)]
            a = b
        return out


def ridge_models(
    equations: NormalEquations, M: FloatArray, sets: Sequence[NDArray[np.intp]], penalties: Sequence[float]
) -> FloatArray:
    """``(K + penalty M) w = c`` on sets of columns, one row per set and penalty; zero elsewhere.

    Of sets that are nested, as those of an elimination are, one factorisation serves all: each is the beginning of the
    next, in the order in which columns come in.
    """
    W = np.zeros((len(sets) * len(penalties), equations.c.size))
    order = _nested_order(sets)
    for i, penalty in enumerate(penalties):
        if order is not None and _fill_nested(W[i :: len(penalties)], equations, M, sets, order, penalty):
            continue
        for row, columns in enumerate(sets):
            at = np.ix_(columns, columns)
            W[row * len(penalties) + i, columns] = dposv(equations.K[at] + penalty * M[at], equations.c[columns])[1]
    return W


def _nested_order(sets: Sequence[NDArray[np.intp]]) -> NDArray[np.intp] | None:
    """Columns in an order of which every set is a beginning; None where there is none."""
    if not sets:
        return None
    counts = np.bincount(np.concatenate(sets))
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    # of nested sets the k-th largest has all columns that are in k sets or more
    sizes = np.sort([columns.size for columns in sets])[::-1]
    nested = all(np.count_nonzero(counts > i) == size for i, size in enumerate(sizes))
    return order if nested else None


def _fill_nested(
    W: FloatArray,
    equations: NormalEquations,
    M: FloatArray,
    sets: Sequence[NDArray[np.intp]],
    order: NDArray[np.intp],
    penalty: float,
) -> bool:
    """Write the models of nested sets, one per row; False where the matrix has no factorisation."""
    at = np.ix_(order, order)
    K = equations.K[at]
    K += penalty * M[at]
    R, failed = dpotrf(K.T, lower=0, clean=0, overwrite_a=1)
    if failed:
        return False
    z = dtrtrs(R, equations.c[order], trans=1)[0]
    # what a set does not have is zero at the end, and stays so going back
    lengths = np.array([columns.size for columns in sets])
    W[:, order] = dtrtrs(R, np.where(np.arange(z.size)[:, None] < lengths, z[:, None], 0.0))[0].T
    return True
