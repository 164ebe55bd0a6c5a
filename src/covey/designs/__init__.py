"""Access to X: one small protocol, and one file per kind of storage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from covey.designs.columns import ProductColumns, RepeatedColumns
from covey.designs.dense import DenseDesign
from covey.designs.factors import Factors, count_factors, find_factors
from covey.designs.genotypes import GenotypeDesign
from covey.designs.memmap import MemmapDesign
from covey.designs.moments import Moments
from covey.designs.parquet import ParquetDesign
from covey.designs.protocol import Design, Models, as_design, is_table
from covey.designs.row_blocks import BackedDesign
from covey.designs.sparse import SparseDesign
from covey.designs.zarr import ZarrDesign

__all__ = [
    "BackedDesign",
    "DenseDesign",
    "Design",
    "Factors",
    "GenotypeDesign",
    "MemmapDesign",
    "Models",
    "Moments",
    "ParquetDesign",
    "ProductColumns",
    "RepeatedColumns",
    "SparseDesign",
    "ZarrDesign",
    "as_design",
    "count_factors",
    "find_factors",
    "is_table",
    "open",
]


def open(
    path: str | Path | Sequence[str | Path], **options: Any
) -> GenotypeDesign | MemmapDesign | ParquetDesign | ZarrDesign:
    """Open PLINK genotypes, an .npy file, a Parquet file or folder of them, or a Zarr array as a design.

    Genotypes are a .bed file, a list of them or a pattern such as ``"chr*.bed"``. The options are those of
    `GenotypeDesign`, `MemmapDesign`, `ParquetDesign` or `ZarrDesign`: `samples`, `memory_budget`, `dtype`, ...
    """
    if not isinstance(path, str | Path) or str(path).endswith(".bed"):
        return GenotypeDesign(path, **options)
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
        f"{path} cannot be opened as a design; it must be a .bed file of PLINK, an .npy file, a .parquet file or a "
        "folder of them, a Zarr array, or a raw file with shape= and file_dtype=."
    )
