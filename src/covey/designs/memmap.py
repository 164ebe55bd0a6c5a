"""Arrays in a file, `numpy.memmap` and .npy, read with ordinary reads rather than through a memory map."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from covey.designs.dense import DenseDesign
from covey.designs.protocol import Design
from covey.designs.streamed import MEMORY_BUDGET, StreamedDesign, float_type

__all__ = ["MemmapDesign", "wrap"]

Array = NDArray[Any]


def wrap(X: np.memmap[Any, Any], *, name: str = "X") -> Design:
    """The design of a `numpy.memmap`: streamed, unless it fits into the default budget and can stay mapped."""
    design = MemmapDesign(X, name=name)
    return DenseDesign(np.asarray(X), name=name) if X.nbytes <= MEMORY_BUDGET else design


class MemmapDesign(StreamedDesign):
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
        float32 or float64 to compute in, converted as blocks are read. Needed if the file holds any other type.
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
    ...     found = limit_path(design, X[:, :4].sum(axis=1), 4, max_groups=1)
    >>> design.block_rows, found.entered[0][0]
    (12, 0)
    """

    def __init__(
        self,
        source: Any,
        *,
        shape: tuple[int, int] | None = None,
        file_dtype: DTypeLike = np.float64,
        offset: int = 0,
        dtype: DTypeLike | None = None,
        columns: Sequence[str] | None = None,
        memory_budget: int = MEMORY_BUDGET,
        name: str = "X",
    ) -> None:
        super().__init__(memory_budget=memory_budget, columns=columns, name=name)
        self._mapped: Array | None = None
        if isinstance(source, np.memmap):
            self._from_memmap(source)
        elif shape is not None:
            self._set(Path(source), tuple(shape), np.dtype(file_dtype), int(offset))
        else:
            self._from_npy(Path(source))
        if len(self._shape) != 2 or 0 in self._shape:
            raise ValueError(f"{self.where} has shape {self._shape}; it must have two dimensions, rows and columns.")
        if columns is not None and len(columns) != self._shape[1]:
            raise ValueError(f"There are {len(columns)} names in columns=; {self.where} has {self._shape[1]} columns.")
        self._dtype = float_type(self._file_dtype, dtype, str(self.where))
        self.check()

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._shape[0], self._shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        return self._dtype

    def check(self) -> None:
        """Raise if the file is missing or too short: reading a map of it would crash the process."""
        if self.path is None:
            return
        try:
            size = os.stat(self.path).st_size
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.path}, which holds {self.name}, does not exist.") from None
        if size < self._end:
            raise ValueError(
                f"{self.path} is truncated: {self.shape[0]} rows of {self.shape[1]} {self._file_dtype} need "
                f"{self._end:,} bytes, and the file has {size:,}. Write it again."
            )

    def read(self, start: int, stop: int) -> Array:
        """Rows start to stop as a C-contiguous array of `dtype`."""
        p, item = self.shape[1], self._file_dtype.itemsize
        if self._mapped is not None:
            rows = self._mapped[start:stop]
        else:
            assert self.path is not None
            raw = np.empty(((stop - start) * self._stride - (self._stride - p * item),), dtype=np.uint8)
            _read_into(self.path, raw, self._offset + start * self._stride)
            rows = np.ndarray((stop - start, p), self._file_dtype, raw.data, 0, (self._stride, item))
        return np.ascontiguousarray(rows, dtype=self.dtype)

    # ------------------------------------------------------------------ layout of the file

    @property
    def where(self) -> Any:
        """The file, for messages."""
        return self.name if self.path is None else self.path

    def _set(self, path: Path | None, shape: tuple[int, ...], dtype: np.dtype[Any], offset: int) -> None:
        self.path, self._shape, self._file_dtype, self._offset = path, shape, dtype, offset
        self._stride = (shape[1] if len(shape) > 1 else 1) * dtype.itemsize
        self._end = offset + int(np.prod(shape)) * dtype.itemsize

    def _from_npy(self, path: Path) -> None:
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
            self._set(path, shape, dtype, file.tell())
        if fortran and min(shape, default=0) > 1:
            # columns are contiguous, so rows are read through a map
            float_type(dtype, np.float64, str(path))
            self.check()
            self._mapped = np.load(path, mmap_mode="r")

    def _from_memmap(self, X: np.memmap[Any, Any]) -> None:
        """Find the rows of a memmap, or of a view of one, in its file."""
        path = Path(X.filename) if X.filename is not None else None
        self._set(path, X.shape, X.dtype, 0)
        source = X._mmap  # type: ignore[attr-defined]
        if path is not None and isinstance(source, mmap.mmap):
            start = np.frombuffer(source, dtype=np.uint8).__array_interface__["data"][0]
            granularity = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY
            self._offset = X.__array_interface__["data"][0] - start + granularity
        rows_in_order = X.ndim == 2 and X.strides[1] == X.itemsize and X.strides[0] >= X.shape[1] * X.itemsize
        if path is None or not rows_in_order or X.mode == "c":
            # other memory orders, and changes that are only in memory, need the map
            self._mapped = np.asarray(X)
        if rows_in_order:
            self._stride = X.strides[0]
        ahead = sum((size - 1) * max(step, 0) for size, step in zip(X.shape, X.strides, strict=True))
        self._end = self._offset + ahead + X.itemsize


def _read_into(path: Path, buffer: Array, offset: int) -> None:
    """Fill a buffer from a file."""
    view, done = buffer.data, 0
    with path.open("rb", buffering=0) as file:
        file.seek(offset)
        while done < buffer.nbytes:
            count = file.readinto(view[done:])
            if not count:
                raise ValueError(f"{path} ends at byte {offset + done:,}, in the middle of the array. Write it again.")
            done += count
