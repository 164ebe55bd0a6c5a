"""The pass over a dense X for the sums and Gram blocks of groups, tile by tile.

A tile of X is read into the cache once and used for everything. It is a view of X if BLAS can multiply X directly, and
a small copy if columns are scattered, shifted, scaled, weighted, or not in double precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from covey.layout import columns_of, run

__all__ = ["Reading", "Segment", "segment_sums", "segments"]

Array = NDArray[Any]

# A tile of 2^15 numbers is 256 KiB and stays in a core's second-level cache. If every group is multiplied separately,
# tiles are larger and calls fewer.
TILE, LARGE_TILE = 2**15, 2**17
# The width of a tile of an X in C order, wide enough to read rows fast.
LONG = 512
# Small groups are multiplied together, about this many columns at a time: the unneeded products between them cost less
# than more calls to BLAS.
WIDTH = 10
# Up to this many columns, BLAS computes a matrix times its own transpose faster as a general product.
NARROW = 24


@dataclass(frozen=True)
class Reading:
    """How X is read: rows are transformed to ``sqrt(q) scale (x - shift)``.

    Attributes
    ----------
    X : ndarray, shape (n, p)
    sides : ndarray, shape (2, n)
        The vectors that columns are multiplied by for their sums: without and with the response.
    root : ndarray, shape (n,), or None
        ``sqrt(q)``; None if all weights are equal and the caller applies them.
    by_column, as_it_lies : bool
        Whether columns rather than rows are contiguous, and whether BLAS can read X directly in double precision.
    """

    X: Array
    sides: Array
    root: Array | None
    by_column: bool
    as_it_lies: bool

    @classmethod
    def of(cls, X: Array, y: Array, q: Array) -> tuple[Reading, float]:
        """The reading, and a factor that multiplies its results."""
        (n, p), (row, column) = X.shape, X.strides
        in_blas_order = (column == X.itemsize and row >= p * column) or (row == X.itemsize and column >= n * row)
        as_it_lies = bool(in_blas_order and X.dtype == np.float64)
        by_column = abs(row) < abs(column)
        if bool((q == q[0]).all()):
            return cls(X, np.stack([np.ones(n), y]), None, by_column, as_it_lies), float(q[0])
        root = np.sqrt(q)
        return cls(X, np.stack([root, root * y]), root, by_column, as_it_lies), 1.0

    def tiles(
        self, columns: Array, shift: Array, scale: Array, buffer: Array
    ) -> tuple[Array, Iterator[tuple[slice, slice]]]:
        """Some columns of all rows, as many rows at a time as fit the buffer.

        Returns an array, which is X itself or the buffer, and an iterator over tiles: the rows in X, and the rows of
        the array that then hold them.
        """
        together, width = run(columns), columns.size
        shifted, scaled = bool(shift.any()), bool((scale != 1.0).any())
        step = min(self.X.shape[0], max(1, buffer.size // width))
        if self.as_it_lies and together is not None and self.root is None and not shifted and not scaled:
            return self.X[:, together], ((rows, rows) for rows in self._rows(step))
        flat = buffer[: step * width]
        base = flat.reshape(width, step).T if self.by_column else flat.reshape(step, width)
        source = columns if together is None else together
        return base, self._copies(base, source, shift if shifted else None, scale if scaled else None)

    def _rows(self, step: int) -> Iterator[slice]:
        n = self.X.shape[0]
        return (slice(a, min(a + step, n)) for a in range(0, n, step))

    def _copies(
        self, base: Array, source: Array | slice, shift: Array | None, scale: Array | None
    ) -> Iterator[tuple[slice, slice]]:
        """Copy tiles one after another."""
        for rows in self._rows(base.shape[0]):
            inside = slice(0, rows.stop - rows.start)
            tile = base[inside]
            part = self.X[rows, source] if isinstance(source, slice) else columns_of(self.X[rows], source)
            if shift is not None and part.dtype == np.float64:
                np.subtract(part, shift, out=tile)
            else:
                # converted first: arithmetic on mixed types is slow
                tile[...] = part
                if shift is not None:
                    tile -= shift
            if scale is not None:
                tile *= scale
            if self.root is not None:
                tile *= self.root[rows, None]
            yield rows, inside


class Segment(NamedTuple):
    """Neighbouring groups of equal size: the first one, their number, their size, and how many are multiplied together.

    Groups without a Gram block are segments of single columns, with `squares` only.
    """

    first: int
    n_groups: int
    size: int
    together: int
    squares: bool

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.n_groups * self.size


def segments(sizes: Array, largest: int, n: int, *, by_column: bool) -> tuple[list[list[Segment]], int]:
    """Divide all groups into segments, one list per panel of columns; and the size of a tile.

    Groups larger than `largest` get no Gram block.
    """
    edges = np.concatenate([[0], np.flatnonzero(np.diff(sizes)) + 1, [sizes.size]])
    tile = TILE if sizes.size >= WIDTH * (edges.size - 1) else LARGE_TILE
    # contiguous columns are long enough anyway
    wide = max(WIDTH, tile // n) if by_column else max(LONG, tile // n)
    panels: list[list[Segment]] = [[]]
    room = wide
    for a, b in pairwise(edges.tolist()):
        for segment in _cut(a, b - a, int(sizes[a]), largest, wide):
            if segment.width > room and panels[-1]:
                panels.append([])
                room = wide
            panels[-1].append(segment)
            room -= segment.width
    return panels, tile


def _cut(first: int, count: int, size: int, largest: int, wide: int) -> Iterator[Segment]:
    """Cut consecutive groups of equal size into segments no wider than a panel."""
    if size == 1 or size > largest:
        for a in range(0, count * size, wide):
            yield Segment(first + a // size, min(wide, count * size - a), 1, 1, True)
        return
    if size == 0:
        return
    together = min(count, max(1, WIDTH // size))
    step = max(1, wide // (together * size)) * together
    even = count // together * together
    for a in range(0, even, step):
        yield Segment(first + a, min(step, even - a), size, together, False)
    if even < count:
        yield Segment(first + even, count - even, size, count - even, False)


def segment_sums(
    reading: Reading, panel: list[Segment], columns: Array, shift: Array, scale: Array, buffer: Array
) -> tuple[Array, list[Array]]:
    """Sums of a panel's columns, without and with y; and the Gram blocks or squares of every segment.

    Shapes are (2, columns), and (groups, size, size) or (groups,).
    """
    sums = np.zeros((2, columns.size))
    base, tiles = reading.tiles(columns, shift, scale, buffer)
    products: list[_Squares | _Grams] = []
    left = 0
    for segment in panel:
        part = base[:, left : left + segment.width]
        products.append(_Squares(part) if segment.squares else _Grams(part, segment))
        left += segment.width
    for rows, inside in tiles:
        sums += reading.sides[:, rows] @ base[inside]
        for product in products:
            product.add(inside)
    return sums, [product.blocks() for product in products]


class _Squares:
    """Sums of squares of columns."""

    def __init__(self, base: Array) -> None:
        self.base, self.total = base, np.zeros(base.shape[1])

    def add(self, rows: slice) -> None:
        part = self.base[rows]
        self.total += np.einsum("ij,ij->j", part, part)

    def blocks(self) -> Array:
        return self.total


class _Grams:
    """Gram blocks of neighbouring groups, a few groups at a time."""

    def __init__(self, base: Array, segment: Segment) -> None:
        self.segment = segment
        count, width = segment.n_groups // segment.together, segment.together * segment.size
        row, column = base.strides
        self.total = np.zeros((count, width, width))
        self.right = base[None]
        if count > 1:
            self.right = as_strided(base, (count, base.shape[0], width), (width * column, row, column))
        self.left = None
        if count > 1 and width <= NARROW:
            # one more column on the left makes BLAS use a general product, whose last row is ignored
            self.left = as_strided(base, (count - 1, width + 1, base.shape[0]), (width * column, column, row))

    def add(self, rows: slice) -> None:
        right = self.right[:, rows]
        if self.left is None:
            self.total += right.transpose(0, 2, 1) @ right
        else:
            self.total[:-1] += (self.left[:, :, rows] @ right[:-1])[:, :-1]
            self.total[-1] += right[-1].T @ right[-1]

    def blocks(self) -> Array:
        """The blocks of single groups, extracted from the blocks of several together."""
        together, size = self.segment.together, self.segment.size
        if together == 1:
            return self.total
        square = self.total.reshape(-1, together, size, together, size)
        return square.diagonal(axis1=1, axis2=3).transpose(0, 3, 1, 2).reshape(-1, size, size)
