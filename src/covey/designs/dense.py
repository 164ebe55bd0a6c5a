"""Dense arrays in C or Fortran order, or any strided view, of float32 or float64; never copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.designs.dense_moments import dense_moments
from covey.designs.protocol import NORMS_AT_A_TIME, Design, Moments
from covey.designs.rows import part_grams, row_slices
from covey.layout import columns_of

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
        """Means, variances, correlations with y and Gram blocks of the groups, of the columns times `scale`."""
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
        """Some columns as a dense float64 array, shape (n, k)."""
        return columns_of(self.X, columns).astype(np.float64, copy=False)

    def predict(self, columns: Array, coefs: Array, intercepts: Array) -> Array:
        """``X[:, columns] coefs' + intercepts`` for several models as rows of `coefs`; shape (n, n_models)."""
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
        """The largest absolute value of each column, shape (p,)."""
        return np.maximum(self.X.max(axis=0), -self.X.min(axis=0)).astype(np.float64)
