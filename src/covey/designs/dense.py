"""Dense arrays in C or Fortran order, or any strided view, of float32 or float64; never copied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.designs.moments import Moments, dense_moments
from covey.designs.protocol import Design, row_slices
from covey.layout import columns_of, run
from covey.validation import Array, as_numeric_matrix, column_names

__all__ = ["DenseDesign", "wrap"]


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

    tile = 2**19  # views that BLAS cannot read are copied 4 MiB at a time

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
        self.refuse(members[~np.isfinite(moments.variance)], overflow=False)
        return moments

    def correlate(self, R: Array) -> Array:
        """The product ``R X`` for R of shape (k, n); shape (k, p).

        Right-hand sides are rows rather than columns: this orientation of the product is fast for X in C order, and
        Gram rows are stored this way.
        """
        if not self._in_blas_order:  # the product would copy all of X first
            return super().correlate(R)
        self.n_passes += 1
        return np.ascontiguousarray(R, dtype=self.dtype) @ self.X

    def gradient_norms(self, problem: Any, R: Array) -> NDArray[np.float64]:
        """As in `Design`; where neighbouring groups have neighbouring columns, their products never leave the cache."""
        if not self._in_blas_order or run(problem.layout.members) is None:
            return super().gradient_norms(problem, R)
        self.n_passes += 1
        R, out = np.ascontiguousarray(R, dtype=self.dtype), np.empty((len(R), problem.ranks.size))
        for groups, columns in problem.tiles(len(R)):
            out[:, groups] = problem.norms_of(groups, R @ self.X[:, columns])
        return out

    def take(self, columns: Array) -> NDArray[np.float64]:
        return columns_of(self.X, columns).astype(np.float64, copy=False)

    def _pieces(self, columns: Array) -> Iterator[tuple[slice, Array]]:
        for rows in row_slices(self.shape[0], columns.size):
            yield rows, columns_of(self.X[rows], columns)

    def largest(self) -> NDArray[np.float64]:
        return np.maximum(self.X.max(axis=0), -self.X.min(axis=0)).astype(np.float64)
