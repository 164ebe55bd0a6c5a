"""Dates as numbers: days since a day."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from covey.tables.complaint import TableError

__all__ = ["days_since", "earliest"]


def earliest(column: pd.Series[Any]) -> str:
    """The first day of a column of dates, to count from.

    >>> earliest(pd.Series(["2020-03-02", "2020-03-01"]))
    '2020-03-01'
    """
    first = _times(column).min()
    if pd.isna(first):
        raise TableError(f"--date {column.name}: all dates are missing; leave the column out with --drop.")
    return str(first.date())


def days_since(column: pd.Series[Any], day: str) -> pd.Series[Any]:
    """Days, with their fraction, between a day and the dates of a column; missing dates stay missing.

    >>> days_since(pd.Series(["2020-03-01", "2020-03-02 12:00"]), "2020-03-01").tolist()
    [0.0, 1.5]
    """
    made: pd.Series[Any] = (_times(column) - pd.Timestamp(day, tz="UTC")) / pd.Timedelta(days=1)
    return made


def _times(column: pd.Series[Any]) -> pd.Series[Any]:
    if pd.api.types.is_numeric_dtype(column):
        raise TableError(f"--date {column.name}: the column holds numbers already, which need no --date.")
    times = pd.to_datetime(column, format="ISO8601", errors="coerce", utc=True)
    bad = (times.isna() & column.notna()).to_numpy()
    if bad.any():
        row = int(np.argmax(bad))
        raise TableError(
            f"--date {column.name}: {column.iloc[row]!r} in row {row + 1} below the header is no date; write dates as "
            "2020-12-31."
        )
    return times
