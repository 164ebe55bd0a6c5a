"""Orthonormalise all groups by pivoted Cholesky factorisations of their correlation matrices, size by size.

The same code runs on numpy arrays and on torch tensors, so that the matrices of half a million groups can stay on a
device until they are factorised.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from covey.layout import alike, gathered, scatter
from covey.validation import on_host

__all__ = ["GroupFactors", "factor_groups", "pivoted_cholesky"]

Array = NDArray[Any]

# Squared relative pivots of the Cholesky factorisation of a group's correlation matrix. Below DEPENDENT, a pivot is
# round-off error; between the two, the Gram block has too few digits to decide, and the columns are factorised instead.
DEPENDENT = 1e-13
DOUBTFUL = 1e-6

# Pivots this close are a tie, which the earlier column wins: round-off error must not decide the order.
TIE = 1e-8

# Numbers in the matrices factorised at a time (1 MiB): they stay in a core's second-level cache.
NUMBERS = 2**17


class GroupFactors(NamedTuple):
    """Factors T such that ``T' B T`` is the identity for the unscaled Gram block B of every group.

    Attributes
    ----------
    factors, starts, ranks : ndarray
        The flattened factors, where each starts, and their ranks.
    doubtful : ndarray of int
        The groups whose rank is undecided (because their Gram block is too inaccurate, or missing); they have rank zero
        here.
    """

    factors: NDArray[np.float64]
    starts: NDArray[np.intp]
    ranks: NDArray[np.intp]
    doubtful: NDArray[np.intp]


def factor_groups(
    blocks: Array,
    block_starts: Array,
    starts: Array,
    scale: Array,
    root: Array,
    alive: Array,
    *,
    put: Callable[[Array], Any] = np.asarray,
    numbers: int = NUMBERS,
) -> GroupFactors:
    """The factors of all groups.

    Parameters
    ----------
    blocks, block_starts, starts
        Gram blocks of the scaled columns, as in `covey.designs.Moments`, and where each group's columns start.
    scale, root, alive : ndarray, shape (p,)
        The scale that the columns were multiplied by, their standard deviations afterwards, and whether they vary.
    put : callable
        Moves an array to where matrices are factorised.
    numbers : int
        The numbers in the matrices that are factorised at a time.
    """
    sizes = np.diff(starts)
    ranks, certain = np.zeros(sizes.size, dtype=np.intp), np.diff(block_starts) > 0
    inverse = np.divide(1.0, root, out=np.zeros(root.size), where=alive)
    gain = inverse * scale
    known = np.flatnonzero(certain)
    pieces: list[tuple[Array, Array]] = []
    for (size,), at in alike(sizes[known]):
        step = max(1, numbers // size**2)
        for a in range(0, at.size, step):
            groups = known[at[a : a + step]]
            d = put(gathered(inverse, starts[groups], size))
            A = put(gathered(blocks, block_starts[groups], size * size).reshape(-1, size, size))
            found = pivoted_cholesky(A * d[:, :, None] * d[:, None, :], put)
            T, ranks[groups], certain[groups] = map(on_host, found)
            pieces.append((groups, T * gathered(gain, starts[groups], size)[:, :, None]))
    ranks[~certain] = 0
    factor_starts = np.concatenate([[0], np.cumsum(sizes * ranks)])
    factors = np.empty(int(factor_starts[-1]))
    for groups, T in pieces:
        for (rank,), at in alike(ranks[groups]):
            chosen = T if at.size == groups.size else T[at]
            scatter(factors, factor_starts[groups[at]], chosen[:, :, :rank].reshape(at.size, -1))
    return GroupFactors(factors, factor_starts, ranks, np.flatnonzero(~certain))


def pivoted_cholesky(A: Any, put: Callable[[Array], Any] = np.asarray) -> tuple[Any, Any, Any]:
    """T with ``T' A T`` the identity on its first `rank` columns; the ranks; and whether these are certain.

    A has shape (groups, size, size), a numpy array or a tensor. The column with the largest pivot is taken next, which
    reveals the rank.
    """
    xp: Any = np if isinstance(A, np.ndarray) else import_module("torch")
    A = A + 0.0  # a copy
    count, size = A.shape[:2]
    each, every = put(np.arange(count)), put(np.arange(size))
    T, C = xp.zeros_like(A), xp.zeros_like(A)
    left = put(np.ones((count, size), dtype=bool))
    going, certain = put(np.ones(count, dtype=bool)), put(np.ones(count, dtype=bool))
    ranks = put(np.zeros(count, dtype=np.intp))
    for k in range(size):
        diagonal = xp.where(left, A[:, every, every], -np.inf)
        near_best = diagonal * (1.0 + TIE) >= xp.amax(diagonal, axis=1, keepdims=True)
        best = (near_best * 1).argmax(axis=1)
        pivot = diagonal[each, best]
        going = going & (pivot > DEPENDENT)
        if not going.any():
            break
        certain = certain & ~(going & (pivot <= DOUBTFUL))
        gain = (going / xp.sqrt(xp.where(going, pivot, 1.0)))[:, None]
        row = A[each, best] * gain
        T[:, :, k] = -(T[:, :, :k] @ C[each, best, :k, None])[:, :, 0] * gain
        T[each, best, k] += gain[:, 0]
        C[:, :, k] = row
        A -= row[:, :, None] * row[:, None, :]
        left[each, best] = False
        ranks = ranks + going
    return T, ranks, certain
