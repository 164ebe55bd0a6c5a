"""X in blocks of rows: everything that the method needs from X is computed block by block and combined.

A block is an ordinary design by itself. Its results are small (numbers per column, or per pair of some columns), so
only those and the row vectors travel between the blocks and this process. `RowsOnDisk` runs the blocks one after
another here; `covey.designs.dask` runs them on a scheduler.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from covey.designs.dense import DenseDesign, outer_products
from covey.designs.protocol import Design, Moments, block_offsets
from covey.validation import Array, Dtype, whole

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

__all__ = ["MEMORY_BUDGET", "RowBlocks", "RowsOnDisk", "check_matrix", "float_type"]

T = TypeVar("T")

# The default memory for row blocks, in bytes: large enough for full speed of disk and arithmetic.
MEMORY_BUDGET = 2**28

# Blocks in memory at a time: one in use, one being read, and up to two copies (part of the rows, or another precision).
BLOCKS_AT_A_TIME = 4


class RowBlocks(Design):
    """A matrix in blocks of rows behind the `Design` protocol, each operation in one pass.

    Functions that are passed to `map_blocks` do not refer to the design, so that a scheduler can send them elsewhere.
    """

    reads_columns = False

    @abstractmethod
    def map_blocks(
        self, function: Callable[..., T], *vectors: Array, combine: Callable[[list[T]], T] | None = None
    ) -> list[T]:
        """``function(block, *vectors of its rows)`` for every block, as a list in order. One pass.

        A block is a `Design` with at least one row. With `combine`, the results are combined, some neighbours at a
        time, into a list of a single one.
        """

    def moments(self, y: Array, q: Array, members: Array, starts: Array, *, centre: bool, scale: Array) -> Moments:
        def of_block(block: Design, y: Array, q: Array) -> _PartMoments | None:
            weight = float(q.sum())
            if weight == 0:
                return None
            moments = block.moments(y, q / weight, members, starts, centre=centre, scale=scale)
            return _PartMoments(weight, float(q @ y) / weight, moments)

        def together(parts: list[_PartMoments | None]) -> _PartMoments | None:
            return _join([part for part in parts if part is not None], starts, scale)

        (total,) = self.map_blocks(of_block, y, q, combine=together)
        assert total is not None  # the weights add up to one
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

    def residual_products(
        self,
        y: Array,
        weights: Sequence[Array],
        which: Array,
        columns: Array,
        coefs: Array,
        intercepts: Array,
        kept: dict[str, Any] | None = None,
    ) -> Array:
        return self._sum(
            lambda block, y, *weights: block.residual_products(y, weights, which, columns, coefs, intercepts),
            y,
            *weights,
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

    def row_keys(self, columns: Array) -> NDArray[np.uint64]:
        return np.concatenate(self.map_blocks(lambda block: block.row_keys(columns)))

    def _sum(self, function: Callable[..., Array], *vectors: Array, dtype: DTypeLike | None = None) -> Array:
        """The sum of results over all blocks, added in double precision."""
        (total,) = self.map_blocks(function, *vectors, combine=_add)
        return total.astype(self.dtype if dtype is None else dtype, copy=False)


def _add(parts: list[Array]) -> Array:
    total = parts[0].astype(np.float64)
    for part in parts[1:]:
        total += part
    return total


@dataclass(frozen=True)
class _PartMoments:
    """Moments of some rows about their means, their weight, and the mean of their responses."""

    weight: float
    y_mean: float
    moments: Moments


def _join(parts: list[_PartMoments], starts: Array, scale: Array) -> _PartMoments | None:
    """The moments of several parts of the rows together, about their common means."""
    if len(parts) < 2:
        return parts[0] if parts else None
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
    return _PartMoments(weight, y_mean, Moments(mean, variance, correlation, blocks, offsets))


class RowsOnDisk(RowBlocks):
    """Row blocks that are read one after another, as many rows at a time as fit a memory budget.

    The next block is read while the current one is processed. Results take memory besides the budget, in bytes.
    """

    def __init__(
        self, shape: Sequence[int], dtype: DTypeLike, *, memory_budget: int, columns: Sequence[str] | None, name: str
    ) -> None:
        super().__init__(shape, dtype, columns=columns, name=name)
        self.memory_budget = whole(memory_budget, "memory_budget")
        _spare_addresses()

    def _stored(self, start: int, stop: int) -> Array:
        """Rows start to stop as they are stored; not needed where `stream` is another."""
        raise NotImplementedError

    def read(self, start: int, stop: int) -> Array:
        """Rows start to stop as a C-contiguous array of `dtype`."""
        return np.ascontiguousarray(self._stored(start, stop), dtype=self.dtype)

    def stream(self) -> Iterator[Array]:
        """All rows, block by block, as C-contiguous arrays of `dtype`."""
        return (self.read(start, stop) for start, stop in self.steps())

    def check(self) -> None:
        """Raise if the storage has changed; called before every pass."""

    @property
    def block_rows(self) -> int:
        """The number of rows per block."""
        n, p = self.shape
        return min(n, max(1, self.memory_budget // (BLOCKS_AT_A_TIME * p * self.dtype.itemsize)))

    def steps(self) -> Iterator[tuple[int, int]]:
        """The first row of every block, and the row after its last one."""
        n, step = self.shape[0], self.block_rows
        return ((a, min(a + step, n)) for a in range(0, n, step))

    def map_blocks(
        self, function: Callable[..., T], *vectors: Array, combine: Callable[[list[T]], T] | None = None
    ) -> list[T]:
        """``function(block, *vectors of its rows)`` for every block; the next block is read meanwhile."""
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


def check_matrix(shape: tuple[int, ...], columns: Sequence[str] | None, where: str) -> None:
    """Refuse stored arrays that are no matrix, and column names that are not theirs."""
    if len(shape) != 2 or 0 in shape:
        raise ValueError(f"{where} has shape {shape}; it must have two dimensions, rows and columns.")
    if columns is not None and len(columns) != shape[1]:
        raise ValueError(f"There are {len(columns)} names in columns=; {where} has {shape[1]} columns.")


def float_type(stored: str | Dtype, wanted: DTypeLike | None, where: str) -> Dtype:
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
