"""Moments of columns and of groups of columns, and the pass over a dense array that computes them.

In the pass, X is copied tile by tile into a small buffer, shifted, scaled and weighted, and everything is computed from
the tile while it is in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from covey.layout import alike, columns_of, gathered, group_tiles, offsets, run, scatter
from covey.validation import Array

__all__ = ["LARGEST_BLOCK", "Moments", "block_offsets", "dense_moments", "diagonals", "outer_products", "tiled_moments"]

# The Gram block of a larger group costs more than a factorisation of the columns themselves, and one such group would
# slow down the pass for all its neighbours.
LARGEST_BLOCK = 64

# A tile of 2^15 numbers is 256 KiB and stays in a core's second-level cache.
TILE = 2**15
# The width of a tile of an X in C order, wide enough to read rows fast.
LONG = 512
# Small groups are multiplied together, about this many columns at a time: the unneeded products between them cost less
# than more calls to BLAS.
WIDTH = 10
# Up to this many columns, BLAS computes a matrix times its transpose faster as a general product.
NARROW = 24

# If group sizes change more often than this from one group to the next, groups are reordered by size.
FEW_RUNS = 32

# Scattered columns are copied into order this many numbers at a time (4 MiB), and at least this many rows.
GATHERED, FEW_ROWS = 2**19, 32


@dataclass(frozen=True)
class Moments:
    """First and second moments of a design, from one pass over it, in the groups' contiguous layout.

    Attributes
    ----------
    mean : ndarray, shape (p,)
        Weighted column means; zeros without centring.
    variance : ndarray, shape (p,)
        ``sum_i q_i (x_ij - mean_j)^2`` of the scaled columns.
    correlation : ndarray, shape (p,)
        ``sum_i q_i (x_ij - mean_j) y_i`` of the scaled columns.
    blocks, block_starts : ndarray
        The centred Gram blocks ``sum_i q_i (x_i - mean)(x_i - mean)'`` of the scaled columns, flattened: the block of
        group l is ``blocks[block_starts[l]:block_starts[l + 1]]``, row by row. Empty for a group larger than
        `LARGEST_BLOCK`.
    """

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    correlation: NDArray[np.float64]
    blocks: NDArray[np.float64]
    block_starts: NDArray[np.intp]


def block_offsets(starts: Array) -> NDArray[np.intp]:
    """Where each group's Gram block begins in `Moments.blocks`."""
    sizes = np.diff(starts)
    return offsets(np.where(sizes <= LARGEST_BLOCK, sizes**2, 0))


def diagonals(blocks: Array, block_starts: Array, starts: Array, otherwise: Array) -> NDArray[np.float64]:
    """The diagonals of all Gram blocks, shape (p,); other numbers for the columns of groups without one."""
    out, known = otherwise.copy(), np.flatnonzero(np.diff(block_starts))
    for (size,), at in alike(np.diff(starts)[known]):
        groups = known[at]
        scatter(out, starts[groups], blocks[block_starts[groups][:, None] + np.arange(size) * (size + 1)])
    return out


def outer_products(values: Array, starts: Array) -> NDArray[np.float64]:
    """``v_l v_l'`` of every group l that has a Gram block, flattened as in `Moments.blocks`, for v of shape (p,)."""
    block_starts = block_offsets(starts)
    out = np.empty(int(block_starts[-1]))
    known = np.flatnonzero(np.diff(block_starts))
    for (size,), at in alike(np.diff(starts)[known]):
        groups = known[at]
        v = gathered(values, starts[groups], size)
        scatter(out, block_starts[groups], (v[:, :, None] * v[:, None, :]).reshape(groups.size, size * size))
    return out


def tiled_moments(
    take: Callable[[Array], Array], numbers: int, y: Array, q: Array, members: Array, starts: Array, *, centre: bool,
    scale: Array,
) -> Moments:  # fmt: skip
    """The moments of columns that are computed when they are read, about `numbers` numbers at a time."""
    tiles = []
    for first, last in group_tiles(starts, numbers // y.size):
        at = slice(int(starts[first]), int(starts[last]))
        X, edges = take(members[at]), starts[first : last + 1] - starts[first]
        tiles.append(dense_moments(X, y, q, np.arange(X.shape[1]), edges, centre=centre, scale=scale[at]))
    mean, variance, correlation, blocks = (
        np.concatenate([getattr(tile, name) for tile in tiles])
        for name in ("mean", "variance", "correlation", "blocks")
    )
    return Moments(mean, variance, correlation, blocks, block_offsets(starts))


def dense_moments(
    X: Array, y: Array, q: Array, members: Array, starts: Array, *, centre: bool, scale: Array
) -> Moments:
    """The moments of the groups of a dense X, as in `Design.moments`.

    With centring, the row of largest weight is subtracted from every row before summing, so that a constant column
    gives exact zeros and a column with a large mean loses at most a factor n of precision: that row lies within
    ``sqrt(n)`` standard deviations of the mean.
    """
    sizes, p = np.diff(starts), members.size
    shift = X[int(np.argmax(q))].astype(np.float64)[members] if centre else np.zeros(p)
    # groups of the same size become neighbours if sizes change often
    kinds = np.where(sizes > LARGEST_BLOCK, 1, sizes)
    few = np.count_nonzero(np.diff(kinds)) < FEW_RUNS
    groups = np.arange(sizes.size) if few else np.argsort(kinds, kind="stable")
    at = np.repeat(starts[groups] - np.cumsum(sizes[groups]) + sizes[groups], sizes[groups]) + np.arange(p)
    # equal weights are applied at the end
    root = None if bool((q == q[0]).all()) else np.sqrt(q)
    unit = float(q[0]) if root is None else 1.0
    sums, segments = _sums(X, y, root, members[at], shift[at], scale[at], sizes[groups])
    block_starts = block_offsets(starts)
    total, cross, square, blocks = np.empty(p), np.empty(p), np.zeros(p), np.empty(block_starts[-1])
    # sums of columns of extreme scale overflow, and are recomputed with a scale
    with np.errstate(over="ignore", invalid="ignore"):
        total[at], cross[at] = unit * sums
        for segment in segments:
            if segment.size == 1:
                square[at[segment.columns]] = unit * segment.total
            else:
                scatter(blocks, block_starts[groups[segment.groups]], unit * segment.blocks())
        single = sizes == 1
        blocks[block_starts[:-1][single]] = square[starts[:-1][single]]
        mean = np.zeros(p)
        if centre:
            # total is for the shifted, scaled columns
            mean = shift + total / scale
            blocks -= outer_products(total, starts)
            cross -= total * float(q @ y)
            square -= total * total
    variance = diagonals(blocks, block_starts, starts, np.maximum(square, 0.0))
    return Moments(mean, variance, cross, blocks, block_starts)


class _Segment:
    """Neighbouring groups of one size, and sums over rows of the products of their columns.

    Columns of groups without a Gram block count as groups of size one.

    Attributes
    ----------
    total : ndarray
        The squares of columns if the size is one, otherwise Gram matrices of several groups together.
    """

    def __init__(self, columns: slice, groups: slice, size: int, together: int) -> None:
        self.columns, self.groups, self.size, self.together = columns, groups, size, together
        width, n_columns = together * size, columns.stop - columns.start
        self.total = np.zeros(n_columns if size == 1 else (n_columns // width, width, width))

    def add(self, Z: Array) -> None:
        """Add the products of some rows."""
        if self.size == 1:
            self.total += np.einsum("ij,ij->j", Z, Z)
            return
        (n, _), (row, column), (count, width, _) = Z.shape, Z.strides, self.total.shape
        right = as_strided(Z, (count, n, width), (width * column, row, column))
        if count > 1 and width <= NARROW:
            # one more column on the left makes BLAS use a general product, whose last row is ignored
            left = as_strided(Z, (count - 1, width + 1, n), (width * column, column, row))
            self.total[:-1] += (left @ right[:-1])[:, :-1]
            self.total[-1] += right[-1].T @ right[-1]
        else:
            self.total += right.transpose(0, 2, 1) @ right

    def blocks(self) -> Array:
        """The blocks of single groups, extracted from the blocks of several together; shape (n_groups, size^2)."""
        square = self.total.reshape(-1, self.together, self.size, self.together, self.size)
        return square.diagonal(axis1=1, axis2=3).transpose(0, 3, 1, 2).reshape(-1, self.size**2)


def _segments(sizes: Array, wide: int) -> Iterator[_Segment]:
    """Divide the groups into segments of at most about `wide` columns."""
    kinds, starts = np.where(sizes > LARGEST_BLOCK, 1, sizes), offsets(sizes)
    edges = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), sizes.size]
    for a, b in pairwise(edges):
        size, left, right = int(kinds[a]), int(starts[a]), int(starts[b])
        if size == 1:
            for c in range(left, right, wide):
                yield _Segment(slice(c, min(c + wide, right)), slice(a, b), 1, 1)
        elif size > 1:
            together = min(b - a, max(1, WIDTH // size))
            step = max(1, wide // (together * size)) * together
            even = b - (b - a) % together
            for first, last in [*((c, min(c + step, even)) for c in range(a, even, step)), (even, b)]:
                if first < last:
                    columns = slice(int(starts[first]), int(starts[last]))
                    yield _Segment(columns, slice(first, last), size, min(together, last - first))


def _sums(
    X: Array, y: Array, root: Array | None, columns: Array, shift: Array, scale: Array, sizes: Array
) -> tuple[Array, list[_Segment]]:
    """Sums over the rows ``root * scale * (x - shift)`` of some columns, without and with y, shape (2, p); products."""
    n, p = X.shape[0], columns.size
    by_column = abs(X.strides[0]) < abs(X.strides[1])
    # contiguous columns are long enough anyway
    segments = list(_segments(sizes, max(WIDTH if by_column else LONG, TILE // n)))
    buffer, sums = np.empty(TILE), np.zeros((2, p))
    sides = np.stack([np.ones(n), y]) if root is None else np.stack([root, root * y])
    with np.errstate(over="ignore", invalid="ignore"):
        for first, part, at in _row_chunks(X, columns, by_column):
            for segment in segments:
                inside = segment.columns
                width = inside.stop - inside.start
                step = min(len(part), max(1, TILE // width))
                flat = buffer[: step * width]
                base = flat.reshape(width, step).T if by_column else flat.reshape(step, width)
                for a in range(0, len(part), step):
                    some = part[a : a + step]
                    rows = slice(first + a, first + a + len(some))
                    Z = base[: len(some)]
                    source = some[:, inside] if at is None else columns_of(some, at[inside])
                    _fill(Z, source, shift[inside], scale[inside], None if root is None else root[rows])
                    sums[:, inside] += sides[:, rows] @ Z
                    segment.add(Z)
    return sums, segments


def _row_chunks(X: Array, columns: Array, by_column: bool) -> Iterator[tuple[int, Array, Array | None]]:
    """Rows of X, as the position of the first one, an array, and the positions of the columns in it.

    The positions are None if the array has just these columns, in order. Columns that are scattered in long rows are
    copied into order for some rows at a time.
    """
    together = run(columns)
    if together is not None:
        yield 0, X[:, together], None
    elif by_column:
        yield 0, X, columns
    else:
        step = max(FEW_ROWS, GATHERED // columns.size)
        for a in range(0, X.shape[0], step):
            yield a, columns_of(X[a : a + step], columns), None


def _fill(Z: Array, X: Array, shift: Array, scale: Array, root: Array | None) -> None:
    """Write ``root * scale * (X - shift)`` to Z."""
    if X.dtype == np.float64:
        np.subtract(X, shift, out=Z)
    else:
        # converted first: arithmetic on mixed types is slow
        Z[...] = X
        Z -= shift
    if (scale != 1.0).any():
        Z *= scale
    if root is not None:
        Z *= root[:, None]
