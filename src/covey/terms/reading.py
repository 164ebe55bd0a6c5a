"""Any table as a pandas DataFrame, and its columns as numbers, labels or days."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime

import numpy as np
import pandas as pd

from covey.designs import Design
from covey.tables.complaint import Column, TableError, listed
from covey.tables.marks import describe_marks
from covey.validation import Array, FloatArray, MatrixLike, is_sparse, is_tensor, on_host, pandas_frame, refuse_odd

DAY = 86_400.0  # seconds
# A time zone at the end of a time, such as +02:00.
OFFSET = re.compile(r":\d{2}([.,]\d+)?\s?[+-](?!00:?00)\d{2}:?\d{2}$")
# squares of larger numbers overflow
LARGEST = 1e150


def refuse_storage(table: MatrixLike) -> None:
    """Refuse what is no table in memory."""
    library = type(table).__module__.partition(".")[0]
    sparse = is_sparse(table) or str(getattr(table, "layout", "torch.strided")) != "torch.strided"
    if sparse or library in ("dask", "zarr") or isinstance(table, Design):
        storage = "sparse" if sparse else f"a {type(table).__name__}" if library == "covey" else f"of {library}"
        raise ValueError(
            f"X is {storage}, and terms= reads tables in memory (pandas, polars, pyarrow, numpy, torch): convert it, "
            "or give a matrix of columns with groups= instead of terms=."
        )


def as_frame(table: MatrixLike, names: Sequence[str] | None = None) -> pd.DataFrame:
    """A table of variables as a DataFrame with text for names; an array gets the given names, or x0, x1, ..."""
    refuse_storage(table)
    table = on_host(table) if is_tensor(table) else pandas_frame(table)
    if isinstance(table, pd.Series):
        raise ValueError("X must be a table of variables, not a single column: pass X.to_frame().")
    if isinstance(table, pd.DataFrame):
        frame = table.set_axis([str(name) for name in table.columns], axis=1)
        arrow = [j for j, dtype in enumerate(frame.dtypes) if isinstance(dtype, pd.ArrowDtype) and dtype.kind in "fMO"]
        for j in arrow:  # types of which pandas has its own
            frame.isetitem(j, frame.iloc[:, j].array.__arrow_array__().to_pandas().array)
    else:
        refuse_odd(table, "X")
        try:
            array = table if isinstance(table, np.ndarray) else np.asarray(table, dtype=object)
        except ValueError:  # rows of unequal length
            array = np.empty(0)
        if array.ndim != 2:
            raise ValueError(
                f"X must be a table of rows and variables, not a {type(table).__name__} of shape {array.shape}."
            )
        names = [f"x{j}" for j in range(array.shape[1])] if names is None else names
        if len(names) != array.shape[1]:
            raise ValueError(f"X has {array.shape[1]} features, but the terms were fitted with {len(names)} variables.")
        frame = pd.DataFrame(array, columns=list(names))
        frame = frame.infer_objects() if array.dtype == object else frame
    twice = [name for name, count in Counter(frame.columns).items() if count > 1]
    if twice:
        raise TableError(f"X has several columns of the same name: {listed(twice)}; rename them.")
    if 0 in frame.shape:
        raise ValueError(f"X is empty: shape {frame.shape}.")
    return frame


def text_columns(frame: pd.DataFrame) -> Iterator[tuple[str, Column]]:
    """The columns that may hold text, with their names; those of numbers are not touched, for they may be many."""
    for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
        if dtype.kind == "O" and not isinstance(dtype, pd.CategoricalDtype):
            yield str(name), frame[name]


def missing_values(column: Column) -> Array:
    """Where a value is missing; empty text is missing."""
    missing = column.isna().to_numpy(dtype=bool, copy=True)
    if column.dtype.kind not in "biufmMc":
        missing |= np.array([isinstance(value, str) and not value.strip() for value in column], dtype=bool)
    return missing


def as_numbers(column: Column, *, lenient: bool = False) -> FloatArray:
    """The values as float64, NaN for missing ones; booleans are 0 and 1, time differences days.

    If `lenient`, text among numbers is missing: a code such as "rotary" may occur in new rows alone.
    """
    name = column.name
    dtype = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        numbers = column.to_numpy(dtype=np.float64)
    elif dtype.kind == "m":
        numbers = column.dt.total_seconds().to_numpy(dtype=np.float64, na_value=np.nan) / DAY
    elif dtype.kind == "M":
        raise TableError(f"The variable {name!r} holds dates where numbers are expected.")
    else:
        plain = _objects(column)
        truths = {"true": 1.0, "false": 0.0}
        plain = np.array([truths.get(str(value).lower(), value) for value in plain], dtype=object)
        numbers = np.asarray(pd.to_numeric(plain, errors="coerce"), dtype=np.float64)
        rows = [row for row in np.flatnonzero(np.isnan(numbers)) if not _is_nan(plain[row])]
        odd = [plain[row] for row in rows]
        if marks := describe_marks([str(value).strip() for value in odd]):  # numbers, had the table been read as in fit
            raise TableError(
                f"The variable {name!r} holds {odd[0]!r} where numbers are expected, {marks[0]}; read the table with "
                f"{marks[1]}."
            )
        if odd and not (lenient and np.isfinite(numbers).any()):
            raise TableError(
                f"The variable {name!r} holds {str(odd[0])!r} in row {rows[0] + 1} where numbers are expected; correct "
                "the values, or fit it with Levels()."
            )
    check_finite(numbers, name)
    return numbers


def _objects(column: Column) -> Array:
    """The values as objects, None for missing ones."""
    values = np.array(column, dtype=object)
    values[missing_values(column)] = None
    return values


def _is_nan(value: object) -> bool:
    """Whether a value is missing, or text that means a number that is missing."""
    is_text = isinstance(value, str) and value.strip().lower() in ("nan", "+nan", "-nan")
    return value is None or value != value or is_text


def check_finite(numbers: FloatArray, name: object) -> None:
    """Refuse infinite numbers and those whose squares overflow."""
    largest = np.abs(numbers).max(initial=0.0, where=~np.isnan(numbers))
    if np.isinf(largest):
        n_rows = int(np.isinf(numbers).sum())
        raise TableError(
            f"The variable {name!r} has infinite values in {n_rows} row{'s' * (n_rows > 1)}; replace them, or read the "
            "table with na_values=['inf', '-inf'] if they are missing."
        )
    if largest > LARGEST:
        raise TableError(
            f"The variable {name!r} has values up to {largest:.3g}, whose squares overflow: change the units."
        )


def label(value: object) -> str:
    """The text for a level: a number is the same as integer and as float.

    >>> label(3), label(3.0), label(2.5), label("a"), label(True)
    ('3', '3', '2.5', 'a', 'True')
    """
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).removesuffix(" 00:00:00") if isinstance(value, datetime | np.datetime64) else str(value)


def as_labels(column: Column) -> Array:
    """The values as text, None for missing ones."""
    missing = missing_values(column)
    if isinstance(column.dtype, pd.CategoricalDtype):
        texts = np.array([label(value) for value in column.cat.categories] + [None], dtype=object)
        labels = texts[column.cat.codes.to_numpy()]
    else:
        codes, values = pd.factorize(column)
        labels = np.array([label(value) for value in values] + [None], dtype=object)[codes]
    labels[missing] = None
    return labels


def level_order(column: Column, texts: Sequence[str]) -> list[str]:
    """The levels in the order of the categories, of their numbers, or of the alphabet."""
    if hasattr(column, "cat"):
        return list(dict.fromkeys(label(value) for value in column.cat.categories))  # 1 and "1" are one level
    try:
        return sorted(set(texts), key=float)
    except ValueError:
        return sorted(set(texts))


def has_time_zone(column: Column) -> bool:
    """Whether dates have a time zone other than UTC."""
    zone = getattr(column.dtype, "tz", None)
    if zone is not None:
        return str(zone) != "UTC"
    return column.dtype.kind == "O" and any(isinstance(value, str) and OFFSET.search(value) for value in column)


def as_days(column: Column, format: str = "") -> FloatArray:
    """Dates as days since 1970, NaN for missing ones; time zones are converted to UTC.

    Text is all of it in the given format, or in ISO 8601.
    """
    missing = missing_values(column)
    if isinstance(column.dtype, pd.PeriodDtype):
        column = pd.Series(column.dt.to_timestamp(), name=column.name)
    dates = pd.Series(column) if column.dtype.kind == "M" else None
    for written in filter(None, (format, "ISO8601")):
        with suppress(TypeError, ValueError, OverflowError):
            dates = pd.Series(pd.to_datetime(_objects(column), format=written, utc=True)) if dates is None else dates
    if dates is None:
        raise TableError(
            f"The variable {column.name!r} holds values that are no dates; write them like "
            f"{datetime(2026, 5, 31).strftime(format or '%Y-%m-%d')}."
        )
    if getattr(dates.dtype, "tz", None) is not None:
        dates = dates.dt.tz_convert("UTC").dt.tz_localize(None)
    seconds = dates.to_numpy(dtype="datetime64[us]").astype(np.int64) / 1e6
    return np.where(missing, np.nan, seconds / DAY)
