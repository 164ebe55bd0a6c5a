"""Dask arrays and DataFrames: blocks of rows that are computed on the active scheduler.

Each operation is one task per chunk and a tree of combinations; only small results are returned. The order in which
results are combined is fixed, so they do not depend on which worker computed what, or whether one was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask import delayed
from dask.delayed import Delayed

from covey.cluster import WorkersLostError, compute, first_failure
from covey.designs.dense import DenseDesign
from covey.designs.protocol import Design
from covey.designs.row_blocks import RowBlocks, float_type
from covey.designs.sparse import SparseDesign
from covey.layout import offsets
from covey.validation import Array, Dtype, name_columns

T = TypeVar("T")

# The number of results that one task combines: a tree this wide keeps every sum small and every worker busy.
FAN_IN = 8


def wrap(X: Any, *, name: str = "X") -> DaskDesign:
    """The design of a Dask array or DataFrame."""
    if isinstance(X, da.Array):
        return DaskDesign(X, name=name)
    if hasattr(type(X), "to_dask_array") and X.ndim == 2:
        columns = tuple(map(str, X.columns))
        odd = [j for j, dtype in enumerate(X.dtypes) if dtype.kind not in "fiub"]
        if odd:
            kinds = ", ".join(sorted({str(X.dtypes.iloc[j]) for j in odd}))
            raise ValueError(
                f"{name} is a Dask DataFrame with dtype {kinds} in {name_columns(odd, columns)}; numbers are needed: "
                "encode text first (dask.dataframe.get_dummies)."
            )
        X = X if all(dtype in (np.float32, np.float64) for dtype in X.dtypes) else X.astype("float64")
        return DaskDesign(X.to_dask_array(), columns=columns, name=name)
    raise ValueError(
        f"{name} is a {type(X).__module__}.{type(X).__name__}; Dask arrays and DataFrames with two dimensions are "
        "supported: convert it with dask.array.from_delayed, Bag.to_dataframe or Series.to_frame."
    )


class ChunkError(ValueError):
    """A chunk that cannot be used; the message names it."""


class DaskDesign(RowBlocks):
    """A Dask array behind the `Design` protocol.

    Persist it first (``X = X.persist()``) if the cluster has the memory: otherwise every pass computes its chunks
    again.

    Parameters
    ----------
    X : dask.array.Array, shape (n, p)
        Numbers other than float32 become float64. Chunks of unknown length are measured once. Chunks that do not span
        all columns are merged. They may be scipy's sparse matrices.
    columns : sequence of str or None
        Column names, for messages and groups.
    name : str
        The name of X in messages.
    """

    def __init__(self, X: da.Array, *, columns: Sequence[str] | None = None, name: str = "X") -> None:
        if X.ndim != 2:
            raise ValueError(f"{name} must have two dimensions (rows, columns), not shape {X.shape}.")
        kind = float_type(X.dtype, None, name)
        X = _measured(X if kind == X.dtype else X.astype(kind), name)
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        if 0 in X.shape:
            raise ValueError(f"{name} is empty: shape {X.shape}.")
        super().__init__(X.shape, kind, where=name, columns=None if columns is None else tuple(columns), name=name)
        self.chunks = []
        for i, (a, b) in enumerate(pairwise(offsets(X.chunks[0]).tolist())):
            title = f"Chunk {i} of {name} (rows {a} to {b - 1})"
            self.chunks.append(_Chunk(name, title, slice(a, b), self.shape[1], self.dtype, self.columns))
        self.tasks = list(X.to_delayed().ravel())

    def map_blocks(
        self, function: Callable[..., T], *vectors: Array, combine: Callable[[list[T]], T] | None = None
    ) -> list[T]:
        """``function(block, *vectors of its rows)`` for every chunk that has rows, on the scheduler."""
        self.n_passes += 1
        # sent to the cluster once, not once per chunk
        function = delayed(function, traverse=False)
        parts = [
            delayed(_on_chunk)(function, task, chunk, [vector[chunk.rows] for vector in vectors])
            for task, chunk in zip(self.tasks, self.chunks, strict=True)
            if chunk.rows.start < chunk.rows.stop
        ]
        if combine is not None:
            combine = delayed(combine, traverse=False)
            while len(parts) > 1:
                parts = [delayed(_combined)(combine, parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
        return self._compute(delayed(list)(parts))

    def _compute(self, tasks: Delayed) -> list[T]:
        """The values of tasks; if a chunk cannot be read, the error names it."""
        lengths = (delayed(_length)(task) for task in self.tasks)
        return _named(lambda: compute(tasks)[0], lengths, lambda i: self.chunks[i].title)


class _Chunk(NamedTuple):
    """The names of X and of a chunk in messages, its rows, and what it is expected to hold."""

    name: str
    title: str
    rows: slice
    n_columns: int
    dtype: Dtype
    columns: Sequence[str] | None

    def open(self, block: Array | sp.sparray) -> Design:
        """The chunk as a design; an error names it if it is not as expected."""
        block = block if sp.issparse(block) else np.asarray(block)
        if block.dtype != self.dtype:
            raise ValueError(
                f"{self.title} holds {block.dtype}, but {self.name} was declared as {self.dtype}; "
                f"convert it where it is read, or with {self.name}.astype('float64')."
            )
        expected = (self.rows.stop - self.rows.start, self.n_columns)
        if block.shape != expected:
            raise ValueError(f"{self.title} has shape {block.shape}, not {expected} as declared.")
        return (SparseDesign if sp.issparse(block) else DenseDesign)(block, columns=self.columns, name=self.title)


def _on_chunk(function: Callable[..., T], block: Array, chunk: _Chunk, vectors: list[Array]) -> T:
    """One task: a function of a chunk and of its rows of some vectors."""
    try:
        return function(chunk.open(block), *vectors)
    except ValueError as error:
        raise ChunkError(str(error)) from error


def _combined(combine: Callable[[list[T]], T], parts: list[T]) -> T:
    """One task: combine the results of several chunks."""
    return combine(parts)


def _length(block: Array) -> int:
    return int(block.shape[0])


def _measured(array: da.Array, name: str) -> da.Array:
    """The array with known chunk lengths, which DataFrames do not have."""
    if not np.isnan(array.shape[0]):
        return array
    # the first of several chunks side by side is enough
    tasks = [delayed(_length)(np.ravel(side)[0]) for side in array.to_delayed()]
    lengths = _named(lambda: compute(*tasks), tasks, lambda i: f"Chunk {i} of {name}")
    return da.Array(array.dask, array.name, (lengths, *array.chunks[1:]), meta=array._meta)


def _named(values: Callable[[], T], chunks: Iterable[Delayed], title: Callable[[int], str]) -> T:
    """Computed values; if that fails because a chunk cannot be read, the error names the chunk."""
    try:
        return values()
    except (WorkersLostError, ChunkError):
        raise
    except Exception as error:
        failure = first_failure(list(chunks))
        if failure is None:
            raise
        i, reason = failure
        raise ChunkError(f"{title(i)} cannot be read: {type(reason).__name__}: {reason}") from error
