"""Dense arrays: C or Fortran order or any strided view, float32 or float64, never copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.designs.blocks import GatheredColumns
from covey.designs.kernels import gather_columns
from covey.designs.protocol import Design, Moments
from covey.designs.sums import row_sums

__all__ = ["DenseDesign"]

Array = NDArray[Any]

# Views that BLAS cannot read are copied this many numbers at a time (4 MiB of float64).
COPY_NUMBERS = 2**19


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
        n, p = X.shape
        self._in_blas_order = (X.strides[1] == X.itemsize and X.strides[0] >= p * X.itemsize) or (
            X.strides[0] == X.itemsize and X.strides[1] >= n * X.itemsize
        )
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
        shift = self.X[int(np.argmax(q))].astype(np.float64)[members] if centre else np.zeros(members.size)
        sums = row_sums(self.X, y, q, members, starts, shift, scale)
        if not np.isfinite(sums.total).all():
            # no culprit: sums merely overflowed
            self.refuse(np.flatnonzero(~np.isfinite(self.largest())))
        return sums.moments(starts, shift, scale, centre=centre)

    def correlate(self, R: Array) -> Array:
        """The product ``R X`` for R of shape (k, n); shape (k, p).

        Rows rather than columns of right-hand sides: this is the fast orientation of the product for X in C order,
        and the one in which Gram rows are stored.
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

    def multiply(self, coef: Array) -> Array:
        """The product ``X coef``; shape (n,)."""
        self.n_passes += 1
        return (self.X @ coef.astype(self.dtype, copy=False)).astype(np.float64, copy=False)

    def take(self, columns: Array) -> Array:
        """Some columns as a dense float64 array, shape (n, k)."""
        return self.X[:, columns].astype(np.float64, copy=False)

    def gather(self, columns: Array) -> GatheredColumns:
        """A copy of some columns, to work on between two looks at all of X."""
        out = np.empty((self.shape[0], columns.size), dtype=self.dtype)
        gather_columns(self.X, columns, self._by_column, out)
        return GatheredColumns([out])

    def predict(self, columns: Array, coefs: Array, intercepts: Array) -> Array:
        """``X[:, columns] coefs' + intercepts`` for several models as rows of `coefs`; shape (n, n_models)."""
        return self.X[:, columns] @ np.asarray(coefs).T + intercepts

    def largest(self) -> Array:
        """The largest absolute value of each column, shape (p,)."""
        return np.maximum(self.X.max(axis=0), -self.X.min(axis=0)).astype(np.float64)
