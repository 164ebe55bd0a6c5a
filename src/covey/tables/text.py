"""CSV and TSV: one pass for the lengths of the lines, one to parse."""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from pathlib import Path
from typing import BinaryIO, cast

import pandas as pd

from covey.tables.complaint import TableError, listed
from covey.tables.spreadsheet import unguarded

# Enough for three million columns of twenty characters. A file with a longer line has no line breaks or is not a table,
# and a parser would hold the line in memory several times before failing.
LONGEST_LINE = 64 * 2**20
BLOCK = 2**20

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}


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
