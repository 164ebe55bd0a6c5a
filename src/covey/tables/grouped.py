"""A table of numbers, its response and its groups, in one call."""

from __future__ import annotations

from pathlib import Path

from covey.datasets import GroupedData
from covey.tables.columns import missing_values, numbers, numeric_frame
from covey.tables.complaint import TableError, near
from covey.tables.grouping import read_groups
from covey.tables.reading import read_tables

__all__ = ["read_grouped"]


def read_grouped(data: Path, target: str, groups: str | None) -> GroupedData:
    """Read a table, take one column as the response, and group the others."""
    frame = read_tables([data])
    if target not in frame.columns:
        raise TableError(f"{data} has no column {target!r} for --target; {near(target, list(frame.columns))}")
    columns = frame.drop(columns=target)
    if columns.shape[1] == 0:
        raise TableError(f"{data} has no column besides the target {target!r}.")
    X = numeric_frame(columns, "encode it")
    y = numbers(frame[target], "encode it")
    counts = missing_values(frame)
    if counts:
        shown = ", ".join(f"{name!r} ({count})" for name, count in list(counts.items())[:6])
        raise TableError(f"Values are missing in {shown}; impute or drop them first.")
    return GroupedData(X, y.to_numpy(dtype=float), read_groups(groups, list(X.columns)))
