"""The factors of groups: the matrices that map a group's columns to working columns, and products with them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from covey.designs import Design, Moments
from covey.groups import Groups
from covey.layout import alike, gathered, joined, offsets, run
from covey.validation import Array, ArrayOrTensor, FloatArray, name_columns, on_host

__all__ = [
    "Standardize",
    "block_diagonal",
    "check_standardize",
    "factors_from_blocks",
    "group_factors",
    "pivoted_cholesky",
    "times_factors",
]

Standardize = Literal["group", "column", "block", False]

STANDARDIZE = ("group", "column", "block", False)

# One over the standard deviation of a column must be finite, with room for multiplication.
SMALLEST_SPREAD = 1e-300

# Squared relative pivots of the Cholesky factorisation of a group's correlation matrix. Below DEPENDENT, a pivot is
# round-off error; between the two, the Gram block has too few digits to decide, and the columns are factorised instead.
DEPENDENT = 1e-13
DOUBTFUL = 1e-6

# The numbers of small matrices that are factorised at a time: 1 MiB, a core's second-level cache, or more on a device.
TILE, DEVICE_TILE = 2**17, 2**24

# Pivots this close are a tie, which the earlier column wins: round-off error must not decide the order.
TIE = 1e-8

# As in R's lm, a column is dropped if the part that the others do not explain is below this share of its norm.
RANK_TOLERANCE = 1e-7


def check_standardize(standardize: object) -> None:
    """Refuse unknown ways to standardise."""
    if standardize not in STANDARDIZE:
        raise ValueError(f"standardize must be 'group', 'column', 'block' or False, not {standardize!r}.")


def group_factors(
    design: Design, moments: Moments, groups: Groups, q: FloatArray, scale: FloatArray, standardize: Standardize
) -> tuple[FloatArray, NDArray[np.intp]]:
    """The factors of all groups, flattened row by row, one after another, and their ranks."""
    # a column whose spread is within the round-off error of its mean is constant
    noise = 8 * np.finfo(float).eps * np.abs(moments.mean * scale)
    root = np.sqrt(np.maximum(moments.variance, 0.0))
    alive = root > noise
    tiny = alive & (root / scale <= SMALLEST_SPREAD)
    if tiny.any():
        where = name_columns(groups.members[tiny], design.columns)
        raise ValueError(
            f"{design.name} varies by less than {SMALLEST_SPREAD:g} in {where}, so coefficients would overflow: change "
            "the units, or drop such columns."
        )
    if standardize != "group":
        spread = np.where(alive, root / scale, 0.0)
        if standardize is False:
            spread[:] = spread.max(initial=0.0)
        elif standardize == "block":
            spread = np.repeat(_typical(spread, groups.starts), groups.sizes)
        gain = np.divide(1.0, spread, out=np.zeros(groups.n_columns), where=alive)
        return _diagonal_factors(gain, alive, groups)
    factors, ranks, doubtful = factors_from_blocks(design, moments, groups.starts, scale, root, alive)
    if doubtful.size == 0:
        return factors, ranks
    pieces: list[FloatArray] = np.split(factors, offsets(ranks * groups.sizes)[1:-1])
    for l, T in _factors_from_columns(design, moments, groups, q, scale, root, alive, doubtful).items():
        ranks[l], pieces[l] = T.shape[1], T.ravel()
    return np.concatenate(pieces), ranks


def factors_from_blocks(
    design: Design, moments: Moments, starts: Array, scale: Array, root: Array, alive: NDArray[np.bool_]
) -> tuple[FloatArray, NDArray[np.intp], NDArray[np.intp]]:
    """Factors T such that ``T' B T`` is the identity for the unscaled Gram block B of every group.

    They come from pivoted Cholesky factorisations of the correlation matrices, size by size, where X is stored: those
    of half a million groups on a device are factorised there.

    Parameters
    ----------
    scale, root, alive : ndarray, shape (p,)
        The scale that the columns were multiplied by, their standard deviations afterwards, and whether they vary.

    Returns
    -------
    factors, ranks : ndarray
        As of `group_factors`.
    doubtful : ndarray of int
        The groups whose rank is undecided, because their Gram block is too inaccurate, or missing; they have rank zero.
    """
    blocks, block_starts, put = moments.blocks, moments.block_starts, design.put
    sizes = np.diff(starts)
    ranks, certain = np.zeros(sizes.size, dtype=np.intp), np.diff(block_starts) > 0
    inverse = np.divide(1.0, root, out=np.zeros(root.size), where=alive)
    gain = inverse * scale
    known = np.flatnonzero(certain)
    pieces: list[tuple[Array, Array]] = []
    for (size,), at in alike(sizes[known]):
        step = max(1, (DEVICE_TILE if design.on_device else TILE) // size**2)
        for a in range(0, at.size, step):
            groups = known[at[a : a + step]]
            d = put(gathered(inverse, starts[groups], size))
            A = put(gathered(blocks, block_starts[groups], size * size).reshape(-1, size, size))
            A = A * d[:, :, None] * d[:, None, :]
            T, ranks[groups], certain[groups] = map(on_host, pivoted_cholesky(A, put))
            _spread_evenly(T, A, ranks[groups])
            T *= gathered(gain, starts[groups], size)[:, :, None]
            pieces.append((groups, T))
    ranks[~certain] = 0
    factor_starts = offsets(sizes * ranks)
    rows = [
        (factor_starts[groups[at]], (T if at.size == groups.size else T[at])[:, :, :rank].reshape(at.size, -1))
        for groups, T in pieces
        for (rank,), at in alike(ranks[groups])
    ]
    factors = joined(int(factor_starts[-1]), rows)
    return factors, ranks, np.flatnonzero(~certain)


def pivoted_cholesky(
    A: ArrayOrTensor, put: Callable[[Array], ArrayOrTensor] = np.asarray
) -> tuple[ArrayOrTensor, ArrayOrTensor, ArrayOrTensor]:
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


def _spread_evenly(T: FloatArray, A: ArrayOrTensor, ranks: NDArray[np.intp]) -> None:
    """Give dependent columns coefficients of least norm, instead of zero to those that the factorisation left out.

    Which columns it leaves out is arbitrary: a level of a category, or one of two equal columns.
    """
    for (rank,), at in alike(ranks):
        if 0 < rank < T.shape[1]:
            B = on_host(A[at]) @ T[at, :, :rank]
            # the same working columns, by coefficients that are combinations of the rows of X
            T[at, :, :rank] = B @ np.linalg.inv(B.transpose(0, 2, 1) @ B)


def _diagonal_factors(
    gain: FloatArray, alive: NDArray[np.bool_], groups: Groups
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Diagonal factors that multiply each live column by its gain."""
    before = offsets(alive)
    ranks = before[groups.starts[1:]] - before[groups.starts[:-1]]
    factor_starts = offsets(ranks * groups.sizes)
    label = np.repeat(np.arange(groups.n_groups), groups.sizes)[alive]
    row = np.flatnonzero(alive) - groups.starts[label]
    column = before[:-1][alive] - before[groups.starts[label]]
    factors = np.zeros(int(factor_starts[-1]))
    factors[factor_starts[label] + row * ranks[label] + column] = gain[alive]
    return factors, ranks


def _typical(spread: FloatArray, starts: NDArray[np.intp]) -> FloatArray:
    """The root mean square of each group's non-zero entries, without overflow or underflow."""
    if spread.size == 0:
        return np.empty(0)
    largest = np.maximum.reduceat(spread, starts[:-1])
    unit = np.repeat(np.where(largest > 0, largest, 1.0), np.diff(starts))
    squares = np.add.reduceat((spread / unit) ** 2, starts[:-1])
    return largest * np.sqrt(squares / np.maximum(np.add.reduceat(spread > 0, starts[:-1]), 1))


def _factors_from_columns(
    design: Design,
    moments: Moments,
    groups: Groups,
    q: FloatArray,
    scale: FloatArray,
    root: FloatArray,
    alive: NDArray[np.bool_],
    which: NDArray[np.intp],
) -> dict[int, FloatArray]:
    """The factors of some groups by pivoted QR of their columns, which keeps twice the digits of their Gram blocks."""
    live = {int(l): np.flatnonzero(alive[groups.starts[l] : groups.starts[l + 1]]) for l in which}
    out: dict[int, FloatArray] = {l: np.zeros((int(groups.sizes[l]), 0)) for l in live}
    filled = [l for l in live if live[l].size]
    places = [groups.starts[l] + live[l] for l in filled]
    gains = [scale[at] / root[at] for at in places]
    triangles = design.triangles(q, [groups.members[at] for at in places], [moments.mean[at] for at in places], gains)
    for l, R, gain in zip(filled, triangles, gains, strict=True):
        R, pivots = scipy.linalg.qr(R, mode="r", pivoting=True)
        diagonal = np.abs(np.diag(R))
        rank = int(np.sum(diagonal > RANK_TOLERANCE * diagonal[0]))
        T = np.zeros((int(groups.sizes[l]), rank))
        # of least norm where columns depend on each other
        T[live[l][pivots]] = np.linalg.pinv(R[:rank])
        T[live[l]] *= gain[:, None]
        out[l] = T
    return out


def block_diagonal(factors: Array, sizes: Array, ranks: Array) -> sp.csr_array:
    """The factors of all groups as one sparse matrix, from working columns to columns; shape (p, r).

    The factors are stored row by row, like the values of the matrix, so they are not copied.
    """
    wide = np.repeat(ranks, sizes)
    starts = offsets(wide)
    first = np.repeat(offsets(ranks)[:-1], sizes)
    kind = np.int32 if factors.size < 2**31 else np.int64
    indices = np.repeat((first - starts[:-1]).astype(kind), wide)
    indices += np.arange(factors.size, dtype=kind)
    return sp.csr_array((factors, indices, starts.astype(kind)), shape=(wide.size, int(ranks.sum())))


def times_factors(X: Array, factors: Array, sizes: Array, ranks: Array) -> Array:
    """``X_l T_l`` of some groups side by side, for columns X of these groups, shape (n, sum of sizes)."""
    n = X.shape[0]
    starts, factor_starts, out_starts = offsets(sizes), offsets(sizes * ranks), offsets(ranks)
    out = np.empty((n, int(out_starts[-1])))
    for (size, rank), at in alike(sizes, ranks):
        if rank == 0:
            continue
        T = gathered(factors, factor_starts[at], size * rank).reshape(-1, size, rank)
        read, written = (
            (from_[at][:, None] + np.arange(width)).ravel() for from_, width in ((starts, size), (out_starts, rank))
        )
        columns = X[:, run(read) or read].reshape(n, at.size, size).transpose(1, 0, 2)
        if (consecutive := run(written)) is not None:
            # without a copy: these are most of the columns in memory
            np.matmul(columns, T, out=out[:, consecutive].reshape(n, at.size, rank).transpose(1, 0, 2))
        else:
            out[:, written] = (columns @ T).transpose(1, 0, 2).reshape(n, at.size * rank)
    return out
