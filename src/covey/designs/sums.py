"""Sums over rows, from which moments are computed; sums over disjoint rows are additive."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.designs.protocol import LARGEST_BLOCK, Moments, block_offsets, diagonals
from covey.designs.tiles import Reading, segment_sums, segments
from covey.layout import alike, columns_of, gathered, run, scatter

__all__ = ["RowSums", "outer_products", "row_sums"]

Array = NDArray[Any]

# If group sizes change more often than this from one group to the next, and groups are small on average, it is faster
# to reorder groups by size than to multiply each group separately.
FEW_RUNS, SMALL_SIZE = 32, 10

# Scattered columns are copied into order this many numbers at a time (4 MiB), and at least this many rows.
GATHERED, FEW_ROWS = 2**19, 32


@dataclass(frozen=True)
class RowSums:
    """Weighted sums over some rows of shifted and scaled columns, in the groups' contiguous layout.

    Attributes
    ----------
    weight, response : float
        Sum of the weights, and of weight times y.
    total, cross : ndarray, shape (p,)
        Sums of the columns, and of the columns times y.
    blocks : ndarray
        Flattened Gram blocks, as in `Moments`.
    squares : ndarray, shape (p,)
        Sums of squares of the columns of groups without a block; zero elsewhere.
    """

    weight: float
    response: float
    total: NDArray[np.float64]
    cross: NDArray[np.float64]
    blocks: NDArray[np.float64]
    squares: NDArray[np.float64]

    def __add__(self, other: RowSums) -> RowSums:
        with np.errstate(over="ignore", invalid="ignore"):
            return RowSums(
                self.weight + other.weight,
                self.response + other.response,
                self.total + other.total,
                self.cross + other.cross,
                self.blocks + other.blocks,
                self.squares + other.squares,
            )

    def moments(self, starts: Array, shift: Array, scale: Array, *, centre: bool) -> Moments:
        """The moments of the columns."""
        block_starts = block_offsets(starts)
        blocks = self.blocks / self.weight
        mean, total = np.zeros(self.total.size), self.total / self.weight
        # sums of columns of extreme scale overflow, and are recomputed with a scale
        with np.errstate(over="ignore", invalid="ignore"):
            cross, squares = self.cross / self.weight, self.squares / self.weight
            if centre:
                # total is for the shifted, scaled columns
                mean = shift + total / scale
                blocks -= outer_products(total, starts)
                cross -= total * (self.response / self.weight)
                squares -= total * total
        variance = diagonals(blocks, block_starts, starts)
        large = np.isnan(variance) & np.repeat(np.diff(block_starts) == 0, np.diff(starts))
        variance[large] = np.maximum(squares[large], 0.0)
        return Moments(mean, variance, cross, blocks, block_starts)


def row_sums(X: Array, y: Array, q: Array, members: Array, starts: Array, shift: Array, scale: Array) -> RowSums:
    """The sums over all rows of a dense X, by panels of columns, in one pass."""
    p, sizes = members.size, np.diff(starts)
    if abs(X.strides[0]) >= abs(X.strides[1]) and run(members) is None:
        # columns are scattered in long rows: they are copied into order for some rows at a time
        step, ones = max(FEW_ROWS, GATHERED // p), np.arange(p)
        return reduce(
            RowSums.__add__,
            (
                row_sums(columns_of(X[a : a + step], members), y[at], q[at], ones, starts, shift, scale)
                for a in range(0, X.shape[0], step)
                for at in [slice(a, a + step)]
            ),
        )
    order = _order(sizes)
    at: Any = slice(None)
    if order is not None:
        sizes = sizes[order]
        ends = np.cumsum(sizes)
        at = np.repeat(starts[order] - ends + sizes, sizes) + np.arange(p)
    columns, shift, scale = members[at], shift[at], scale[at]
    block_starts = block_offsets(starts)
    ordered_starts = block_starts if order is None else block_starts[order]
    blocks, squares, sums = np.empty(block_starts[-1]), np.zeros(p), np.empty((2, p))
    reading, unit = Reading.of(X, y, q)
    panels, tile = segments(sizes, LARGEST_BLOCK, X.shape[0], by_column=reading.by_column)
    buffer = np.empty(tile)
    left = 0
    with np.errstate(over="ignore", invalid="ignore"):
        for panel in panels:
            right = left + sum(segment.width for segment in panel)
            inside = slice(left, right)
            sums[:, inside], grams = segment_sums(reading, panel, columns[inside], shift[inside], scale[inside], buffer)
            for segment, gram in zip(panel, grams, strict=True):
                if segment.squares and sizes[segment.first] > 1:
                    squares[left : left + segment.width] = gram
                else:
                    places = ordered_starts[segment.first : segment.first + segment.n_groups]
                    scatter(blocks, places, gram.reshape(segment.n_groups, -1))
                left += segment.width
        if order is not None:
            back = np.empty(p, dtype=np.intp)
            back[at] = np.arange(p)
            sums, squares = sums[:, back], squares[back]
        if unit != 1.0:
            sums, squares, blocks = sums * unit, squares * unit, blocks * unit
        return RowSums(float(q.sum()), float(q @ y), sums[0], sums[1], blocks, squares)


def _order(sizes: Array) -> NDArray[np.intp] | None:
    """An order in which groups of the same size are neighbours; None if reordering is not worthwhile."""
    n_runs = np.count_nonzero(np.diff(sizes)) + 1
    if n_runs > FEW_RUNS and sizes.sum() < SMALL_SIZE * n_runs:
        return np.argsort(sizes, kind="stable")
    return None


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
