"""Read a table from text: its encoding, separator and header, codes with leading zeros, and doubtful marks."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import sys
import warnings
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, Any, BinaryIO, TextIO, cast

import numpy as np
import pandas as pd

from covey.tables.complaint import Column, TableError, check_names, shown
from covey.tables.marks import Marks, are_codes, doubtful_points, refuse_doubtful
from covey.tables.spreadsheet import unguarded

# The name of standard input and output.
STANDARD = "-"

# Enough for three million columns of twenty characters. A file with a longer line has no line breaks or is not a table,
# and a parser would hold the line in memory several times before failing.
LONGEST_LINE = 64 * 2**20
BLOCK = 2**20

# The most digits of a code that two blocks of a file may share.
LONGEST_CODE = 64

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
UNKNOWN = Marks()


def pipe_content(path: Path) -> bytes | None:
    """The content of standard input or of another pipe, however often it is asked for; None for other files."""
    if str(path) == STANDARD:
        return _read_once(sys.stdin)
    if path.is_fifo() or str(path) == "/dev/stdin":
        return _read_once(path, path.stat().st_ino)
    return None


@lru_cache(maxsize=4)
def _read_once(source: Path | TextIO, _number: int = 0) -> bytes:
    """Read a stream, or a pipe, whose number tells it from another of the same name."""
    content: bytes = source.read_bytes() if isinstance(source, Path) else source.buffer.read()
    return content


def read_text(
    path: Path, kind: str, *, sep: str | None = None, marks: Marks = UNKNOWN, na_values: Sequence[str] = (),
    longest_line: int = LONGEST_LINE,
) -> pd.DataFrame:  # fmt: skip
    """Read a text table, gzipped or not.

    If `sep` is not given, the file's extension determines the separator, unless the header lacks it and contains a
    semicolon or a tab instead.
    """
    header = ""
    try:
        encoding = _encoding(path, longest_line)
        with io.TextIOWrapper(_open(path), encoding, newline="") as text:
            header = text.readline(longest_line)
            separator = _separator(header, SEPARATORS[kind]) if sep is None else _one_mark(sep)
            n_values = _n_values(text, separator)
        names = next(csv.reader(io.StringIO(header), delimiter=separator, skipinitialspace=True), [])
        check_names(names, path)
        frame = _parse(path, encoding, separator, marks, na_values)
    except UnicodeDecodeError:
        raise _not_text(path) from None
    except (pd.errors.EmptyDataError, pd.errors.ParserError, EOFError, gzip.BadGzipFile, csv.Error) as reason:
        said = str(reason).removeprefix("Error tokenizing data. C error: ").strip().rstrip(".")
        first = f" The first line is {shown(header.strip())}: if that is not the header, remove it." if header else ""
        raise TableError(f"{path} cannot be read as a table: {said}.{first}{_hint(header, sep)}") from None
    if not frame.index.equals(pd.RangeIndex(len(frame))) or (n_values > len(names) and header.count('"') % 2 == 0):
        remedy = "write it without row names, or name them; if that line is not the header, remove it"
        if frame.iloc[:, -1].isna().all():
            remedy = "lines end with a separator, which the header lacks: add it there, or remove it"
        raise TableError(
            f"{path} has more values in a row than names in its header, {shown(header.strip())}; {remedy}."
            f"{_hint(header, sep)}"
        )
    unnamed = [name for name in frame.columns[1:] if str(name).startswith("Unnamed: ")]
    # a separator at the end of every line makes an empty column
    empty = [name for name in unnamed if frame[name].isna().all()]
    if len(unnamed) > len(empty):
        warnings.warn(
            f"{path} has no name for {len(unnamed) - len(empty)} of its columns in the first line, "
            f"{shown(header.strip())}: if that is not the header, remove it.",
            stacklevel=4,
        )
    frame = unguarded(frame.drop(columns=empty))
    check_names([str(name) for name in frame.columns], path)
    return frame


def _parse(path: Path, encoding: str, separator: str, marks: Marks, na_values: Sequence[str]) -> pd.DataFrame:
    """The table as pandas reads it, except that codes such as 00731 stay text, and doubtful points are refused."""

    def parse(**options: Any) -> pd.DataFrame:
        with _open(path) as stream:
            return pd.read_csv(
                stream, sep=separator, decimal=marks.decimal, low_memory=False, encoding=encoding,
                skipinitialspace=True, na_values=list(na_values), **options,
            )  # fmt: skip

    frame = parse()
    doubtful = [name for name, column in frame.items() if doubtful_points(column)] if marks.thousands is None else []
    if doubtful:
        refuse_doubtful(parse(usecols=doubtful, dtype=str), path)
    whole = [name for name, column in frame.items() if _is_whole(column)]
    # row names, which are refused, would shift the columns that are read again
    if whole and frame.index.equals(pd.RangeIndex(len(frame))) and _has_codes(path, encoding, separator):
        as_text = parse(usecols=whole, dtype=str)
        codes = {str(name): column for name, column in as_text.items() if are_codes(column.dropna().unique())}
        frame = frame.assign(**codes)
    return frame


def _n_values(text: IO[str], separator: str) -> int:
    """The number of values in the next line that is not empty: of one too many, a parser makes row names."""
    if separator == " ":  # repeated spaces separate once
        return 0
    try:
        return len(next(filter(None, csv.reader(text, delimiter=separator, skipinitialspace=True)), []))
    except csv.Error:  # a cell that is longer than csv allows
        return 0


def _is_whole(column: Column) -> bool:
    """Whether a parser made integers of a column; floats if values are missing."""
    if column.dtype.kind != "f":
        return column.dtype.kind in "iu"
    known = column.to_numpy()[~np.isnan(column)]
    return bool(known.size) and bool((known == np.rint(known)).all())


def _has_codes(path: Path, encoding: str, separator: str) -> bool:
    """Whether a cell of a text file holds digits after a zero, such as 00731, which a parser makes a number."""
    ends = rf'["\s{re.escape(separator)}]'
    code = re.compile(rf"(?:^|{ends})0\d+(?:{ends}|$)")
    with io.TextIOWrapper(_open(path), encoding, newline="") as text:
        before = ""
        while block := text.read(BLOCK):
            if code.search(before + block):
                return True
            before = block[-LONGEST_CODE:]
    return False


def _open(path: Path) -> BinaryIO:
    content = pipe_content(path)
    if content is None:
        return cast(BinaryIO, gzip.open(path) if path.suffix.lower() == ".gz" else open(path, "rb"))
    return cast(BinaryIO, io.BytesIO(gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content))


def _encoding(path: Path, longest_line: int) -> str:
    """The encoding of a text file: UTF-8, UTF-16 if it begins with its mark, or else that of Western Windows.

    Refuses a file with a line that is too long, before any parser has it in memory.
    """
    with _open(path) as stream:
        if stream.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16"
        stream.seek(0)
        if _check_lines(stream, path, longest_line):
            return "utf-8-sig"
        stream.seek(0)
        content = stream.read()
    if b"\0" in content:
        raise _not_text(path)
    content.decode("cp1252")  # five bytes have no meaning there
    warnings.warn(
        f"{path} is not UTF-8 text: it was read as Windows-1252 (Latin-1). If names look odd, save it in UTF-8.",
        stacklevel=5,
    )
    return "cp1252"


def _not_text(path: Path) -> TableError:
    return TableError(f"{path} is not UTF-8 text; save it as CSV in UTF-8, or as Parquet.")


def _check_lines(stream: BinaryIO, path: Path, longest: int) -> bool:
    """Refuse a file as soon as a line exceeds `longest` bytes, without reading further; return whether it is UTF-8."""
    since = 0  # bytes since the last line end
    decoder, is_utf8 = codecs.getincrementaldecoder("utf-8")(), True
    for block in iter(partial(stream.read, min(BLOCK, longest)), b""):
        first = block.find(b"\n")
        since += len(block) if first < 0 else first
        if since > longest:
            raise TableError(
                f"{path} has a line of more than {longest} bytes; is it a table with one line per row? "
                "A table that wide is better stored as Parquet."
            )
        if first >= 0:
            since = len(block) - block.rfind(b"\n") - 1
        try:
            if is_utf8:
                decoder.decode(block)
        except UnicodeDecodeError:
            is_utf8 = False
    return is_utf8


def _separator(header: str, promised: str) -> str:
    """The separator between the names of a header.

    >>> _separator("a;b", ","), _separator("a,b;c", ","), _separator("a", ",")
    (';', ',', ',')
    """
    return next((mark for mark in (promised, ",", ";", "\t", "|") if mark in header), promised)


def _one_mark(sep: str) -> str:
    r"""The separator character, given as a word or as itself.

    >>> _one_mark("tab") == _one_mark(r"\t") == "\t"
    True
    """
    mark = {"tab": "\t", "\\t": "\t", "space": " "}.get(sep, sep)
    if len(mark) != 1:
        raise TableError(f"sep= must be one character, tab or space, not {sep!r}.")
    return mark


def _hint(header: str, sep: str | None) -> str:
    """A hint at another separator, if the header is ambiguous."""
    if sep is None and ";" in header and "," in header:
        return " If ; separates the values, give sep=';' (and decimal=',' if numbers have a decimal comma)."
    return ""
