"""Dense arrays in C or Fortran order, or any strided view, of float32 or float64; never copied.

In the pass for the moments of the groups, X is copied tile by tile into a small buffer, shifted, scaled and weighted,
and everything is computed from the tile while it is in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from covey.designs.protocol import (
    LARGEST_BLOCK,
    NORMS_AT_A_TIME,
    Design,
    Moments,
    block_offsets,
    diagonals,
    part_grams,
    row_slices,
)
from covey.layout import alike, columns_of, gathered, offsets, run, scatter
from covey.validation import Array, as_numeric_matrix, column_names

__all__ = ["DenseDesign", "group_tiles", "outer_products", "tiled_moments", "wrap"]

# Views that BLAS cannot read are copied this many numbers at a time (4 MiB of float64).
COPY_NUMBERS = 2**19

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


def wrap(X: object, *, name: str = "X") -> DenseDesign:
    """The design of anything that numpy reads."""
    return DenseDesign(as_numeric_matrix(X, name=name), columns=column_names(X), name=name)


class DenseDesign(Design):
    """A numpy array behind the `Design` protocol.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n, p)
        Kept by reference.
    columns : sequence of str or None
        Column names, for messages.
    name : str
        The name of X in messages.
    """

    def __init__(self, X: Array, *, columns: Sequence[str] | None = None, name: str = "X") -> None:
        super().__init__(X.shape, X.dtype, columns=columns, name=name)
        self.X = X
        n, p = X.shape
        self._in_blas_order = (X.strides[1] == X.itemsize and X.strides[0] >= p * X.itemsize) or (
            X.strides[0] == X.itemsize and X.strides[1] >= n * X.itemsize
        )

    def moments(self, y: Array, q: Array, members: Array, starts: Array, *, centre: bool, scale: Array) -> Moments:
        self.n_passes += 1
        moments = dense_moments(self.X, y, q, members, starts, centre=centre, scale=scale)
        if not np.isfinite(moments.variance).all():
            # nothing is refused if sums merely overflowed
            self.refuse(np.flatnonzero(~np.isfinite(self.largest())))
        return moments

    def correlate(self, R: Array) -> Array:
        """The product ``R X`` for R of shape (k, n); shape (k, p).

        Right-hand sides are rows rather than columns: this orientation of the product is fast for X in C order, and
        Gram rows are stored this way.
        """
        self.n_passes += 1
        R = np.ascontiguousarray(R, dtype=self.dtype)
        if self._in_blas_order:
            return R @ self.X
        # the product would copy all of X first
        out = np.zeros((R.shape[0], self.shape[1]), dtype=self.dtype)
        step = max(1, COPY_NUMBERS // self.shape[1])
        for a in range(0, self.shape[0], step):
            out += R[:, a : a + step] @ np.ascontiguousarray(self.X[a : a + step])
        return out

    def take(self, columns: Array) -> NDArray[np.float64]:
        return columns_of(self.X, columns).astype(np.float64, copy=False)

    def predict(self, columns: Array, coefs: Array, intercepts: Array) -> Array:
        return columns_of(self.X, columns) @ np.asarray(coefs).T + intercepts

    def gradient_norms(self, problem: Any, R: Array) -> NDArray[np.float64]:
        """The group norms of ``R X`` in working coordinates, tile by tile.

        Correlations of many models with all columns would take a good part of the memory of X.
        """
        if not self._in_blas_order or not problem.layout.in_order:
            return super().gradient_norms(problem, R)
        self.n_passes += 1
        R = np.ascontiguousarray(R, dtype=self.dtype)
        norms, starts = np.empty((len(R), problem.ranks.size)), problem.layout.starts
        for first, last in problem.tiles(max(1, NORMS_AT_A_TIME // max(len(R), 1))):
            norms[:, first:last] = problem.correlation_norms(R @ self.X[:, starts[first] : starts[last]], first, last)
        return norms

    def gram_parts(self, columns: Array, shift: Array, y: Array, weights: Sequence[Array]) -> NDArray[np.float64]:
        """``A' diag(w) A`` with ``A = [1, X[:, columns] - shift, y]`` for every w, a few rows at a time."""
        pieces = ((at, columns_of(self.X[at], columns)) for at in row_slices(self.shape[0], columns.size))
        return part_grams(pieces, shift, y, weights)

    def largest(self) -> NDArray[np.float64]:
        return np.maximum(self.X.max(axis=0), -self.X.min(axis=0)).astype(np.float64)


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
    groups = _by_size(sizes)
    at = np.repeat(starts[groups] - np.cumsum(sizes[groups]) + sizes[groups], sizes[groups]) + np.arange(p)
    # equal weights are applied at the end
    root = None if bool((q == q[0]).all()) else np.sqrt(q)
    unit = float(q[0]) if root is None else 1.0
    sums, squares, grams = _sums(X, y, root, members[at], shift[at], scale[at], sizes[groups])
    block_starts = block_offsets(starts)
    total, cross, square, blocks = np.empty(p), np.empty(p), np.empty(p), np.empty(block_starts[-1])
    # sums of columns of extreme scale overflow, and are recomputed with a scale
    with np.errstate(over="ignore", invalid="ignore"):
        total[at], cross[at], square[at] = unit * sums[0], unit * sums[1], unit * squares
        single = sizes == 1
        blocks[block_starts[:-1][single]] = square[starts[:-1][single]]
        for segment, gram in grams:
            which = groups[segment.first : segment.first + segment.n_groups]
            scatter(blocks, block_starts[which], unit * gram)
        mean = np.zeros(p)
        if centre:
            # total is for the shifted, scaled columns
            mean = shift + total / scale
            blocks -= outer_products(total, starts)
            cross -= total * float(q @ y)
            square -= total * total
    variance = diagonals(blocks, block_starts, starts)
    large = np.repeat(sizes > LARGEST_BLOCK, sizes)
    variance[large] = np.maximum(square[large], 0.0)
    return Moments(mean, variance, cross, blocks, block_starts)


def tiled_moments(
    design: Design, numbers: int, y: Array, q: Array, members: Array, starts: Array, *, centre: bool, scale: Array
) -> Moments:
    """The same for a design whose columns are computed when they are read, about `numbers` numbers at a time."""
    tiles = []
    for first, last in group_tiles(starts, numbers // design.shape[0]):
        at = slice(int(starts[first]), int(starts[last]))
        X, edges = design.take(members[at]), starts[first : last + 1] - starts[first]
        tiles.append(dense_moments(X, y, q, np.arange(X.shape[1]), edges, centre=centre, scale=scale[at]))
    mean, variance, correlation, blocks = (
        np.concatenate([getattr(tile, name) for tile in tiles])
        for name in ("mean", "variance", "correlation", "blocks")
    )
    return Moments(mean, variance, correlation, blocks, block_offsets(starts))


def group_tiles(starts: Array, width: int) -> Iterator[tuple[int, int]]:
    """Consecutive groups of up to `width` columns together, and at least one group."""
    first, n_groups = 0, len(starts) - 1
    while first < n_groups:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + width, side="right")) - 1)
        yield first, min(last, n_groups)
        first = last


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


def _by_size(sizes: Array) -> NDArray[np.intp]:
    """An order of the groups in which those of the same size are neighbours, if sizes change often."""
    kinds = _kinds(sizes)
    if np.count_nonzero(np.diff(kinds)) < FEW_RUNS:
        return np.arange(sizes.size)
    return np.argsort(kinds, kind="stable")


def _kinds(sizes: Array) -> Array:
    """The sizes of groups, or one for those whose columns need no products with each other."""
    return np.where(sizes > LARGEST_BLOCK, 1, sizes)


class _Segment(NamedTuple):
    """Neighbouring groups of one kind."""

    columns: slice  # their columns
    # the first group, and their number
    first: int
    n_groups: int
    # the kind of the groups, and how many are multiplied together
    size: int
    together: int


def _segments(sizes: Array, wide: int) -> Iterator[_Segment]:
    """Divide the groups into segments of at most about `wide` columns."""
    kinds, starts = _kinds(sizes), offsets(sizes)
    edges = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), sizes.size]
    for a, b in pairwise(edges):
        size, left, right = int(kinds[a]), int(starts[a]), int(starts[b])
        if size == 1:
            for c in range(left, right, wide):
                yield _Segment(slice(c, min(c + wide, right)), a, b - a, 1, 1)
        elif size > 1:
            together = min(b - a, max(1, WIDTH // size))
            step = max(1, wide // (together * size)) * together
            even = b - (b - a) % together
            for first, last in [*((c, min(c + step, even)) for c in range(a, even, step)), (even, b)]:
                columns = slice(int(starts[first]), int(starts[last]))
                if first < last:
                    yield _Segment(columns, first, last - first, size, min(together, last - first))


def _sums(
    X: Array, y: Array, root: Array | None, columns: Array, shift: Array, scale: Array, sizes: Array
) -> tuple[Array, Array, list[tuple[_Segment, Array]]]:
    """Sums over the rows ``root * scale * (x - shift)`` of some columns.

    Returns sums of the columns, without and with y, shape (2, p); their squares, where no other products are needed;
    and the segments of all other groups with their flattened Gram blocks, shape (n_groups, size^2).
    """
    n, p = X.shape[0], columns.size
    by_column = abs(X.strides[0]) < abs(X.strides[1])
    # contiguous columns are long enough anyway
    wide = max(WIDTH if by_column else LONG, TILE // n)
    products = [_Products(segment) for segment in _segments(sizes, wide)]
    buffer, sums, squares = np.empty(TILE), np.zeros((2, p)), np.zeros(p)
    sides = np.stack([np.ones(n), y]) if root is None else np.stack([root, root * y])
    with np.errstate(over="ignore", invalid="ignore"):
        for first, part, at in _row_chunks(X, columns, by_column):
            for product in products:
                inside = product.segment.columns
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
                    if product.segment.size > 1:
                        product.add(Z)
                    else:
                        squares[inside] += np.einsum("ij,ij->j", Z, Z)
    return sums, squares, [(product.segment, product.blocks()) for product in products if product.segment.size > 1]


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


class _Products:
    """Gram matrices of neighbouring groups, a few groups at a time."""

    def __init__(self, segment: _Segment) -> None:
        self.segment = segment
        self.width = segment.together * segment.size
        self.total = np.zeros((segment.n_groups // segment.together, self.width, self.width))

    def add(self, Z: Array) -> None:
        """Add the products of some rows."""
        (n, _), (row, column), count, width = Z.shape, Z.strides, len(self.total), self.width
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
        together, size = self.segment.together, self.segment.size
        square = self.total.reshape(-1, together, size, together, size)
        return square.diagonal(axis1=1, axis2=3).transpose(0, 3, 1, 2).reshape(self.segment.n_groups, -1)
