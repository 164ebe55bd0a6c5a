"""X in blocks of rows: everything that the method needs from X is computed block by block and combined.

A block is an ordinary design by itself. Its results are small (numbers per column, or per pair of some columns), so
only those and the row vectors travel between the blocks and this process. Files are read block after block, as many
rows at a time as fit a memory budget; `covey.designs.dask` runs the blocks on a scheduler instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from covey.designs.dense import DenseDesign
from covey.designs.moments import Moments, block_offsets, outer_products
from covey.designs.protocol import Design, Models
from covey.validation import Array, Dtype, whole

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

T = TypeVar("T")

# The default memory for row blocks, in bytes: large enough for full speed of disk and arithmetic.
MEMORY_BUDGET = 2**28

# Blocks in memory at a time: one in use, one being read, and up to two copies (part of the rows, or another precision).
BLOCKS_AT_A_TIME = 4


class RowBlocks(Design):
    """A matrix in blocks of rows behind the `Design` protocol, each operation in one pass.

    A kind of file says how rows are read (`read`), or all blocks one after another (`stream`); results take memory
    besides the budget, in bytes. Where blocks are elsewhere, `map_blocks` is another.
    """

    reads_columns = False

    def __init__(
        self,
        shape: Sequence[int],
        stored: Dtype,
        dtype: DTypeLike | None = None,
        *,
        where: str,
        memory_budget: int = MEMORY_BUDGET,
        columns: Sequence[str] | None,
        name: str,
    ) -> None:
        if len(shape) != 2 or 0 in shape:
            raise ValueError(f"{where} has shape {tuple(shape)}; it must have two dimensions, rows and columns.")
        if columns is not None and len(columns) != shape[1]:
            raise ValueError(f"There are {len(columns)} names in columns=; {where} has {shape[1]} columns.")
        super().__init__(shape, float_type(stored, dtype, where), columns=columns, name=name)
        self.memory_budget = whole(memory_budget, "memory_budget")
        # if address space is limited (``ulimit -v``), keep Arrow, which pandas uses, from reserving 1 GiB of it
        limited = resource is not None and resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
        if limited and (arrow := sys.modules.get("pyarrow")) is not None:
            arrow.set_memory_pool(arrow.system_memory_pool())

    # ------------------------------------------------------------------ blocks

    def read(self, start: int, stop: int) -> Array:
        """Rows start to stop as they are stored."""
        raise NotImplementedError(f"{type(self).__name__} must say how rows are read: implement read or stream.")

    def stream(self) -> Iterator[Array]:
        """All rows, block by block, as C-contiguous arrays of `dtype`."""
        n, step = self.shape[0], self.block_rows
        blocks = (self.read(a, min(a + step, n)) for a in range(0, n, step))
        return (np.ascontiguousarray(block, dtype=self.dtype) for block in blocks)

    def check(self) -> None:
        """Raise if the storage has changed; called before every pass."""

    @property
    def block_rows(self) -> int:
        """The number of rows per block."""
        n, p = self.shape
        return min(n, max(1, self.memory_budget // (BLOCKS_AT_A_TIME * p * self.dtype.itemsize)))

    def map_blocks(
        self, function: Callable[..., T], *vectors: Array, combine: Callable[[list[T]], T] | None = None
    ) -> list[T]:
        """``function(block, *vectors of its rows)`` for every block, as a list in order. One pass.

        A block is a `Design` with at least one row; the next one is read meanwhile. With `combine`, the results are
        combined, some neighbours at a time, into a list of a single one. The functions do not refer to the design, so
        that a scheduler can send them elsewhere.
        """
        self.check()
        self.n_passes += 1
        results: list[T] = []
        top, stream = 0, self.stream()
        with ThreadPoolExecutor(1) as reader:
            pending = reader.submit(next, stream, None)
            while (X := pending.result()) is not None:
                pending = reader.submit(next, stream, None)
                block, at = DenseDesign(X, columns=self.columns, name=self.name), slice(top, top + len(X))
                results.append(function(block, *(vector[at] for vector in vectors)))
                if combine is not None and len(results) > 1:
                    results = [combine(results)]
                top += len(X)
        return results

    # ------------------------------------------------------------------ operations

    def moments(self, y: Array, q: Array, members: Array, starts: Array, *, centre: bool, scale: Array) -> Moments:
        def of_block(block: Design, y: Array, q: Array) -> list[_Part]:
            weight = float(q.sum())
            if weight == 0:
                return []
            moments = block.moments(y, q / weight, members, starts, centre=centre, scale=scale)
            return [_Part(weight, float(q @ y) / weight, moments)]

        def together(parts: list[list[_Part]]) -> list[_Part]:
            found = [one for some in parts for one in some]
            return [_join(found, starts, scale)] if found else []

        ((total,),) = self.map_blocks(of_block, y, q, combine=together)
        return total.moments

    def correlate(self, R: Array) -> Array:
        return self._sum(lambda block, R: block.correlate(R.T), R.T)

    def take(self, columns: Array) -> NDArray[np.float64]:
        return np.concatenate(self.map_blocks(lambda block: block.take(columns)))

    def predict(self, columns: Array, coefs: Array, intercepts: Array) -> Array:
        return np.concatenate(self.map_blocks(lambda block: block.predict(columns, coefs, intercepts)))

    def gram_parts(self, columns: Array, shift: Array, y: Array, weights: Sequence[Array]) -> NDArray[np.float64]:
        return self._sum(
            lambda block, y, *weights: block.gram_parts(columns, shift, y, weights), y, *weights, dtype=np.float64
        )

    def residual_products(self, models: Models) -> Array:
        # the rows of y and of the weights travel with their blocks
        model = replace(models, y=models.y[:0], weights=(), kept=None)
        return self._sum(
            lambda block, y, *weights: block.residual_products(replace(model, y=y, weights=weights)),
            models.y,
            *models.weights,
        )

    def extremes(self, columns: Array, weight: Array) -> Array:
        def outermost(parts: list[Array]) -> Array:
            lows, highs, only = np.array(parts).transpose(1, 0, 2)
            low, high = lows.min(axis=0), highs.max(axis=0)
            # a block of rows without weight has no values: its least one is infinite
            ends = (
                (lows == low) | (lows == high) | (lows == np.inf),
                (highs == low) | (highs == high) | (lows == np.inf),
            )
            return np.stack([low, high, (only * ends[0] * ends[1]).all(axis=0)])

        return self.map_blocks(lambda block, weight: block.extremes(columns, weight), weight, combine=outermost)[0]

    def triangles(self, q: Array, pieces: list[Array], means: list[Array], gains: list[Array]) -> list[Array]:
        """The R factors of several sets of centred columns, from the stacked R factors of blocks."""

        def stacked(parts: list[list[Array]]) -> list[Array]:
            return [np.asarray(np.linalg.qr(np.concatenate(some), mode="r")) for some in zip(*parts, strict=True)]

        return self.map_blocks(lambda block, q: block.triangles(q, pieces, means, gains), q, combine=stacked)[0]

    def _sum(self, function: Callable[..., Array], *vectors: Array, dtype: DTypeLike | None = None) -> Array:
        """The sum of results over all blocks, added in double precision."""
        (total,) = self.map_blocks(function, *vectors, combine=lambda parts: np.sum(parts, axis=0, dtype=np.float64))
        return np.asarray(total, dtype=self.dtype if dtype is None else dtype)


class _Part(NamedTuple):
    """Moments of some rows about their means, their weight, and the mean of their responses."""

    weight: float
    y_mean: float
    moments: Moments


def _join(parts: list[_Part], starts: Array, scale: Array) -> _Part:
    """The moments of several parts of the rows together, about their common means."""
    weight = sum(part.weight for part in parts)
    first = parts[0].moments.mean
    # differences from the first part's means: exactly zero for a constant column
    mean = first + sum((part.weight / weight * (part.moments.mean - first) for part in parts), np.zeros_like(first))
    y_mean = sum(part.weight / weight * part.y_mean for part in parts)
    offsets = block_offsets(starts)
    variance, correlation, blocks = np.zeros(mean.size), np.zeros(mean.size), np.zeros(offsets[-1])
    with np.errstate(over="ignore", invalid="ignore"):
        for part in parts:
            share, moments = part.weight / weight, part.moments
            apart = (moments.mean - mean) * scale
            variance += share * (moments.variance + apart * apart)
            correlation += share * (moments.correlation + apart * (part.y_mean - y_mean))
            blocks += share * (moments.blocks + outer_products(apart, starts))
    return _Part(weight, y_mean, Moments(mean, variance, correlation, blocks, offsets))


class BackedDesign(RowBlocks):
    """Any object with `shape` and `dtype` whose rows ``stored[a:b]`` are an array or a scipy sparse matrix.

    This is what the X of a backed AnnData object is, or a dataset of h5py. It is only read. Blocks consist of complete
    chunks if the budget allows, so that a pass decompresses every chunk once.

    Parameters
    ----------
    stored : object
    columns : sequence of str, optional
    dtype : dtype, optional
        float32 or float64 to compute in; by default float32 if that is stored, otherwise float64.
    memory_budget : int
        Memory for row blocks, in bytes.
    name : str
        The name of X in messages.
    """

    def __init__(
        self,
        stored: Any,
        *,
        columns: Sequence[str] | None = None,
        dtype: DTypeLike | None = None,
        memory_budget: int = MEMORY_BUDGET,
        name: str = "X",
    ) -> None:
        for needed in ("shape", "dtype", "__getitem__"):
            if not hasattr(stored, needed):
                raise ValueError(f"{name} is a {type(stored).__name__} without {needed!r}: its rows cannot be read.")
        self.stored, self.where = stored, str(getattr(stored, "store_path", name))
        super().__init__(
            stored.shape, np.dtype(stored.dtype), dtype,
            where=self.where, memory_budget=memory_budget, columns=columns, name=name,
        )  # fmt: skip

    @property
    def block_rows(self) -> int:
        """The number of rows per block: complete chunks if they fit."""
        rows, (chunk, *_) = super().block_rows, getattr(self.stored, "chunks", None) or (1,)
        return min(self.shape[0], max(rows - rows % chunk, min(rows, chunk)))

    def read(self, start: int, stop: int) -> Array:
        try:
            rows = self.stored[start:stop]
            return np.asarray(rows.toarray() if sp.issparse(rows) else rows)
        except Exception as error:
            raise ValueError(f"{self.where}: rows {start} to {stop} cannot be read ({error}).") from error


def float_type(stored: Dtype, wanted: DTypeLike | None, where: str) -> Dtype:
    """The type to compute in: the one that the user wants, or float32 if that is stored, otherwise float64."""
    if stored.kind not in "fiub":
        raise ValueError(f"{where} holds {stored}, which are not real numbers.")
    by_default = np.float32 if stored.kind == "f" and stored.itemsize == 4 else np.float64
    chosen = np.dtype(by_default if wanted is None else wanted)
    if chosen not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, not {chosen}.")
    return chosen
