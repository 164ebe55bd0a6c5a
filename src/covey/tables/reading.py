"""Read a table from CSV, TSV, Parquet or Feather: one file, several, a pattern, or a folder of Parquet files."""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from collections.abc import Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import BinaryIO, cast

import pandas as pd

from covey.optional import optional
from covey.tables.complaint import TableError, listed
from covey.tables.spreadsheet import unguarded

# Enough for three million columns of twenty characters. A file with a longer line has no line breaks or is not a table,
# and a parser would hold the line in memory several times before failing.
LONGEST_LINE = 64 * 2**20
BLOCK = 2**20

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
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


def read_text(
    path: Path, kind: str, *, sep: str | None = None, decimal: str = ".", longest_line: int = LONGEST_LINE
) -> pd.DataFrame:
    """Read a text table, gzipped or not.

    If `sep` is not given, the file's extension determines the separator, unless the header lacks it and contains a
    semicolon or a tab instead.
    """
    header = ""
    try:
        with _open(path) as stream:
            _check_lines(stream, path, longest_line)
        with _open(path) as stream:
            header = stream.readline(longest_line).decode("utf-8-sig")
        separator = _separator(header, SEPARATORS[kind]) if sep is None else _one_mark(sep)
        if separator == decimal:
            raise TableError(
                f"{path}: {decimal!r} separates the values, so it cannot be the decimal mark too; give --sep."
            )
        names = next(csv.reader(io.StringIO(header), delimiter=separator, skipinitialspace=True), [])
        check_names(names, path)
        frame = pd.read_csv(
            path,
            sep=separator,
            decimal=decimal,
            low_memory=False,
            encoding="utf-8-sig",
            skipinitialspace=True,
            compression="infer",
        )
    except UnicodeDecodeError:
        raise TableError(f"{path} is not UTF-8 text; save it as CSV in UTF-8, or as Parquet.") from None
    except (pd.errors.EmptyDataError, pd.errors.ParserError, EOFError, gzip.BadGzipFile, csv.Error) as reason:
        said = str(reason).removeprefix("Error tokenizing data. C error: ").strip().rstrip(".")
        raise TableError(f"{path} cannot be read as a table: {said}.{_hint(header, sep)}") from None
    if not isinstance(frame.index, pd.RangeIndex):
        raise TableError(
            f"{path} has more values in a row than names in its header; write it without row names, or name them."
            f"{_hint(header, sep)}"
        )
    frame = unguarded(frame)
    check_names([str(name) for name in frame.columns], path)
    return frame


def _open(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path) if path.suffix.lower() == ".gz" else open(path, "rb"))


def _check_lines(stream: BinaryIO, path: Path, longest: int) -> None:
    """Refuse a file as soon as a line exceeds `longest` bytes, without reading further."""
    block_size = min(BLOCK, longest)
    since = 0  # bytes since the last line end
    while block := stream.read(block_size):
        first = block.find(b"\n")
        since += len(block) if first < 0 else first
        if since > longest:
            raise TableError(
                f"{path} has a line of more than {longest} bytes; is it a table with one line per row? "
                "A table that wide is better stored as Parquet."
            )
        if first >= 0:
            since = len(block) - block.rfind(b"\n") - 1


def _separator(header: str, promised: str) -> str:
    """The separator between the names of a header.

    >>> _separator("a;b", ","), _separator("a,b;c", ","), _separator("a", ",")
    (';', ',', ',')
    """
    return next((mark for mark in (promised, ",", ";", "\t") if mark in header), promised)


def _one_mark(sep: str) -> str:
    r"""The separator character, given as a word or as itself.

    >>> _one_mark("tab") == _one_mark(r"\t") == "\t"
    True
    """
    mark = {"tab": "\t", "\\t": "\t", "space": " "}.get(sep, sep)
    if len(mark) != 1:
        raise TableError(f"--sep must be one character, tab or space, not {sep!r}.")
    return mark


def _hint(header: str, sep: str | None) -> str:
    """A hint at another separator, if the header is ambiguous."""
    if sep is None and ";" in header and "," in header:
        return " If ; separates the values, give --sep ';' (and --decimal , if numbers have a decimal comma)."
    return ""


def check_names(names: list[str], path: Path) -> None:
    """Refuse duplicate column names, which pandas would silently rename."""
    twice = [name for name, count in Counter(names).items() if name and count > 1]
    if twice:
        raise TableError(f"{path} has several columns of the same name: {listed(twice)}; rename them.")
