"""Arrays in a file, `numpy.memmap` and .npy, read with ordinary reads rather than through a memory map."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from covey.designs.dense import wrap as dense
from covey.designs.protocol import Design
from covey.designs.row_blocks import MEMORY_BUDGET, RowBlocks
from covey.validation import Array, Dtype


def wrap(X: np.memmap, *, name: str = "X") -> Design:
    """The design of a `numpy.memmap`: streamed, unless it fits into the default budget and can stay mapped."""
    design = MemmapDesign(X, name=name)
    return dense(np.asarray(X), name=name) if X.nbytes <= MEMORY_BUDGET else design


class MemmapDesign(RowBlocks):
    """A matrix in a file, streamed in row blocks.

    Parameters
    ----------
    source : numpy.memmap, or path
        A memory-mapped array; or an .npy file; or, with `shape`, a raw file of numbers in C order. A path is never
        mapped, so a file larger than a limit on address space can be read.
    shape : (int, int), optional
        Rows and columns of a raw file.
    file_dtype : dtype
        The type of the numbers in a raw file.
    offset : int
        Bytes before the first number of a raw file.
    dtype : dtype, optional
        float32 or float64 to compute in, converted as blocks are read; by default float32 if the file holds that,
        otherwise float64.
    columns : sequence of str, optional
        Column names, for messages and groups.
    memory_budget : int
        Memory for row blocks, in bytes.
    name : str
        The name of X in messages.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> from covey import limit_path
    >>> from covey.designs import MemmapDesign
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 40))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "x.npy")
    ...     np.save(path, X)
    ...     design = MemmapDesign(path, memory_budget=2**14)
    ...     found = limit_path(design, X[:, :4].sum(axis=1), 4, max_groups=3)
    >>> design.block_rows, found.entered[0][0], design.n_passes
    (12, 0, 2)
    """

    def __init__(
        self,
        source: np.memmap | str | Path,
        *,
        shape: tuple[int, int] | None = None,
        file_dtype: DTypeLike = np.float64,
        offset: int = 0,
        dtype: DTypeLike | None = None,
        columns: Sequence[str] | None = None,
        memory_budget: int = MEMORY_BUDGET,
        name: str = "X",
    ) -> None:
        if isinstance(source, np.memmap):
            self.place = _in_memmap(source)
        elif shape is not None:
            self.place = _Place.in_order(Path(source), tuple(shape), np.dtype(file_dtype), int(offset))
        else:
            self.place = _in_npy(Path(source))
        super().__init__(
            self.place.shape, self.place.dtype, dtype,
            where=str(self.place.path or name), memory_budget=memory_budget, columns=columns, name=name,
        )  # fmt: skip
        self.check()
        if self.place.stride == 0 and self.place.mapped is None:  # columns are contiguous: rows are read through a map
            self.place = replace(self.place, mapped=np.load(str(self.place.path), mmap_mode="r"))

    def check(self) -> None:
        """Raise if the file is missing or too short: reading a map of it would crash the process."""
        place = self.place
        if place.path is None:
            return
        try:
            size = os.stat(place.path).st_size
        except FileNotFoundError:
            raise FileNotFoundError(f"{place.path}, which holds {self.name}, does not exist.") from None
        if size < place.end:
            raise ValueError(
                f"{place.path} is truncated: {self.shape[0]} rows of {self.shape[1]} {place.dtype} need "
                f"{place.end:,} bytes, and the file has {size:,}. Write it again."
            )

    def read(self, start: int, stop: int) -> Array:
        place, item = self.place, self.place.dtype.itemsize
        if place.mapped is not None:
            return place.mapped[start:stop]
        assert place.path is not None
        raw = np.empty((stop - start - 1) * place.stride + self.shape[1] * item, dtype=np.uint8)
        offset = place.offset + start * place.stride
        with place.path.open("rb") as file:
            file.seek(offset)
            if (n_read := file.readinto(raw.data)) < raw.size:
                end = f"{offset + n_read:,}"
                raise ValueError(f"{place.path} ends at byte {end}, in the middle of the array. Write it again.")
        return np.ndarray((stop - start, self.shape[1]), place.dtype, raw.data, 0, (place.stride, item))


@dataclass(frozen=True)
class _Place:
    """Where an array lies in a file."""

    path: Path | None
    # of the stored numbers
    shape: tuple[int, ...]
    dtype: Dtype
    # bytes before the first row, from one row to the next (0 if rows are not in one piece), and up to the end of the
    # last one
    offset: int
    stride: int
    end: int
    mapped: Array | None = None  # the mapped array, if rows cannot be read from the file directly

    @classmethod
    def in_order(cls, path: Path, shape: tuple[int, ...], dtype: Dtype, offset: int) -> _Place:
        """Numbers in C order from an offset on."""
        stride = (shape[1] if len(shape) > 1 else 1) * dtype.itemsize
        return cls(path, shape, dtype, offset, stride, offset + int(np.prod(shape)) * dtype.itemsize)


def _in_npy(path: Path) -> _Place:
    """The place of the array of an .npy file."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    with path.open("rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(file)
        except ValueError as error:
            raise ValueError(
                f"{path} is not an .npy file ({error}); give shape= and file_dtype= for raw numbers."
            ) from None
        place = _Place.in_order(path, shape, dtype, file.tell())
    return replace(place, stride=0) if fortran and len(shape) == 2 and min(shape) > 1 else place


def _in_memmap(X: np.memmap) -> _Place:
    """The place of a memmap, or of a view of one, in its file."""
    path = Path(X.filename) if X.filename is not None else None
    offset, source = 0, X._mmap  # type: ignore[attr-defined]
    if path is not None and isinstance(source, mmap.mmap):
        start = np.frombuffer(source, dtype=np.uint8).__array_interface__["data"][0]
        granularity = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY
        offset = X.__array_interface__["data"][0] - start + granularity
    rows_in_order = X.ndim == 2 and X.strides[1] == X.itemsize and X.strides[0] >= X.shape[1] * X.itemsize
    # other memory orders, and changes that are only in memory, need the map
    mapped = np.asarray(X) if path is None or not rows_in_order or X.mode == "c" else None
    ahead = sum((size - 1) * max(step, 0) for size, step in zip(X.shape, X.strides, strict=True))
    stride = X.strides[0] if rows_in_order else 0
    return _Place(path, X.shape, X.dtype, offset, stride, offset + ahead + X.itemsize, mapped)
