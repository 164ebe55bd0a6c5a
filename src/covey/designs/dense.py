"""Dense arrays: C or Fortran order or any strided view, float32 or float64, never copied."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.designs.blocks import GatheredColumns
from covey.designs.kernels import PANEL_COLUMNS, PANEL_ROWS, gather_columns, panel_moments, recentre_blocks
from covey.designs.protocol import Design, Moments, block_offsets, diagonals

__all__ = ["DenseDesign"]

Array = NDArray[Any]


class DenseDesign(Design):
    """A numpy array behind the `Design` protocol.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n, p)
        Kept by reference.
    columns : sequence of str or None
        Column names, for messages.
    name : str
        What messages call X.
    """

    def __init__(self, X: Array, *, columns: Sequence[str] | None = None, name: str = "X") -> None:
        super().__init__(columns=columns, name=name)
        self.X = X
        self._by_column = abs(X.strides[0]) < abs(X.strides[1])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.X.shape[0], self.X.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        return self.X.dtype

    def moments(self, y: Array, q: Array, members: Array, starts: Array, *, centre: bool, scale: Array) -> Moments:
        """Means, variances, correlations with y and Gram blocks of the groups, of the columns times `scale`.

        The pass subtracts the row of largest weight from every row, so that a constant column gives exact zeros and
        a column of large mean loses at most a factor n of precision: that row lies within ``sqrt(n)`` standard
        deviations of the mean.
        """
        self.n_passes += 1
        p = members.size
        shift = self.X[int(np.argmax(q))].astype(np.float64)[members] if centre else np.zeros(p)
        total, cross = np.zeros(p), np.zeros(p)
        block_starts = block_offsets(starts)
        blocks = np.empty(block_starts[-1])
        in_order = bool(np.array_equal(members, np.arange(p)))
        edges, root_q = _panel_edges(starts), np.sqrt(q)
        for l0, l1 in pairwise(edges):
            width = max(1, int(np.sqrt(np.diff(block_starts[l0 : l1 + 1]).max()) + 0.5))
            span = int(starts[l1] - starts[l0])
            panel_moments(
                self.X, self._by_column, in_order, members, starts, l0, l1, block_starts,
                shift, scale, root_q, y, total, cross, blocks,
                np.zeros((width, span)), np.zeros((PANEL_ROWS, span + width)),
            )  # fmt: skip
        if not np.isfinite(total).all():
            # no culprit: sums merely overflowed
            self.refuse(np.flatnonzero(~np.isfinite(self.largest())))
        # total belongs to the shifted, scaled columns
        mean = shift + total / scale if centre else np.zeros(p)
        if centre:
            recentre_blocks(blocks, block_starts, starts, total)
            cross -= total * (q @ y)
        variance = diagonals(blocks, block_starts, starts)
        with np.errstate(over="ignore", invalid="ignore"):
            for l in np.flatnonzero(np.diff(block_starts) == 0):
                a, b = starts[l], starts[l + 1]
                Z = (self.take(members[a:b]) - mean[a:b]) * scale[a:b]
                variance[a:b] = q @ (Z * Z)
        return Moments(mean, variance, cross, blocks, block_starts)

    def correlate(self, R: Array) -> Array:
        """The product ``R X`` for R of shape (k, n); shape (k, p).

        Rows rather than columns of right-hand sides: this is the fast orientation of the product for X in C order,
        and the one in which Gram rows are stored.
        """
        self.n_passes += 1
        return np.ascontiguousarray(R, dtype=self.dtype) @ self.X

    def take(self, columns: Array) -> Array:
        """Some columns as a dense float64 array, shape (n, k)."""
        return self.X[:, columns].astype(np.float64, copy=False)

    def gather(self, columns: Array) -> GatheredColumns:
        """A copy of some columns, to work on between two looks at all of X."""
        out = np.empty((self.shape[0], columns.size), dtype=self.dtype)
        gather_columns(self.X, columns, self._by_column, out)
        return GatheredColumns([out])

    def largest(self) -> Array:
        """The largest absolute value of each column, shape (p,)."""
        return np.maximum(self.X.max(axis=0), -self.X.min(axis=0)).astype(np.float64)


def _panel_edges(starts: Array) -> list[int]:
    """Consecutive runs of whole groups, about a panel of columns each."""
    n_groups = starts.size - 1
    edges = [0]
    while edges[-1] < n_groups:
        a = edges[-1]
        b = int(np.searchsorted(starts, starts[a] + PANEL_COLUMNS, side="right")) - 1
        edges.append(min(max(b, a + 1), n_groups))
    return edges
