"""Sums over rows from which moments are made: those of disjoint rows add up."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.designs.kernels import PANEL_COLUMNS, PANEL_ROWS, panel_moments, recentre_blocks
from covey.designs.protocol import Moments, block_offsets, diagonals

__all__ = ["RowSums", "row_sums"]

Array = NDArray[Any]

# Columns of a large group whose squares are summed together.
SQUARE_COLUMNS = 256


@dataclass(frozen=True)
class RowSums:
    """Weighted sums over some rows of the columns, shifted and scaled, in the groups' contiguous layout.

    Attributes
    ----------
    weight, response : float
        Sum of the weights, and of weight times y.
    total, cross : ndarray, shape (p,)
        Sums of the columns, and of the columns times y.
    blocks : ndarray
        Gram blocks, flat, as in `Moments`.
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

    @classmethod
    def zero(cls, starts: Array) -> RowSums:
        """The sums over no rows."""
        p = int(starts[-1])
        return cls(0.0, 0.0, np.zeros(p), np.zeros(p), np.zeros(block_offsets(starts)[-1]), np.zeros(p))

    def moments(
        self, starts: Array, shift: Array, scale: Array, *, centre: bool, line: tuple[float, float] = (0.0, 1.0)
    ) -> Moments:
        """The moments, for the response ``line[0] + line[1] y``."""
        block_starts = block_offsets(starts)
        blocks = self.blocks / self.weight
        mean, total = np.zeros(self.total.size), self.total / self.weight
        # sums of columns of extreme scale overflow, and are asked for again with a scale
        with np.errstate(over="ignore", invalid="ignore"):
            cross = (line[0] * self.total + line[1] * self.cross) / self.weight
            squares = self.squares / self.weight
            if centre:
                # total belongs to the shifted, scaled columns
                mean = shift + total / scale
                recentre_blocks(blocks, block_starts, starts, total)
                cross -= total * (line[0] + line[1] * self.response / self.weight)
                squares -= total * total
        variance = diagonals(blocks, block_starts, starts)
        large = np.isnan(variance) & np.repeat(np.diff(block_starts) == 0, np.diff(starts))
        variance[large] = np.maximum(squares[large], 0.0)
        return Moments(mean, variance, cross, blocks, block_starts)


def row_sums(X: Array, y: Array, q: Array, members: Array, starts: Array, shift: Array, scale: Array) -> RowSums:
    """The sums over all rows of a dense X, panel by panel of columns, in one reading."""
    p = members.size
    total, cross, squares = np.zeros(p), np.zeros(p), np.zeros(p)
    block_starts = block_offsets(starts)
    blocks = np.empty(block_starts[-1])
    in_order = bool(np.array_equal(members, np.arange(p)))
    by_column = abs(X.strides[0]) < abs(X.strides[1])
    root_q = np.sqrt(q)
    for l0, l1 in pairwise(_panel_edges(starts)):
        width = max(1, int(np.sqrt(np.diff(block_starts[l0 : l1 + 1]).max()) + 0.5))
        span = int(starts[l1] - starts[l0])
        panel_moments(
            X, by_column, in_order, members, starts, l0, l1, block_starts, shift, scale, root_q, y,
            total, cross, blocks, np.zeros((width, span)), np.zeros((PANEL_ROWS, span + width)),
        )  # fmt: skip
    with np.errstate(over="ignore", invalid="ignore"):
        for l in np.flatnonzero(np.diff(block_starts) == 0):
            for a in range(int(starts[l]), int(starts[l + 1]), SQUARE_COLUMNS):
                own = slice(a, min(a + SQUARE_COLUMNS, int(starts[l + 1])))
                Z = (X[:, members[own]] - shift[own]) * scale[own]
                squares[own] = q @ (Z * Z)
    return RowSums(float(q.sum()), float(q @ y), total, cross, blocks, squares)


def _panel_edges(starts: Array) -> list[int]:
    """Consecutive runs of whole groups, about a panel of columns each."""
    n_groups = starts.size - 1
    edges = [0]
    while edges[-1] < n_groups:
        a = edges[-1]
        b = int(np.searchsorted(starts, starts[a] + PANEL_COLUMNS, side="right")) - 1
        edges.append(min(max(b, a + 1), n_groups))
    return edges
