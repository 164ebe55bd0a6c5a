"""Read a table from CSV, TSV, Parquet or Feather: one file, several, a pattern, or a folder of Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from glob import glob, has_magic
from pathlib import Path

import pandas as pd

from covey.optional import optional
from covey.tables.complaint import TableError, listed
from covey.tables.text import LONGEST_LINE, SEPARATORS, check_names, read_text

KINDS = (*SEPARATORS, ".parquet", ".feather")
OTHER_NAMES = {".pq": ".parquet", ".arrow": ".feather"}


def find_files(sources: Sequence[str | Path]) -> tuple[Path, ...]:
    """The files for a list of names, patterns such as ``parts/*.parquet`` and folders of Parquet files, in order."""
    found: list[Path] = []
    for source in sources:
        path = Path(source)
        if path.is_dir():
            # marker files of query engines (_SUCCESS, .part-0.crc) begin with one of these
            here = [file for file in path.rglob("*.parquet") if not file.name.startswith(("_", "."))]
            if not here:
                raise TableError(f"The folder {path} contains no .parquet file; list the files of the table.")
        elif path.exists():
            here = [path]
        elif has_magic(str(source)):
            here = [Path(name) for name in glob(str(source)) if Path(name).is_file()]
            if not here:
                raise TableError(f"No file matches {source}.")
        else:
            raise TableError(f"There is no file {path}.")
        found += sorted(here)
    if not found:
        raise TableError("No table was given.")
    return tuple(found)


def read_tables(sources: Sequence[str | Path], *, sep: str | None = None, decimal: str = ".") -> pd.DataFrame:
    """Read files with the same columns as one table, concatenated in order.

    Parameters
    ----------
    sources : sequence of str or Path
    sep, decimal : str
        Separator of text files, guessed from the header if not given, and decimal mark.
    """
    files = find_files(sources)
    frames = [read_table(file, sep=sep, decimal=decimal) for file in files]
    first = frames[0]
    for file, frame in zip(files, frames, strict=True):
        odd = set(first.columns) ^ set(frame.columns)
        if odd:
            raise TableError(f"{files[0]} and {file} do not belong to one table: only one of them has {listed(odd)}.")
    return first if len(frames) == 1 else pd.concat([frame[first.columns] for frame in frames], ignore_index=True)


def read_table(
    path: Path, *, sep: str | None = None, decimal: str = ".", longest_line: int = LONGEST_LINE
) -> pd.DataFrame:
    """Read one file in the format of its extension."""
    if not path.is_file():
        raise TableError(f"There is no file {path}.")
    kind = _kind(path)
    try:
        if path.stat().st_size == 0:
            raise TableError(f"{path} cannot be read as a table: it is empty.")
        if kind in SEPARATORS:
            frame = read_text(path, kind, sep=sep, decimal=decimal, longest_line=longest_line)
        elif sep is not None or decimal != ".":
            raise TableError(f"--sep and --decimal are for text files, which {path} is not: leave them out.")
        else:
            frame = _read_arrow(path, kind)
    except OSError as reason:
        raise TableError(f"{path} cannot be read: {reason.strerror or reason}.") from None
    if frame.empty:
        raise TableError(f"{path} has no rows.")
    frame.columns = frame.columns.map(str)
    return frame


def _kind(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    kind = Path(name).suffix
    kind = OTHER_NAMES.get(kind, kind)
    if kind not in KINDS or (name != path.name.lower() and kind not in SEPARATORS):
        raise TableError(f"{path} has an unknown extension; use .csv, .tsv (gzipped or not), .parquet or .feather.")
    return kind


def _read_arrow(path: Path, kind: str) -> pd.DataFrame:
    with optional(f"Reading {path}"):
        import pyarrow
        import pyarrow.feather
        import pyarrow.parquet

    try:
        if kind == ".parquet":
            check_names(pyarrow.parquet.read_schema(path).names, path)
            table = pyarrow.parquet.read_table(path, partitioning=None)
        else:
            table = pyarrow.feather.read_table(path)
            check_names(table.column_names, path)
        return table.to_pandas()
    except (pyarrow.ArrowException, OSError) as reason:
        said = str(reason).splitlines()[0].rstrip(".")
        raise TableError(f"{path} cannot be read as {kind[1:].capitalize()}: {said}.") from None
