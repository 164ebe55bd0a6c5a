"""Tables from files: a design, a response, and which columns belong together."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from covey.datasets import GroupedData
from covey.groups import Groups

__all__ = ["TableError", "read_grouped", "read_groups", "read_table"]

READERS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}


class TableError(ValueError):
    """A table cannot be used as it is; the message says why and what to do."""


def read_grouped(data: Path, target: str, groups: str | None) -> GroupedData:
    """Read a table, take one column as the response, and group the others."""
    frame = read_table(data)
    if target not in frame.columns:
        near = ", ".join(map(repr, frame.columns[:6]))
        raise TableError(f"{data} has no column {target!r} for --target; its columns begin {near}.")
    columns = frame.drop(columns=target)
    if columns.shape[1] == 0:
        raise TableError(f"{data} has no column besides the target {target!r}.")
    X = columns.apply(_numbers, result_type="expand")
    y = _numbers(frame[target])
    missing = frame.isna().sum()
    if missing.any():
        counts = ", ".join(f"{name!r} ({count})" for name, count in missing[missing > 0].head(6).items())
        raise TableError(f"Values are missing in {counts}; impute or drop them first.")
    return GroupedData(X, y.to_numpy(dtype=float), read_groups(groups, list(X.columns)))


def read_table(path: Path) -> pd.DataFrame:
    """Read CSV, TSV, Parquet or Feather, by the file's name."""
    if not path.is_file():
        raise TableError(f"There is no file {path}.")
    suffix = "".join(path.suffixes[-2:]).lower().removesuffix(".gz")
    kind = "." + suffix.rsplit(".", 1)[-1]
    try:
        if kind in READERS:
            frame = pd.read_csv(path, sep=READERS[kind])
            header = pd.read_csv(path, sep=READERS[kind], header=None, nrows=1, dtype=str).iloc[0].tolist()
        elif kind == ".parquet":
            frame = pd.read_parquet(path)
            header = frame.columns.tolist()
        elif kind == ".feather":
            frame = pd.read_feather(path)
            header = frame.columns.tolist()
        else:
            raise TableError(f"{path} is of no known kind; use .csv, .tsv, .parquet or .feather.")
    except ImportError:
        raise TableError(f"Reading {path} needs pyarrow: pip install pyarrow, or use CSV.") from None
    except (pd.errors.EmptyDataError, pd.errors.ParserError, UnicodeDecodeError) as reason:
        raise TableError(f"{path} cannot be read as a table: {reason}.") from None
    twice = sorted({str(name) for name in header if header.count(name) > 1})
    if twice:
        raise TableError(f"{path} has columns of the same name: {', '.join(map(repr, twice[:6]))}; rename them.")
    if frame.empty:
        raise TableError(f"{path} has no rows.")
    frame.columns = frame.columns.map(str)
    return frame


def read_groups(spec: str | None, columns: list[str]) -> Groups:
    """Read ``--groups``.

    A file of (column, group), a size, ``sep:_`` for what stands before the separator, or ``regex:PATTERN``, whose
    first bracket is the group's name.

    >>> read_groups("sep:_", ["gene01_b1", "gene01_b2", "gene02_b1"]).names
    ('gene01', 'gene02')
    >>> read_groups("regex:(g[0-9])", ["g1x", "g2y", "g1z"]).labels.tolist()
    [0, 1, 0]
    """
    if spec is None:
        return Groups.coerce(None, len(columns), columns)
    if spec.isdigit():
        return Groups.coerce(int(spec), len(columns), columns)
    if spec.startswith("sep:") and len(spec) > 4:
        return Groups.from_labels([name.split(spec[4:], 1)[0] for name in columns], columns=columns)
    if spec.startswith("regex:"):
        return Groups.from_labels([_match(spec[6:], name) for name in columns], columns=columns)
    if Path(spec).is_file():
        return _groups_from_file(Path(spec), columns)
    raise TableError(
        f"--groups {spec!r} is no file; give a file of (column, group), a size, sep:_ or regex:PATTERN with a bracket."
    )


def _groups_from_file(path: Path, columns: list[str]) -> Groups:
    table = read_table(path)
    if table.shape[1] != 2:
        raise TableError(f"{path} must have two columns, column and group, not {table.shape[1]}.")
    names = table.iloc[:, 0].astype(str)
    unknown = sorted(set(names) - set(columns))
    absent = [name for name in columns if name not in set(names)]
    for what, which in (("names columns that the data lack", unknown), ("gives no group to", absent)):
        if which:
            more = f" and {len(which) - 6} more" if len(which) > 6 else ""
            raise TableError(f"{path} {what}: {', '.join(map(repr, which[:6]))}{more}.")
    label_of = dict(zip(names, table.iloc[:, 1], strict=True))
    return Groups.from_labels([label_of[name] for name in columns], columns=columns)


def _match(pattern: str, name: str) -> str:
    try:
        found = re.match(pattern, name)
    except re.error as reason:
        raise TableError(f"--groups regex:{pattern} is no regular expression: {reason}.") from None
    if found is None or not found.groups():
        raise TableError(
            f"--groups regex:{pattern} does not match column {name!r} with a bracket; every column needs one."
        )
    return str(found.group(1))


def _numbers(column: pd.Series[Any]) -> pd.Series[Any]:
    numbers = pd.to_numeric(column, errors="coerce")
    bad = numbers.isna() & column.notna()
    if bad.any():
        value = column[bad].iloc[0]
        raise TableError(
            f"Column {column.name!r} holds {value!r} in row {int(np.argmax(bad.to_numpy()))}, "
            "which is no number; encode it."
        )
    return numbers.astype(float)
