"""Read a table from CSV, TSV, Excel, Parquet or Feather: one file, several, a pattern, or a folder of Parquet files."""

from __future__ import annotations

import io
from collections.abc import Sequence
from glob import glob, has_magic
from importlib import import_module
from pathlib import Path
from typing import IO
from zipfile import BadZipFile

import pandas as pd

from covey.optional import optional
from covey.tables.complaint import TableError, check_names, listed
from covey.tables.marks import Marks, as_numbers
from covey.tables.text import SEPARATORS, STANDARD, pipe_content, read_text

KINDS = (*SEPARATORS, ".xlsx", ".parquet", ".feather")
OTHER_NAMES = {".pq": ".parquet", ".arrow": ".feather", ".xlsm": ".xlsx"}

# The first bytes of the formats, for pipes, which have no names.
FIRST = {b"PAR1": ".parquet", b"ARROW1": ".feather", b"PK\x03\x04": ".xlsx"}


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
        elif path.exists() or str(path) == STANDARD:
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
    twice = [file for k, file in enumerate(found) if file in found[:k]]
    if twice:
        raise TableError(f"{twice[0]} is given twice: its rows would count twice.")
    return tuple(found)


def read_table(
    path: str | Path | Sequence[str | Path],
    *,
    sep: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    na_values: Sequence[str] = (),
) -> pd.DataFrame:
    """Read a table as ``covey fit`` does: CSV, TSV (gzipped or not), Excel, Parquet or Feather, with the same checks.

    Parameters
    ----------
    path : str or Path, or a sequence of them
        A file, a pattern such as ``parts/*.parquet``, a folder of Parquet files, or several of these that are read as
        one table; ``"-"`` is standard input.
    sep : str, optional
        Separator of text files: a character, ``"tab"`` or ``"space"``. By default the header decides.
    decimal : {".", ","}, optional
        Decimal mark of text, by default a point. Of the point and the comma, the other one then separates thousands.
    thousands : {",", ".", "space", "'"}, optional
        The mark between thousands: ``","`` if 2,596 is two thousand and more. Without `decimal` and `thousands`, a
        column that could be read either way is refused.
    na_values : sequence of str
        What stands for a missing value, such as ``"."`` or ``"-999"``, besides an empty cell, NA and the like.

    Returns
    -------
    pandas.DataFrame
    """
    files, marks = find_files([path] if isinstance(path, str | Path) else path), Marks.of(decimal, thousands)
    frames = []
    for file in files:
        try:
            frame = _read_file(file, sep, marks, na_values)
        except OSError as reason:
            raise TableError(f"{file} cannot be read: {reason.strerror or reason}.") from None
        if frame.empty:
            raise TableError(f"{file} has no rows.")
        frames.append(as_numbers(frame.set_axis(frame.columns.map(str), axis=1), marks))
    first = frames[0]
    for file, frame in zip(files, frames, strict=True):
        odd = set(first.columns) ^ set(frame.columns)
        if odd:
            raise TableError(f"{files[0]} and {file} do not belong to one table: only one of them has {listed(odd)}.")
    return first if len(frames) == 1 else pd.concat([frame[first.columns] for frame in frames], ignore_index=True)


def _read_file(path: Path, sep: str | None, marks: Marks, na_values: Sequence[str]) -> pd.DataFrame:
    """Read one file in the format of its extension, or of its first bytes if it is a pipe."""
    content = pipe_content(path)
    if content is None:
        kind, size = _kind(path), path.stat().st_size
    else:
        kind, size = next((k for first, k in FIRST.items() if content.startswith(first)), ".csv"), len(content)
    if not size:
        raise TableError(f"{path} cannot be read as a table: it is empty.")
    if kind in SEPARATORS:
        return read_text(path, kind, sep=sep, marks=marks, na_values=na_values)
    if sep is not None:
        raise TableError(f"sep={sep!r} is for text files, which {path} is not: leave it out.")
    read = _read_excel if kind == ".xlsx" else _read_arrow
    frame = read(path, kind, path if content is None else io.BytesIO(content))
    if not na_values:
        return frame
    numbers = pd.to_numeric(pd.Series(na_values, dtype=object), errors="coerce").dropna()
    return frame.mask(frame.isin([*na_values, *numbers])).infer_objects()


def _kind(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    kind = Path(name).suffix
    kind = OTHER_NAMES.get(kind, kind)
    if kind not in KINDS or (name != path.name.lower() and kind not in SEPARATORS):
        raise TableError(
            f"{path} has an unknown extension; use .csv, .tsv (gzipped or not), .xlsx, .parquet or .feather."
        )
    return kind


def _read_arrow(path: Path, kind: str, source: Path | IO[bytes]) -> pd.DataFrame:
    with optional(f"Reading {path}"):
        import pyarrow
        import pyarrow.feather
        import pyarrow.parquet

    try:
        if kind == ".parquet":
            check_names(pyarrow.parquet.read_schema(source).names, path)
            table = pyarrow.parquet.read_table(source, partitioning=None)
        else:
            table = pyarrow.feather.read_table(source)
            check_names(table.column_names, path)
        return table.to_pandas()
    except (pyarrow.ArrowException, OSError) as reason:
        raise _unreadable(path, kind[1:].capitalize(), reason) from None


def _read_excel(path: Path, kind: str, source: Path | IO[bytes]) -> pd.DataFrame:
    """Read the only sheet with content; its first line has the names."""
    with optional(f"Reading {path}"):
        import_module("openpyxl")
    try:
        sheets = pd.read_excel(source, sheet_name=None, header=None, engine="openpyxl")
    except (BadZipFile, KeyError, ValueError, TypeError) as reason:
        raise _unreadable(path, "Excel", reason) from None
    filled = {name: sheet for name, sheet in sheets.items() if not sheet.empty}
    if len(filled) != 1:
        several = f"several sheets with content, {listed(list(filled))}" if filled else "no sheet with content"
        raise TableError(f"{path} has {several}: save the table as a file of its own.")
    (sheet,) = filled.values()
    names = [f"Unnamed: {j}" if pd.isna(name) else str(name) for j, name in enumerate(sheet.iloc[0])]
    check_names(names, path)
    return sheet.iloc[1:].set_axis(names, axis=1).reset_index(drop=True).infer_objects()


def _unreadable(path: Path, what: str, reason: Exception) -> TableError:
    return TableError(f"{path} cannot be read as {what}: {str(reason).splitlines()[0].rstrip('.')}.")
