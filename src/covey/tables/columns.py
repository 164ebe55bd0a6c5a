"""Columns of a table: found by name or pattern, turned into numbers, searched for missing values."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from glob import has_magic
from typing import Any

import numpy as np
import pandas as pd

from covey.tables.complaint import TableError, listed, near

__all__ = ["find_columns", "missing_values", "numbers", "numeric_frame", "to_numbers"]


def find_columns(name: str, columns: Sequence[str], option: str) -> list[str]:
    """The columns that a name or a pattern stands for; a column of just that name comes first.

    >>> find_columns("x*", ["x1", "y", "x2"], "--drop")
    ['x1', 'x2']
    """
    if name in columns:
        return [name]
    found = [column for column in columns if fnmatchcase(column, name)] if has_magic(name) else []
    if not found:
        raise TableError(f"{option} {name!r} names no column: {near(name, columns)}")
    return found


def missing_values(frame: pd.DataFrame) -> dict[str, int]:
    """The columns with missing values, and how many each."""
    counts = frame.isna().sum()
    return {str(name): int(count) for name, count in counts[counts > 0].items()}


def numeric_frame(frame: pd.DataFrame, remedy: str) -> pd.DataFrame:
    """The same columns as floats; the remedy is for columns that hold anything else."""
    plain = [dtype.kind in "fiub" if isinstance(dtype, np.dtype) else False for dtype in frame.dtypes]
    if all(plain):
        # in one block: pandas takes ten thousand columns of a file one by one otherwise
        made = pd.DataFrame(frame.to_numpy(dtype=float), columns=frame.columns, index=frame.index)
    else:
        made = pd.DataFrame({name: numbers(column, remedy) for name, column in frame.items()}, index=frame.index)
    infinite = np.isinf(made.to_numpy()).any(axis=0)
    if infinite.any():
        raise TableError(f"Values are infinite in {listed(made.columns[infinite])}; {remedy}.")
    return made


def to_numbers(column: pd.Series[Any]) -> pd.Series[Any]:
    """What of a column can be read as numbers; the rest is missing."""
    try:
        return pd.to_numeric(column, errors="coerce")
    except OverflowError:  # integers of hundreds of digits
        return pd.to_numeric(column.map(_float), errors="coerce")


def _float(value: Any) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
    except OverflowError:
        return np.inf


def numbers(column: pd.Series[Any], remedy: str) -> pd.Series[Any]:
    """The column as floats, missing values kept; anything that is no number is named with its row."""
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        raise TableError(f"Column {column.name!r} holds dates, which are no numbers; {remedy}.")
    if column.dtype.kind == "c":
        raise TableError(f"Column {column.name!r} holds complex numbers; {remedy}.")
    found = to_numbers(column)
    bad = (found.isna() & column.notna()).to_numpy()
    if bad.any():
        row = int(np.argmax(bad))
        raise TableError(
            f"Column {column.name!r} holds {column.iloc[row]!r} in row {row + 1} below the header, which is no number; "
            f"{remedy}."
        )
    return found.astype(float)
