"""Ways to store one dense array, for contract tests over all kinds of storage.

A new kind adds a row to `KINDS`: a function that stores a dense array, in a folder where it needs one.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from covey.designs import DenseDesign, MemmapDesign, ParquetDesign, ZarrDesign

__all__ = ["KINDS"]


class WithoutColumns(DenseDesign):
    """A design whose columns are not read one by one."""

    reads_columns = False


def as_memmap(X, folder):
    mapped = np.memmap(folder / "x.raw", X.dtype, "w+", 128, X.shape)
    mapped[:] = X
    mapped.flush()
    return mapped


def as_parquet(X, folder):
    pytest.importorskip("pyarrow")
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    for i, part in enumerate(np.array_split(np.arange(X.shape[0]), 3)):
        table.iloc[part].to_parquet(folder / f"part-{i}.parquet", row_group_size=17 if X.shape[1] < 200 else None)
    return folder


def as_zarr(X, folder):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(folder / "x.zarr", shape=X.shape, chunks=(20, 50), dtype=X.dtype)
    array[:] = X
    return array


KINDS = {
    "Fortran": lambda X, folder: np.asfortranarray(X),
    "strided": lambda X, folder: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "CSR matrix": lambda X, folder: sp.csr_matrix(X),
    "CSC array": lambda X, folder: sp.csc_array(X),
    "memmap": lambda X, folder: MemmapDesign(as_memmap(X, folder), memory_budget=X.nbytes // 2),
    "Parquet": lambda X, folder: ParquetDesign(as_parquet(X, folder), memory_budget=X.nbytes // 2),
    "Zarr": lambda X, folder: ZarrDesign(as_zarr(X, folder), memory_budget=X.nbytes // 2),
    "without columns": lambda X, folder: WithoutColumns(X),
    "torch": lambda X, folder: pytest.importorskip("torch").from_numpy(X),
    "Dask": lambda X, folder: da.from_array(X, chunks=(31, -1)),
}

if find_spec("torch") and import_module("torch").cuda.is_available():
    KINDS["torch on a GPU"] = lambda X, folder: import_module("torch").from_numpy(X).cuda()
