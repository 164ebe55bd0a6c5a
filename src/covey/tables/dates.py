"""Dates as numbers: days since a reference day."""

from __future__ import annotations

import numpy as np
import pandas as pd

from covey.tables.complaint import Column, TableError


def earliest(column: Column) -> str:
    """The earliest date of a column, used as the reference day.

    >>> earliest(pd.Series(["2020-03-02", "2020-03-01"]))
    '2020-03-01'
    """
    times = _times(column)
    if times.isna().all():
        raise TableError(f"--date {column.name}: all dates are missing; leave the column out with --drop.")
    return str(times.min().date())


def days_since(column: Column, day: str) -> Column:
    """Days, with fractions, from a day to the dates of a column; missing dates stay missing.

    >>> days_since(pd.Series(["2020-03-01", "2020-03-02 12:00"]), "2020-03-01").tolist()
    [0.0, 1.5]
    """
    days: Column = (_times(column) - pd.Timestamp(day, tz="UTC")) / pd.Timedelta(days=1)
    return days


def _times(column: Column) -> Column:
    if pd.api.types.is_numeric_dtype(column):
        raise TableError(f"--date {column.name}: the column already holds numbers; leave out --date.")
    times = pd.to_datetime(column, format="ISO8601", errors="coerce", utc=True)
    bad = (times.isna() & column.notna()).to_numpy()
    if bad.any():
        row = int(np.argmax(bad))
        raise TableError(
            f"--date {column.name}: {column.iloc[row]!r} in row {row + 1} below the header is not a date; write dates "
            "as 2020-12-31."
        )
    return times
