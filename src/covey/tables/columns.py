"""Columns of a table: find them by name or pattern, convert them to numbers, and find missing values."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from glob import has_magic

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covey.tables.complaint import Column, TableError, check_names, leave_out, listed, near, shown
from covey.tables.unreadable import complaint, read_unreadable
from covey.validation import Array, one_value


def find_columns(name: str, columns: Sequence[str], option: str) -> list[str]:
    """The columns matched by a name, a pattern or a list; a column of exactly that name takes precedence.

    >>> find_columns("x*", ["x1", "y", "x2"], "--drop"), find_columns("y,x2", ["x1", "y", "x2"], "--drop")
    (['x1', 'x2'], ['y', 'x2'])
    """
    found: list[str] = []
    for part in apart([name], columns):
        matching = [part] if part in columns else _matching(part, columns)
        if not matching:
            raise TableError(f"{option} {part!r} matches no column: {near(part, columns)}")
        found += matching
    return list(dict.fromkeys(found))


def apart(given: Sequence[str], columns: Collection[str]) -> list[str]:
    """Split lists of names: ``age,sex`` is two names, unless it is a column's name or a pattern that matches columns.

    >>> apart(["age,sex", "a,b"], ["age", "sex", "a,b"])
    ['age', 'sex', 'a,b']
    """
    names: list[str] = []
    for name in given:
        is_one = "," not in name or name in columns or _matching(name, columns)
        names += [name] if is_one else [part.strip() for part in name.split(",") if part.strip()]
    return names


def _matching(name: str, columns: Collection[str]) -> list[str]:
    return [column for column in columns if fnmatchcase(column, name)] if has_magic(name) else []


def missing_values(frame: pd.DataFrame) -> dict[str, int]:
    """The columns with missing values, and the number in each."""
    counts = frame.isna().sum()
    return {str(name): int(count) for name, count in counts[counts > 0].items()}


def refuse_missing(frame: pd.DataFrame, complete: str = "X.dropna()") -> None:
    """Refuse missing values in a matrix of numbers; `complete` is the call that leaves their rows out."""
    counts = missing_values(frame)
    empty = [name for name, count in counts.items() if count == len(frame) > 1]
    if empty:
        raise TableError(
            f"All values are missing in {listed(empty)} (NaN); leave such columns out with {leave_out(empty)}."
        )
    if counts:
        which = ", ".join(f"{shown(name)} ({count})" for name, count in list(counts.items())[:6])
        more = f" and {len(counts) - 6} more columns" if len(counts) > 6 else ""
        n_rows = int(frame.isna().any(axis=1).sum())
        raise TableError(
            f"Values are missing in {which}{more}, so that {n_rows} of {len(frame)} rows have NaN; leave out the rows "
            f"with {complete}, fill them in with an imputer, or give terms='auto' instead of groups=: then missing "
            "values are allowed."
        )


@contextmanager
def named_faults(X: object) -> Iterator[None]:
    """While a table is read as a matrix of numbers, replace errors by those that name its columns and the remedy."""
    if isinstance(X, pd.DataFrame):
        check_names([str(name) for name in X.columns], "X")
        if any(dtype.kind in "mM" for dtype in X.dtypes):  # alone, they would pass for numbers
            numeric_frame(X.rename(columns=str))
    try:
        yield
    except (ValueError, TypeError) as reason:
        if isinstance(X, pd.DataFrame):
            refuse_missing(numeric_frame(X.rename(columns=str)))
        elif (values := _matrix(X)) is not None:
            frame = pd.DataFrame(values, columns=[f"column {j}" for j in range(values.shape[1])])
            if values.dtype.kind == "f":
                refuse_missing(numeric_frame(frame, "leave such columns out"), "X[~np.isnan(X).any(axis=1)]")
            numeric_frame(frame, "encode it, or give a DataFrame and terms='auto'")
        raise reason


def _matrix(X: object) -> Array | None:
    """A matrix without names as floats, or as it is if it holds text besides numbers; None for anything else."""
    try:
        values = np.asarray(X)
    except (ValueError, TypeError):
        return None
    if values.ndim != 2 or np.iscomplexobj(values):  # a cast would drop the imaginary part
        return None
    try:
        return values.astype(float)
    except (ValueError, TypeError):
        kinds = {type(value) for value in values.flat}
    are_plain = all(issubclass(kind, str | int | float | np.number | None.__class__) for kind in kinds)
    return values if are_plain and any(issubclass(kind, str) for kind in kinds) else None


def complete_rows(frame: pd.DataFrame, columns: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """The rows with a value in each of these columns, and a notice if that leaves some out."""
    complete = frame.dropna(subset=list(columns)).reset_index(drop=True)
    left_out = len(frame) - len(complete)
    notice = f"--drop-missing left out {left_out} of {len(frame)} rows with missing values; {len(complete)} are left."
    return complete, [notice] if left_out else []


def numeric_frame(frame: pd.DataFrame, remedy: str | None = None) -> pd.DataFrame:
    """The same columns as floats.

    All columns that are not numeric are refused in one message, with this remedy or each with its own.
    """
    plain = [dtype.kind in "fiub" if isinstance(dtype, np.dtype) else False for dtype in frame.dtypes]
    if all(plain):
        # in one block: pandas would otherwise convert ten thousand columns one by one
        numeric = pd.DataFrame(frame.to_numpy(dtype=float), columns=frame.columns, index=frame.index)
    else:
        read = {name: _read(column) for name, column in frame.items()}
        odd = [read_unreadable(frame[name], bad) for name, (_, bad) in read.items() if bad.any()]
        if odd:
            raise TableError(complaint(odd, remedy))
        numeric = pd.DataFrame({name: values.astype(float) for name, (values, _) in read.items()}, index=frame.index)
    infinite = np.isinf(numeric.to_numpy()).any(axis=0)
    if infinite.any():
        which = listed(numeric.columns[infinite])
        drop = f"leave such columns out with {leave_out(numeric.columns[infinite].tolist())}"
        raise TableError(f"Values are infinite in {which}; {remedy or drop}.")
    return numeric


def to_numbers(column: Column) -> Column:
    """Parse a column as numbers; values that are not numbers become missing."""
    try:
        return pd.to_numeric(column, errors="coerce")
    except OverflowError:  # integers with hundreds of digits
        return pd.to_numeric(column.map(_float), errors="coerce")


def _float(value: object) -> float | None:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    except OverflowError:
        return np.inf


def numbers(column: Column, remedy: str) -> Column:
    """The column as floats, with missing values kept; a value that is not a number is reported with its row."""
    found, bad = _read(column)
    if bad.any():
        raise TableError(complaint([read_unreadable(column, bad)], remedy))
    return found.astype(float)


def _read(column: Column) -> tuple[Column, NDArray[np.bool_]]:
    """A column parsed as numbers, and a mask of the rows where that failed."""
    times = pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column)
    if times or column.dtype.kind == "c":
        return column, np.ones(len(column), dtype=bool)
    found = to_numbers(column)
    return found, (found.isna() & column.notna()).to_numpy()


def number_column(column: Column, option: str) -> NDArray[np.float64]:
    """A column with a finite number in every row."""
    remedy = f"{option} needs a number in every row: correct it, or empty the cell and add --drop-missing"
    values = numbers(column, remedy).to_numpy(dtype=float)
    _refuse_missing(np.isnan(values), column, option)
    if not np.isfinite(values).all():
        first = int(np.argmin(np.isfinite(values))) + 1
        raise TableError(f"{option} {column.name!r} is infinite in row {first} below the header; leave the row out.")
    return values


def labels(column: Column, option: str) -> Array:
    """Labels, one in every row: integers, booleans or text."""
    _refuse_missing(column.isna().to_numpy(), column, option)
    if pd.api.types.is_bool_dtype(column):
        return column.to_numpy(dtype=bool)
    if pd.api.types.is_numeric_dtype(column):
        values = number_column(column, option)
        if (values == np.rint(values)).all() and np.abs(values).max() < 2**53:
            return values.astype(np.int64)
    return np.array([str(value) for value in column.tolist()], dtype=str)


def _refuse_missing(missing: NDArray[np.bool_], column: Column, option: str) -> None:
    n = int(missing.sum())
    if n == len(missing):
        raise TableError(f"{option} {column.name!r} is missing in every row: is it the right column?")
    if n:
        rows = f"{n} row{'' if n == 1 else 's'} of {len(missing)}"
        if option == "--target" and column.nunique() == 1:
            raise TableError(one_value(f"{option} {column.name!r}", column.dropna().tolist()[0], rows))
        raise TableError(f"{option} {column.name!r} is missing in {rows}; leave them out with --drop-missing.")
