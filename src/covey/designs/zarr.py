"""Zarr arrays: chunks on disk or in a store, read a stripe of rows at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from numpy.typing import DTypeLike

from covey.designs.row_blocks import MEMORY_BUDGET, BackedDesign
from covey.optional import optional
from covey.validation import one_of

if TYPE_CHECKING:
    from zarr import Array as ZarrArray


def wrap(X: ZarrArray, *, name: str = "X") -> ZarrDesign:
    """The design of a zarr array."""
    if not hasattr(X, "chunks") or not hasattr(X, "shape"):
        raise ValueError(f"{name} is a zarr {type(X).__name__}; pass one of its arrays, for instance {name}['...'].")
    return ZarrDesign(X, name=name)


class ZarrDesign(BackedDesign):
    """A two-dimensional Zarr array, streamed in row blocks.

    Blocks consist of complete chunks if the budget allows, so that a pass decompresses every chunk once.

    Parameters
    ----------
    source : zarr.Array, or path
    dtype : dtype, optional
        float32 or float64 to compute in, converted as blocks are read; by default float32 if the array holds that,
        otherwise float64.
    missing_chunks : {"error", "fill"}
        Zarr reads a missing chunk as the fill value, and writers may omit chunks of zeros. "error" treats a missing
        chunk as a sign of a damaged store.
    columns : sequence of str, optional
        Column names, for messages and groups.
    memory_budget : int
        Memory for row blocks, in bytes.
    name : str
        The name of X in messages.
    """

    def __init__(
        self,
        source: ZarrArray | str | Path,
        *,
        dtype: DTypeLike | None = None,
        missing_chunks: Literal["error", "fill"] = "error",
        columns: Sequence[str] | None = None,
        memory_budget: int = MEMORY_BUDGET,
        name: str = "X",
    ) -> None:
        self.missing_chunks = one_of(missing_chunks, ("error", "fill"), "missing_chunks")
        if isinstance(source, str | Path):
            with optional("Reading Zarr"):
                import zarr
            if not Path(source).exists():
                raise FileNotFoundError(f"There is no Zarr array {source}.")
            try:
                source = zarr.open_array(source, mode="r")
            except Exception as error:
                raise ValueError(f"{source} cannot be opened as a Zarr array ({error}).") from error
        super().__init__(source, columns=columns, dtype=dtype, memory_budget=memory_budget, name=name)
        self.check()

    def check(self) -> None:
        """Raise if chunks are missing; the first one is named if the store is a folder of files."""
        array, first = self.stored, ""
        missing = array.nchunks - array.nchunks_initialized
        if self.missing_chunks == "fill" or missing <= 0:
            return
        root = getattr(array.store, "root", None)
        if root is not None and getattr(array, "shards", None) is None:
            keys = map(array.metadata.encode_chunk_key, product(*map(range, array.cdata_shape)))
            absent = (f", the first one {key}" for key in keys if not (Path(root) / array.path / key).exists())
            first = next(absent, "")
        raise ValueError(
            f"{self.where}: {missing} of {array.nchunks} chunks are missing{first}. Write them again, or give "
            f"missing_chunks='fill' if they represent the fill value {array.fill_value}."
        )
