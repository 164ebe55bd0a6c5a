"""Orthonormalise all groups: Cholesky factorisations of their correlation matrices, groups of one size together.

A matrix whose inverse is moderate is of full rank in whatever order its columns are taken, and is factorised as it
stands. The others, few as a rule, are factorised with pivoting, which tells their rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtri

from covey.designs.pieces import alike, gathered, scatter
from covey.designs.pivots import DEPENDENT, DOUBTFUL, LEAST_EIGENVALUE, TIE

__all__ = ["factor_groups"]

Array = NDArray[Any]

# Numbers of the matrices that are factorised at a time (1 MiB): they stay in a core's second-level cache.
NUMBERS = 2**17

# More groups of one size than this many times their size are factorised together, column after column.
FEW = 3


def factor_groups(
    blocks: Array, block_starts: Array, starts: Array, scale: Array, root: Array, alive: Array
) -> tuple[Array, NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Factors T with ``T' B T`` the identity for the Gram block B of every group, unscaled.

    Parameters
    ----------
    blocks, block_starts, starts
        Gram blocks of the scaled columns, as in `covey.designs.Moments`, and where each group's columns start.
    scale, root, alive : ndarray, shape (p,)
        What the columns were multiplied by, their standard deviations after that, and whether they vary at all.

    Returns
    -------
    factors, factor_starts, ranks, doubtful : ndarray
        The factors, flat, where each starts, their ranks, and the groups whose rank their Gram block cannot decide
        (those that have none included), which get rank zero here.
    """
    sizes = np.diff(starts)
    ranks, certain = np.zeros(sizes.size, dtype=np.intp), np.diff(block_starts) > 0
    inverse = np.divide(1.0, root, out=np.zeros(root.size), where=alive)
    gain = inverse * scale
    known = np.flatnonzero(certain)
    made: list[tuple[Array, Array]] = []
    for (size,), at in alike(sizes[known]):
        step = max(1, NUMBERS // size**2)
        for a in range(0, at.size, step):
            groups = known[at[a : a + step]]
            d = gathered(inverse, starts[groups], size)
            A = gathered(blocks, block_starts[groups], size * size).reshape(-1, size, size)
            T, ranks[groups], certain[groups] = _orthonormal(A * d[:, :, None] * d[:, None, :])
            T *= gathered(gain, starts[groups], size)[:, :, None]
            made.append((groups, T))
    ranks[~certain] = 0
    factor_starts = np.concatenate([[0], np.cumsum(sizes * ranks)])
    factors = np.empty(int(factor_starts[-1]))
    for groups, T in made:
        for (rank,), at in alike(ranks[groups]):
            own = T if at.size == groups.size else T[at]
            scatter(factors, factor_starts[groups[at]], own[:, :, :rank].reshape(at.size, -1))
    return factors, factor_starts, ranks, np.flatnonzero(~certain)


def _orthonormal(A: Array) -> tuple[Array, Array, Array]:
    """T with ``T' A T`` the identity on its first `rank` columns; the ranks; and whether these are certain.

    A has shape (groups, size, size).
    """
    size = A.shape[1]
    T, easy = _sweep(A) if A.shape[0] > FEW * size else _one_by_one(A)
    ranks, certain = np.full(A.shape[0], size), np.ones(A.shape[0], dtype=bool)
    hard = np.flatnonzero(~easy)
    if hard.size:
        T[hard], ranks[hard], certain[hard] = _pivoted(A[hard])
    return T, ranks, certain


def _one_by_one(A: Array) -> tuple[Array, Array]:
    """The factorisation in the order of the columns by LAPACK, and where it may be used."""
    T, easy = np.empty_like(A), np.zeros(A.shape[0], dtype=bool)
    for g in range(A.shape[0]):
        C, failed = dpotrf(A[g])
        if not failed:
            T[g], failed = dtrtri(C)
            # the inverse of A is T T', whose trace is no less than one over the least eigenvalue of A
            easy[g] = not failed and np.vdot(T[g], T[g]) < 1.0 / LEAST_EIGENVALUE
    return T, easy


def _sweep(A: Array) -> tuple[Array, Array]:
    """The same for many small matrices at once."""
    count, size = A.shape[:2]
    # the groups are the last axis: every operation below is long and contiguous, however small they are
    S = A.transpose(1, 2, 0).copy(order="C")
    T = np.zeros_like(S)
    easy = np.ones(count, dtype=bool)
    for j in range(size):
        easy &= S[j, j] > LEAST_EIGENVALUE
        root = np.sqrt(np.where(easy, S[j, j], 1.0))
        # S keeps the rows of the triangle above, and the Schur complement below
        S[j, j:] /= root
        T[j, j] = 1.0 / root
        if j:
            np.einsum("aig,ig->ag", T[:j, :j], S[:j, j], out=T[:j, j])
            T[:j, j] /= -root
        if j + 1 < size:
            S[j + 1 :, j + 1 :] -= S[j, j + 1 :, None] * S[j, None, j + 1 :]
    easy &= np.einsum("aig,aig->g", T, T) < 1.0 / LEAST_EIGENVALUE
    return np.ascontiguousarray(T.transpose(2, 0, 1)), easy


def _pivoted(A: Array) -> tuple[Array, Array, Array]:
    """The factorisation that takes the column of largest pivot next; the twin of that in `torch_groups`."""
    A = A.copy()
    count, size = A.shape[:2]
    each = np.arange(count)
    T, C = np.zeros_like(A), np.zeros_like(A)
    left = np.ones((count, size), dtype=bool)
    going, certain = np.ones(count, dtype=bool), np.ones(count, dtype=bool)
    ranks = np.zeros(count, dtype=np.intp)
    for k in range(size):
        diagonal = np.where(left, A[:, np.arange(size), np.arange(size)], -np.inf)
        # a tie is won by the earlier column: rounding must not decide the order
        best = np.argmax(diagonal * (1.0 + TIE) >= diagonal.max(axis=1, keepdims=True), axis=1)
        pivot = diagonal[each, best]
        going &= pivot > DEPENDENT
        if not going.any():
            break
        certain &= ~(going & (pivot <= DOUBTFUL))
        root = np.sqrt(np.where(going, pivot, 1.0))
        gain = (going / root)[:, None]
        row = A[each, best] * gain
        T[:, :, k] = -(T[:, :, :k] @ C[each, best, :k, None])[:, :, 0] * gain
        T[each, best, k] += gain[:, 0]
        C[:, :, k] = row
        A -= row[:, :, None] * row[:, None, :]
        left[each, best] = False
        ranks += going
    return T, ranks, certain
