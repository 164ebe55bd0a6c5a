"""The pass over a dense X for the sums and Gram blocks of groups of one size, tile by tile.

A tile of X is read into the cache once and used for everything. It is a view of X where X can be multiplied as it
lies, and a small copy where columns are scattered, shifted, scaled, weighted, or not in double precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from covey.designs.pieces import run

__all__ = ["Reading", "Segment", "segment_sums", "segments"]

Array = NDArray[Any]

# A tile of 2^15 numbers is 256 KiB: it stays in a core's second-level cache. Where every group is multiplied by itself
# tiles are larger, and calls fewer.
TILE, LARGE_TILE = 2**15, 2**17
# The width of a tile of an X in C order, whose rows are then read fast.
LONG = 512
# Small groups are multiplied together, about this many columns at a time: what is computed between them costs less
# than more calls of BLAS.
WIDTH = 10
# Up to this many columns BLAS multiplies a matrix with its own transpose faster when it does not know that it does.
NARROW = 24


@dataclass(frozen=True)
class Reading:
    """How X is read: rows enter as ``sqrt(q) scale (x - shift)``.

    Attributes
    ----------
    X : ndarray, shape (n, p)
    sides : ndarray, shape (2, n)
        What columns are multiplied by for their sums: with and without the response.
    root : ndarray, shape (n,), or None
        ``sqrt(q)``; None where all weights are equal, and are left to the caller.
    by_column, as_it_lies : bool
        Whether columns rather than rows are contiguous, and whether BLAS can read X in double precision.
    """

    X: Array
    sides: Array
    root: Array | None
    by_column: bool
    as_it_lies: bool

    @classmethod
    def of(cls, X: Array, y: Array, q: Array) -> tuple[Reading, float]:
        """The reading, and what its results are to be multiplied by."""
        (n, p), (row, column) = X.shape, X.strides
        in_blas_order = (column == X.itemsize and row >= p * column) or (row == X.itemsize and column >= n * row)
        as_it_lies = bool(in_blas_order and X.dtype == np.float64)
        by_column = abs(row) < abs(column)
        if bool((q == q[0]).all()):
            return cls(X, np.stack([np.ones(n), y]), None, by_column, as_it_lies), float(q[0])
        root = np.sqrt(q)
        return cls(X, np.stack([root, root * y]), root, by_column, as_it_lies), 1.0

    def tiles(self, columns: Array, shift: Array, scale: Array, buffer: Array) -> Iterator[tuple[slice, Array]]:
        """Some columns of all rows, as many rows at a time as fit the buffer; that is overwritten where it is needed."""
        n, own, width = self.X.shape[0], run(columns), columns.size
        shifted, scaled = bool(shift.any()), bool((scale != 1.0).any())
        plain = self.as_it_lies and own is not None and self.root is None and not shifted and not scaled
        step = min(n, max(1, buffer.size // width))
        for a in range(0, n, step):
            rows = slice(a, min(a + step, n))
            part = self.X[rows, columns if own is None else own]
            if plain:
                yield rows, part
                continue
            flat = buffer[: part.size]
            tile = flat.reshape(width, -1).T if self.by_column else flat.reshape(-1, width)
            if shifted and part.dtype == np.float64:
                np.subtract(part, shift, out=tile)
            else:
                # converted first: arithmetic on two types takes a detour
                tile[...] = part
                if shifted:
                    tile -= shift
            if scaled:
                tile *= scale
            if self.root is not None:
                tile *= self.root[rows, None]
            yield rows, tile


class Segment(NamedTuple):
    """Neighbouring groups of one size: the first of them and how many, their size, and how many go together.

    Groups that get no Gram block are segments of single columns, with `squares` alone.
    """

    first: int
    count: int
    size: int
    together: int
    squares: bool

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.count * self.size


def segments(sizes: Array, largest: int, n: int, *, by_column: bool) -> tuple[list[list[Segment]], int]:
    """All groups in segments, those of a panel of columns in one list; and the size of a tile.

    Groups larger than `largest` get no Gram block.
    """
    edges = np.concatenate([[0], np.flatnonzero(np.diff(sizes)) + 1, [sizes.size]])
    tile = TILE if sizes.size >= WIDTH * (edges.size - 1) else LARGE_TILE
    # columns are long as they are
    wide = max(WIDTH, tile // n) if by_column else max(LONG, tile // n)
    panels: list[list[Segment]] = [[]]
    room = wide
    for a, b in pairwise(edges.tolist()):
        for own in _cut(a, b - a, int(sizes[a]), largest, wide):
            if own.width > room and panels[-1]:
                panels.append([])
                room = wide
            panels[-1].append(own)
            room -= own.width
    return panels, tile


def _cut(first: int, count: int, size: int, largest: int, wide: int) -> Iterator[Segment]:
    """A run of groups of one size in segments no wider than a panel."""
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
    reading: Reading, panel: list[Segment], columns: Array, shift: Array, scale: Array, buffers: tuple[Array, Array]
) -> tuple[Array, list[Array]]:
    """Sums of a panel's columns, with and without y; and of every segment the Gram blocks, or the squares.

    Shapes are (2, columns), and (groups, size, size) or (groups,).
    """
    sums = np.zeros((2, columns.size))
    totals = [
        np.zeros(own.count)
        if own.squares
        else np.zeros((own.count // own.together, own.together * own.size, own.together * own.size))
        for own in panel
    ]
    for rows, tile in reading.tiles(columns, shift, scale, buffers[0]):
        sums += reading.sides[:, rows] @ tile
        at = 0
        for own, total in zip(panel, totals, strict=True):
            part = tile[:, at : at + own.width]
            at += own.width
            if own.squares:
                flat = buffers[1][: part.size]
                squares = flat.reshape(own.width, -1).T if reading.by_column else flat.reshape(-1, own.width)
                np.multiply(part, part, out=squares)
                total += np.ones(part.shape[0]) @ squares
            else:
                _add_grams(total, part)
    return sums, [own_blocks(own, total) for own, total in zip(panel, totals, strict=True)]


def own_blocks(own: Segment, total: Array) -> Array:
    """The blocks of single groups out of those of several together."""
    if own.squares or own.together == 1:
        return total
    square = total.reshape(-1, own.together, own.size, own.together, own.size)
    return square.diagonal(axis1=1, axis2=3).transpose(0, 3, 1, 2).reshape(own.count, own.size, own.size)


def _add_grams(total: Array, tile: Array) -> None:
    """Add the products of runs of columns with themselves, shape (runs, width, width)."""
    count, width, _ = total.shape
    if count == 1:
        total[0] += tile.T @ tile
        return
    row, column = tile.strides
    right = tile.reshape(-1, count, width).transpose(1, 0, 2)
    if width > NARROW:
        total += right.transpose(0, 2, 1) @ right
        return
    # one more column on the left: BLAS takes the general product, of which the last row is not used
    left = as_strided(tile, (count - 1, width + 1, tile.shape[0]), (width * column, column, row))
    total[:-1] += (left @ right[:-1])[:, :-1]
    total[-1] += right[-1].T @ right[-1]
