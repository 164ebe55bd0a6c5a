"""Columns copied from another design, in blocks, so that more can be added without copying."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["GatheredColumns"]

Array = NDArray[Any]


class GatheredColumns:
    """A copy of some columns of a dense array, for the engine's work between two passes over X.

    It has the part of the `Design` protocol that is needed there: `correlate`, `gram_rows` and `take`.
    """

    reads_columns = True
    batch_columns = 40
    on_device = False

    def __init__(self, blocks: list[Array]) -> None:
        self.blocks = blocks
        self.starts = np.concatenate([[0], np.cumsum([block.shape[1] for block in blocks])])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.blocks[0].shape[0], int(self.starts[-1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the original array."""
        return self.blocks[0].dtype

    def join(self, other: GatheredColumns) -> GatheredColumns:
        """The columns of both."""
        return GatheredColumns([*self.blocks, *other.blocks])

    def correlate(self, R: Array) -> Array:
        """The product ``R X`` for R of shape (k, n); shape (k, p)."""
        R = np.ascontiguousarray(R, dtype=self.dtype)
        out = np.empty((R.shape[0], self.shape[1]), dtype=self.dtype)
        for block, a, b in zip(self.blocks, self.starts[:-1], self.starts[1:], strict=True):
            np.matmul(R, block, out=out[:, a:b])
        return out

    def gram_rows(self, q: Array, columns: Array, loadings: Array, offset: Array) -> Array:
        """``Z' diag(q) X`` with ``Z = X[:, columns] loadings - offset``; shape (k, p)."""
        Z = self.take(columns) @ loadings - offset
        if offset.any():
            Z -= q @ Z  # round-off error left in the mean would be multiplied by the means of X
        return self.correlate(Z.T * q)

    def take(self, columns: Array) -> Array:
        """Some columns as a dense float64 array, shape (n, k)."""
        which = np.searchsorted(self.starts, columns, side="right") - 1
        out = np.empty((self.shape[0], columns.size))
        for b in np.unique(which):
            own = which == b
            out[:, own] = self.blocks[b][:, columns[own] - self.starts[b]]
        return out
