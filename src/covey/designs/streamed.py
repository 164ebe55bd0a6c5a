"""Designs on disk, read in row blocks that fit a memory budget, in as few passes as possible."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from covey.designs.protocol import Design, Moments
from covey.designs.rows import RESIDUALS, hash_rows, part_grams, weighted_residuals
from covey.designs.sums import RowSums, accumulate, row_sums
from covey.layout import columns_of
from covey.validation import whole

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

__all__ = ["MEMORY_BUDGET", "StreamedDesign", "float_type"]

Array = NDArray[Any]

# The default memory for row blocks, in bytes: large enough for full speed of disk and arithmetic.
MEMORY_BUDGET = 2**28

# Blocks in memory at a time: one in use, one being read, and up to two copies (part of the rows, or another precision).
BLOCKS_AT_A_TIME = 4


def float_type(stored: Any, wanted: DTypeLike | None, where: str) -> np.dtype[Any]:
    """The type to compute in: the stored type, or the one that the user wants."""
    if wanted is None:
        if stored in (np.float32, np.float64) and np.dtype(stored).isnative:
            return np.dtype(stored)
        raise ValueError(
            f"{where} holds {stored}, and covey computes in float32 or float64: give dtype='float32' or "
            "dtype='float64' to convert it as it is read, or write it again in one of these types."
        )
    chosen = np.dtype(wanted)
    if chosen not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, not {chosen}.")
    if isinstance(stored, np.dtype) and stored.kind not in "fiub":
        raise ValueError(f"{where} holds {stored}, which are not real numbers.")
    return chosen


def _spare_addresses() -> None:
    """If address space is limited (``ulimit -v``), keep Arrow, which pandas uses, from reserving 1 GiB of it."""
    arrow = sys.modules.get("pyarrow")
    limited = resource is not None and resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    if limited and arrow is not None:
        arrow.set_memory_pool(arrow.system_memory_pool())


class StreamedDesign(Design):
    """A matrix on disk behind the `Design` protocol, for storage that can read consecutive rows.

    ``n_passes`` counts the passes over the data. The next block is read while the current one is processed.

    Parameters
    ----------
    memory_budget : int
        Memory for row blocks, in bytes. Results take additional memory: 8 bytes per column of X and Gram row.
    columns, name
        As in `Design`.
    """

    reads_columns = False

    def __init__(self, *, memory_budget: int, columns: Sequence[str] | None, name: str) -> None:
        super().__init__(columns=columns, name=name)
        self.memory_budget = whole(memory_budget, "memory_budget")
        _spare_addresses()

    @abstractmethod
    def read(self, start: int, stop: int) -> Array:
        """Rows start to stop as a C-contiguous array of `dtype`."""

    def stream(self) -> Iterator[Array]:
        """All rows, block by block."""
        n, step = self.shape[0], self.block_rows
        for a in range(0, n, step):
            yield self.read(a, min(a + step, n))

    def check(self) -> None:
        """Raise if the storage has changed; called before every pass."""

    @property
    def block_rows(self) -> int:
        """The number of rows per block."""
        n, p = self.shape
        return min(n, max(1, self.memory_budget // (BLOCKS_AT_A_TIME * p * self.dtype.itemsize)))

    def blocks(self) -> Iterator[tuple[int, Array]]:
        """Every block with the position of its first row; the next block is read meanwhile. One pass."""
        self.check()
        self.n_passes += 1
        top, stream = 0, self.stream()
        with ThreadPoolExecutor(1) as reader:
            pending = reader.submit(next, stream, None)
            while (block := pending.result()) is not None:
                pending = reader.submit(next, stream, None)
                yield top, block
                top += block.shape[0]

    # ------------------------------------------------------------------ operations

    def moments(self, y: Array, q: Array, members: Array, starts: Array, *, centre: bool, scale: Array) -> Moments:
        """Means, variances, correlations with y and Gram blocks of the groups, of the columns times `scale`."""
        shift = self._some_row(q)[members] if centre else np.zeros(members.size)
        sums = RowSums.zero(starts)
        for at, X in self._used_rows(q):
            part = row_sums(X, y[at], q[at], members, starts, shift, scale)
            if not np.isfinite(part.total).all():
                self.refuse(np.flatnonzero(~np.isfinite(X).all(axis=0)))
            sums = sums + part
        return sums.moments(starts, shift, scale, centre=centre)

    def gram_rows(self, q: Array, columns: Array, loadings: Array, offset: Array) -> Array:
        """``Z' diag(q) X`` with ``Z = X[:, columns] loadings - offset``; shape (k, p). One pass."""
        # a row of X is subtracted from all rows, so that no digits are lost to the means of columns
        shift = self._some_row(q)[columns]
        offset = offset - shift @ loadings
        out = np.zeros((loadings.shape[1], self.shape[1]))
        for at, X in self._used_rows(q):
            Z = (X[:, columns] - shift) @ loadings - offset
            accumulate(Z * q[at, None], X, out)
        return out.astype(self.dtype, copy=False)

    def _used_rows(self, q: Array) -> Iterator[tuple[Array, Array]]:
        """The rows of positive weight and their positions, block by block."""
        for top, X in self.blocks():
            inside = np.flatnonzero(q[top : top + X.shape[0]] > 0)
            if inside.size:
                yield top + inside, X if inside.size == X.shape[0] else X[inside]

    def _some_row(self, q: Array) -> Array:
        """The row of largest weight, in float64."""
        row = int(np.argmax(q))
        values = self.read(row, row + 1)[0].astype(np.float64)
        self.refuse(np.flatnonzero(~np.isfinite(values)))
        return values

    def correlate(self, R: Array) -> Array:
        """The product ``R X`` for R of shape (k, n); shape (k, p)."""
        out = np.zeros((R.shape[0], self.shape[1]))
        for top, X in self.blocks():
            out += R[:, top : top + X.shape[0]].astype(self.dtype) @ X
        return out.astype(self.dtype, copy=False)

    def take(self, columns: Array) -> Array:
        """Some columns as a dense float64 array, shape (n, k). One pass."""
        out = np.empty((self.shape[0], columns.size))
        for top, X in self.blocks():
            out[top : top + X.shape[0]] = X[:, columns]
        return out

    def row_keys(self, columns: Array) -> Array:
        """A 64-bit hash of some columns of each row, shape (n,). One pass."""
        return np.concatenate([hash_rows(columns_of(X, columns), columns) for _, X in self.blocks()])

    def predict(self, columns: Array, coefs: Array, intercepts: Array) -> Array:
        """``X[:, columns] coefs' + intercepts`` for several models as rows of `coefs`; shape (n, n_models)."""
        coefs = np.asarray(coefs)
        parts = [X[:, columns] @ coefs.T + intercepts for _, X in self.blocks()]
        return np.concatenate(parts)

    def residual_products(
        self, y: Array, weights: Sequence[Array], which: Array, columns: Array, coefs: Array, intercepts: Array
    ) -> Array:
        """``sum_i w_i (y_i - X[i, columns] coefs[j] - intercepts[j]) x_i`` with ``w = weights[which[j]]``; (m, p)."""
        out = np.zeros((len(coefs), self.shape[1]))
        step = max(1, RESIDUALS // max(1, len(coefs)))
        for top, X in self.blocks():
            for a in range(0, X.shape[0], step):
                rows = X[a : a + step]
                at = slice(top + a, top + a + rows.shape[0])
                own = columns_of(rows, columns)
                R = weighted_residuals(own, y[at], [w[at] for w in weights], which, coefs, intercepts)
                accumulate(R.T, rows, out)
        return out.astype(self.dtype, copy=False)

    def gram_parts(self, columns: Array, shift: Array, y: Array, weights: Sequence[Array]) -> Array:
        """``A' diag(w) A`` with ``A = [1, X[:, columns] - shift, y]`` for every w; (n_parts, k + 2, k + 2)."""
        out = np.zeros((len(weights), columns.size + 2, columns.size + 2))
        for top, X in self.blocks():
            at = slice(top, top + X.shape[0])
            out += part_grams(columns_of(X, columns), shift, y[at], [w[at] for w in weights])
        return out

    def triangles(self, q: Array, pieces: list[Array], means: list[Array], gains: list[Array]) -> list[Array]:
        """The R factors of several sets of centred columns, updated block by block. One pass."""
        out = [np.empty((0, piece.size)) for piece in pieces]
        for top, X in self.blocks():
            root = np.sqrt(q[top : top + X.shape[0]])[:, None]
            for i, (piece, mean, gain) in enumerate(zip(pieces, means, gains, strict=True)):
                Z = (X[:, piece] - mean) * gain * root
                out[i] = np.asarray(np.linalg.qr(np.concatenate([out[i], Z]), mode="r"))
        return out

    def extremes(self, columns: Array, weight: Array) -> Array:
        """The least and the largest value of some columns over the rows of positive weight; shape (2, k)."""
        low, high = np.full(columns.size, np.inf), np.full(columns.size, -np.inf)
        for top, X in self.blocks():
            own = columns_of(X, columns)[weight[top : top + X.shape[0]] > 0]
            np.minimum(low, own.min(axis=0, initial=np.inf), out=low)
            np.maximum(high, own.max(axis=0, initial=-np.inf), out=high)
        return np.stack([low, high])

    def largest(self) -> Array:
        """The largest absolute value of each column, shape (p,)."""
        out = np.zeros(self.shape[1])
        for _, X in self.blocks():
            np.maximum(out, np.maximum(X.max(axis=0), -X.min(axis=0)), out=out)
        return out
