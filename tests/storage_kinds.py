"""Ways to store one dense array, for contract tests over all kinds of storage.

A new kind adds a row to `KINDS`: a function that stores a dense array, in a folder where it needs one. Kinds
that hold the counts 0, 1 and 2 only are in `COUNT_KINDS`.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from bed_files import write_bed
from covey.designs import BackedDesign, DenseDesign, Design, GenotypeDesign, MemmapDesign, ParquetDesign, ZarrDesign

__all__ = ["COUNT_KINDS", "KINDS", "nearest_counts"]


class WithoutColumns(DenseDesign):
    """A design whose columns are not read one by one."""

    reads_columns = False


class OnlyTake(Design):
    """A design that says how columns are read and nothing else, a few of them at a time."""

    tile = 1000

    def __init__(self, X):
        super().__init__(X.shape, X.dtype, columns=None, name="X")
        self._X = X

    def take(self, columns):
        return self._X[:, columns].astype(float)


class Backed:
    """Rows of a sparse matrix that are read when they are needed, like those of a backed AnnData object."""

    def __init__(self, X):
        self._X, self.shape, self.dtype = X, X.shape, X.dtype

    def __getitem__(self, rows):
        return self._X[rows]


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


def as_bed(X, folder):
    return GenotypeDesign(write_bed(folder / "x.bed", X), dtype=X.dtype)


def as_parts(X, folder):
    """Two files with more samples in another order, and a table for the last columns."""
    n, p = X.shape
    order = np.random.default_rng(0).permutation(n + 5)
    ids, names = [f"s{i}" for i in range(n)], [f"x{j}" for j in range(p)]
    shuffled = np.vstack([X, X[:5]])[order]
    listed = [[*ids, *"abcde"][i] for i in order]
    for chromosome, some in enumerate([slice(0, p // 3), slice(p // 3, p - 9)], 9):
        write_bed(
            folder / f"c{chromosome}.bed",
            shuffled[:, some],
            chromosomes=[chromosome] * len(names[some]),
            names=names[some],
            samples=listed,
        )
    table = pd.DataFrame(X[::-1, p - 9 :], index=ids[::-1], columns=names[p - 9 :])
    return GenotypeDesign(f"{folder}/c*.bed", samples=ids, dtype=X.dtype, in_memory=True).beside(table)


KINDS = {
    "Fortran": lambda X, folder: np.asfortranarray(X),
    "strided": lambda X, folder: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "CSR matrix": lambda X, folder: sp.csr_matrix(X),
    "CSC array": lambda X, folder: sp.csc_array(X),
    "memmap": lambda X, folder: MemmapDesign(as_memmap(X, folder), memory_budget=X.nbytes // 2),
    "Parquet": lambda X, folder: ParquetDesign(as_parquet(X, folder), memory_budget=X.nbytes // 2),
    "Zarr": lambda X, folder: ZarrDesign(as_zarr(X, folder), memory_budget=X.nbytes // 2),
    "backed": lambda X, folder: BackedDesign(Backed(sp.csr_array(X)), memory_budget=X.nbytes // 2),
    "without columns": lambda X, folder: WithoutColumns(X),
    "only take": lambda X, folder: OnlyTake(X),
    "torch": lambda X, folder: pytest.importorskip("torch").from_numpy(X),
    "Dask": lambda X, folder: da.from_array(X, chunks=(31, -1)),
    "lazy Dask DataFrame": lambda X, folder: dd.read_parquet(as_parquet(X, folder)),
    "persisted Dask DataFrame": lambda X, folder: dd.read_parquet(as_parquet(X, folder)).persist(),
}

if find_spec("torch") and import_module("torch").cuda.is_available():
    KINDS["torch on a GPU"] = lambda X, folder: import_module("torch").from_numpy(X).cuda()

COUNT_KINDS = {"PLINK": as_bed, "PLINK in parts": as_parts}


def nearest_counts(X):
    return np.clip(np.round(X), -1, 1) + 1
