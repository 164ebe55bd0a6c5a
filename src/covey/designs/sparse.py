"""scipy's sparse matrices: centred and orthonormalised through the stored values, never converted to a dense array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from covey.designs.moments import Moments, block_offsets
from covey.designs.protocol import Design, row_slices
from covey.validation import Array, check_sparse


def wrap(X: object, *, name: str = "X") -> SparseDesign:
    """The design of a scipy sparse matrix or array."""
    if not sp.issparse(X):
        raise ValueError(
            f"{name} is a {type(X).__module__}.{type(X).__name__}: pass {name}.toarray() or a sparse matrix."
        )
    return SparseDesign(X, name=name)


class SparseDesign(Design):
    """A scipy sparse matrix behind the `Design` protocol.

    It takes the memory of the stored values in column order (a CSC matrix is kept by reference, other formats are
    converted once), plus the awake columns times the number of rows or columns, whichever is less.

    Parameters
    ----------
    X : scipy sparse matrix or array, shape (n, p)
        CSC or CSR, float32 or float64. Other formats are converted, integers to float64.
    columns : sequence of str or None
        Column names, for messages.
    name : str
        The name of X in messages.
    """

    def __init__(self, X: sp.sparray | sp.spmatrix, *, columns: Sequence[str] | None = None, name: str = "X") -> None:
        if X.ndim != 2:
            raise ValueError(f"{name} must have two dimensions (rows, columns), not shape {X.shape}.")
        if 0 in X.shape:
            raise ValueError(f"{name} is empty: shape {X.shape}.")
        if X.dtype.kind not in "fiub":
            raise ValueError(f"{name} must hold real numbers, not {X.dtype}; complex data not supported.")
        check_sparse(X, name)
        stored = sp.csc_array(X)
        if stored.dtype not in (np.float32, np.float64):
            stored = stored.astype(np.float64)
        if not stored.has_canonical_format:
            stored = stored.copy() if np.shares_memory(stored.data, getattr(X, "data", stored.data)) else stored
            stored.sum_duplicates()
        super().__init__(stored.shape, stored.dtype, columns=columns, name=name)
        self.X = stored
        self.reads_columns = self.shape[0] <= self.shape[1]

    def moments(self, y: Array, q: Array, members: Array, starts: Array, *, centre: bool, scale: Array) -> Moments:
        from covey.designs.kernels import sparse_moments  # compiled, so imported only for a sparse X

        self.n_passes += 1
        p, X = members.size, self.X
        block_starts = block_offsets(starts)
        mean, variance, cross = np.empty(p), np.zeros(p), np.zeros(p)
        blocks = np.empty(block_starts[-1])
        sparse_moments(
            X.indptr, X.indices, X.data, members, starts, block_starts, centre, scale, q, y,
            int(np.count_nonzero(q > 0)), float(q @ y), mean, variance, cross, blocks,
            np.empty(X.shape[0]), np.full(X.shape[0], -1, dtype=np.int64),
        )  # fmt: skip
        self.refuse(members[~np.isfinite(variance)], overflow=False)
        return Moments(mean / scale, variance, cross, blocks, block_starts)

    def correlate(self, R: Array) -> Array:
        self.n_passes += 1
        # sums are in double precision
        out = self.X.T @ np.ascontiguousarray(np.asarray(R).T, dtype=np.float64)
        return np.ascontiguousarray(out.T, dtype=self.dtype)

    def take(self, columns: Array) -> NDArray[np.float64]:
        dense: NDArray[np.float64] = self.X[:, columns].toarray().astype(np.float64, copy=False)
        return dense

    def _pieces(self, columns: Array) -> Iterator[tuple[slice, Array]]:
        some = self.X[:, columns].tocsr()
        return ((rows, some[rows].toarray()) for rows in row_slices(self.shape[0], columns.size))

    def predict(self, columns: Array, coefs: Array, intercepts: Array) -> Array:
        return self.X[:, columns] @ np.asarray(coefs).T + intercepts

    def extremes(self, columns: Array, weight: Array) -> Array:
        X, used = self.X[:, columns], weight > 0
        stored, column = used[X.indices], np.repeat(np.arange(columns.size), np.diff(X.indptr))
        value, column = X.data[stored], column[stored]
        zeros = np.bincount(column, minlength=columns.size) < np.count_nonzero(used)
        low, high = np.where(zeros, 0.0, np.inf), np.where(zeros, 0.0, -np.inf)
        np.minimum.at(low, column, value)
        np.maximum.at(high, column, value)
        only = ~(zeros & (low < 0) & (high > 0))
        only[column[(value != low[column]) & (value != high[column])]] = False
        return np.stack([low, high, only])

    def largest(self) -> NDArray[np.float64]:
        return abs(self.X).max(axis=0).toarray().astype(np.float64)

    def triangles(self, q: Array, pieces: list[Array], means: list[Array], gains: list[Array]) -> list[Array]:
        """The R factors of some centred columns; rows in which all of them are zero are merged into one."""
        out = []
        for piece, mean, gain in zip(pieces, means, gains, strict=True):
            part = self.X[:, piece]
            stored = np.unique(part.indices[q[part.indices] > 0])
            Z = (part.tocsr()[stored].toarray() - mean) * gain * np.sqrt(q[stored])[:, None]
            rest = q.sum() - q[stored].sum() if stored.size < np.count_nonzero(q > 0) else 0.0
            zeros = -np.sqrt(max(rest, 0.0)) * mean * gain
            out.append(np.asarray(np.linalg.qr(np.vstack([Z, zeros]), mode="r")))
        return out
