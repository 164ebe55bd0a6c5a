"""Orthonormalise all groups by pivoted Cholesky factorisations of their correlation matrices, size by size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.layout import alike, gathered, scatter

__all__ = ["DEPENDENT", "DOUBTFUL", "TIE", "factor_groups"]

Array = NDArray[Any]

# Squared relative pivots of the Cholesky factorisation of a group's correlation matrix. Below DEPENDENT, a pivot is
# round-off error; between the two, the Gram block has too few digits to decide, and the columns are factorised instead.
DEPENDENT = 1e-13
DOUBTFUL = 1e-6

# Pivots this close are a tie, which the earlier column wins: round-off error must not decide the order.
TIE = 1e-8

# Numbers in the matrices factorised at a time (1 MiB): they stay in a core's second-level cache.
NUMBERS = 2**17


def factor_groups(
    blocks: Array, block_starts: Array, starts: Array, scale: Array, root: Array, alive: Array
) -> tuple[Array, NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Factors T such that ``T' B T`` is the identity for the unscaled Gram block B of every group.

    Parameters
    ----------
    blocks, block_starts, starts
        Gram blocks of the scaled columns, as in `covey.designs.Moments`, and where each group's columns start.
    scale, root, alive : ndarray, shape (p,)
        The scale that the columns were multiplied by, their standard deviations afterwards, and whether they vary.

    Returns
    -------
    factors, factor_starts, ranks, doubtful : ndarray
        The flattened factors, where each starts, their ranks, and the groups whose rank is undecided (because their
        Gram block is too inaccurate, or missing), which get rank zero here.
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
            T, ranks[groups], certain[groups] = _pivoted(A * d[:, :, None] * d[:, None, :])
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


def _pivoted(A: Array) -> tuple[Array, Array, Array]:
    """T with ``T' A T`` the identity on its first `rank` columns; the ranks; and whether these are certain.

    A has shape (groups, size, size). The column with the largest pivot is taken next, which reveals the rank. The torch
    version is `covey.designs.torch_groups.orthonormal_factors`.
    """
    A = A.copy()
    count, size = A.shape[:2]
    each = np.arange(count)
    T, C = np.zeros_like(A), np.zeros_like(A)
    left = np.ones((count, size), dtype=bool)
    going, certain = np.ones(count, dtype=bool), np.ones(count, dtype=bool)
    ranks = np.zeros(count, dtype=np.intp)
    for k in range(size):
        diagonal = np.where(left, A[:, np.arange(size), np.arange(size)], -np.inf)
        # the earlier column wins a tie: round-off error must not decide the order
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
