"""Read a table from CSV, TSV, Excel, Parquet or Feather: one file, several, a pattern, or a folder of Parquet files."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import warnings
from collections.abc import Sequence
from functools import partial
from glob import glob, has_magic
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import numpy as np
import pandas as pd

from covey.optional import optional
from covey.tables.complaint import Column, TableError, check_names, listed, shown
from covey.tables.excel import read_excel
from covey.tables.marks import Marks, are_codes, as_numbers, doubtful_points, refuse_doubtful
from covey.tables.pipes import STANDARD, pipe_content
from covey.tables.spreadsheet import unguarded

# Enough for three million columns of twenty characters. A file with a longer line has no line breaks or is not a table,
# and a parser would hold the line in memory several times before failing.
LONGEST_LINE = 64 * 2**20
BLOCK = 2**20

# The most digits of a code that two blocks of a file may share.
LONGEST_CODE = 64

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
KINDS = (*SEPARATORS, ".xlsx", ".parquet", ".feather")
OTHER_NAMES = {".pq": ".parquet", ".arrow": ".feather", ".xlsm": ".xlsx"}

UNKNOWN = Marks()

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
    return tuple(found)


def read_tables(
    sources: Sequence[str | Path], *, sep: str | None = None, decimal: str | None = None, thousands: str | None = None,
    na_values: Sequence[str] = (),
) -> pd.DataFrame:  # fmt: skip
    """Read files with the same columns as one table, concatenated in order; `read_table` has the parameters."""
    files, marks = find_files(sources), Marks.of(decimal, thousands)
    frames = [_read_file(file, sep=sep, marks=marks, na_values=na_values) for file in files]
    first = frames[0]
    for file, frame in zip(files, frames, strict=True):
        odd = set(first.columns) ^ set(frame.columns)
        if odd:
            raise TableError(f"{files[0]} and {file} do not belong to one table: only one of them has {listed(odd)}.")
    return first if len(frames) == 1 else pd.concat([frame[first.columns] for frame in frames], ignore_index=True)


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
    sources = [path] if isinstance(path, str | Path) else list(path)
    return read_tables(sources, sep=sep, decimal=decimal, thousands=thousands, na_values=na_values)


def _read_file(path: Path, *, sep: str | None, marks: Marks, na_values: Sequence[str]) -> pd.DataFrame:
    """Read one file in the format of its extension, or of its first bytes if it is a pipe."""
    try:
        content = pipe_content(path)
        if content is None and not path.is_file():
            raise TableError(f"There is no file {path}.")
        kind = (
            _kind(path)
            if content is None
            else next((k for first, k in FIRST.items() if content.startswith(first)), ".csv")
        )
        if not (path.stat().st_size if content is None else content):
            raise TableError(f"{path} cannot be read as a table: it is empty.")
        if kind in SEPARATORS:
            frame = read_text(path, kind, sep=sep, marks=marks, na_values=na_values)
        elif sep is not None:
            raise TableError(f"sep={sep!r} is for text files, which {path} is not: leave it out.")
        else:
            read = read_excel if kind == ".xlsx" else _read_arrow
            frame = read(path, kind, path if content is None else io.BytesIO(content))
            frame = _without(frame, na_values)
    except OSError as reason:
        raise TableError(f"{path} cannot be read: {reason.strerror or reason}.") from None
    if frame.empty:
        raise TableError(f"{path} has no rows.")
    frame.columns = frame.columns.map(str)
    return as_numbers(frame, marks)


def _without(frame: pd.DataFrame, na_values: Sequence[str]) -> pd.DataFrame:
    """The frame with missing values in place of some texts and numbers."""
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
        said = str(reason).splitlines()[0].rstrip(".")
        raise TableError(f"{path} cannot be read as {kind[1:].capitalize()}: {said}.") from None


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
        parse: Any = partial(
            pd.read_csv,
            sep=separator,
            decimal=marks.decimal,
            low_memory=False,
            encoding=encoding,
            skipinitialspace=True,
            na_values=list(na_values),
        )
        with _open(path) as stream:
            frame = parse(stream)
        doubtful = (
            [name for name, column in frame.items() if doubtful_points(column)] if marks.thousands is None else []
        )
        if doubtful:
            with _open(path) as stream:
                refuse_doubtful(parse(stream, usecols=doubtful, dtype=str), path)
        whole = [name for name, column in frame.items() if _is_whole(column)]
        if whole and _has_codes(path, encoding, separator):
            with _open(path) as stream:
                as_text = parse(stream, usecols=whole, dtype=str)
            codes = {name: as_text[name] for name in whole if are_codes(as_text[name].dropna().unique())}
            frame = frame.assign(**codes)
    except UnicodeDecodeError:
        raise TableError(f"{path} is not UTF-8 text; save it as CSV in UTF-8, or as Parquet.") from None
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
    frame = frame.drop(columns=[name for name in unnamed if frame[name].isna().all()])
    nameless = [name for name in unnamed if name in frame]
    if nameless:
        warnings.warn(
            f"{path} has no name for {len(nameless)} of its columns in the first line, {shown(header.strip())}: if "
            "that is not the header, remove it.",
            stacklevel=5,
        )
    frame = unguarded(frame)
    check_names([str(name) for name in frame.columns], path)
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


def _encoding(path: Path, longest_line: int) -> str:
    """The encoding of a text file: UTF-8, UTF-16 if it begins with its mark, or else that of Western Windows.

    Refuses a file with a line that is too long, before any parser has it in memory.
    """
    with _open(path) as stream:
        first = stream.read(2)
        if first in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16"
        stream.seek(0)
        if _check_lines(stream, path, longest_line):
            return "utf-8-sig"
        stream.seek(0)
        content = stream.read()
    if b"\0" in content:
        raise TableError(f"{path} is not UTF-8 text; save it as CSV in UTF-8, or as Parquet.")
    content.decode("cp1252")  # five bytes have no meaning there
    warnings.warn(
        f"{path} is not UTF-8 text: it was read as Windows-1252 (Latin-1). If names look odd, save it in UTF-8.",
        stacklevel=6,
    )
    return "cp1252"


def _open(path: Path) -> BinaryIO:
    content = pipe_content(path)
    if content is None:
        return cast(BinaryIO, gzip.open(path) if path.suffix.lower() == ".gz" else open(path, "rb"))
    return cast(BinaryIO, io.BytesIO(gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content))


def _check_lines(stream: BinaryIO, path: Path, longest: int) -> bool:
    """Refuse a file as soon as a line exceeds `longest` bytes, without reading further; return whether it is UTF-8."""
    block_size = min(BLOCK, longest)
    since = 0  # bytes since the last line end
    decoder, is_utf8 = codecs.getincrementaldecoder("utf-8")(), True
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
