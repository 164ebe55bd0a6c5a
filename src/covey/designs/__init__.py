"""Access to X: one small protocol, and one file per kind of storage."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from covey.designs.dense import DenseDesign
from covey.designs.factors import Factors, count_factors, find_factors
from covey.designs.memmap import MemmapDesign
from covey.designs.parquet import ParquetDesign
from covey.designs.protocol import Design, Moments
from covey.designs.repeated import RepeatedColumns
from covey.designs.sparse import SparseDesign
from covey.designs.zarr import ZarrDesign
from covey.validation import as_numeric_matrix, column_names, pandas_frame

__all__ = [
    "DenseDesign",
    "Design",
    "Factors",
    "MemmapDesign",
    "Moments",
    "ParquetDesign",
    "RepeatedColumns",
    "SparseDesign",
    "ZarrDesign",
    "as_design",
    "count_factors",
    "find_factors",
    "is_table",
    "open",
]

# Kinds of X other than a table in memory: the library that defines the type, and the module whose `wrap` handles it.
# The module is imported when it is needed, so that unused libraries cost nothing.
KINDS: dict[str, str] = {
    "dask": "covey.designs.dask",
    "scipy": "covey.designs.sparse",
    "torch": "covey.designs.torch",
    "zarr": "covey.designs.zarr",
}


def as_design(X: Any, *, name: str = "X") -> Design:
    """Wrap X in the design for its kind of storage; a `Design` is returned unchanged.

    >>> import numpy as np
    >>> as_design(np.eye(3, 5)).shape
    (3, 5)
    """
    if isinstance(X, Design):
        return X
    X = pandas_frame(X, name)
    module = _kind(X)
    if module is None:
        _refuse_other_kinds(X, name)
        return DenseDesign(as_numeric_matrix(X, name=name), columns=column_names(X), name=name)
    design: Design = import_module(module).wrap(X, name=name)
    return design


def open(path: str | Path, **options: Any) -> MemmapDesign | ParquetDesign | ZarrDesign:
    """Open an .npy file, a Parquet file or folder of them, or a Zarr array as a design.

    The options are those of `MemmapDesign`, `ParquetDesign` or `ZarrDesign`: `memory_budget`, `dtype`, `columns`, ...
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no file or folder {path}.")
    if path.suffix == ".npy" or "shape" in options:
        return MemmapDesign(path, **options)
    if path.suffix == ".parquet" or (path.is_dir() and any(path.rglob("*.parquet"))):
        return ParquetDesign(path, **options)
    if path.is_dir() and any((path / mark).exists() for mark in ("zarr.json", ".zarray")):
        return ZarrDesign(path, **options)
    raise ValueError(
        f"{path} cannot be opened as a design; it must be an .npy file, a .parquet file or a folder of them, a Zarr "
        "array, or a raw file with shape= and file_dtype=."
    )


def is_table(X: Any, *, name: str = "X") -> bool:
    """Whether X is read by numpy as a table in memory, rather than by a design for its kind of storage."""
    if isinstance(X, Design) or _kind(X) is not None:
        return False
    _refuse_other_kinds(X, name)
    return True


def _refuse_other_kinds(X: Any, name: str) -> None:
    """Refuse an X that numpy would turn into an array of one object, and name the kinds that work."""
    if isinstance(X, list | tuple) or any(
        hasattr(X, mark) for mark in ("__array__", "__array_interface__", "to_numpy")
    ):
        return
    hint = " For a path use covey.designs.open." if isinstance(X, str | PurePath) else ""
    raise ValueError(
        f"{name} is a {type(X).__module__}.{type(X).__name__}, which covey cannot read: pass a numpy array or "
        "anything that numpy.asarray reads, a pandas or polars DataFrame, a scipy sparse matrix, a numpy.memmap, a "
        "folder of Parquet (covey.designs.ParquetDesign), a Zarr array, a Dask array or DataFrame, or a torch tensor; "
        f"convert with {name}.to_numpy(), numpy.asarray({name}) or scipy.sparse.csr_array({name}).{hint}"
    )


def _kind(X: Any) -> str | None:
    """The module that wraps X; None if numpy reads it."""
    if isinstance(X, np.memmap):
        return "covey.designs.memmap"
    roots = (base.__module__.partition(".")[0] for base in type(X).__mro__)
    return next((KINDS[root] for root in roots if root in KINDS), None)
