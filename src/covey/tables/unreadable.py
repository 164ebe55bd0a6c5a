"""Columns that are not numeric: what each of them holds, and which command-line option makes it usable."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covey.tables.complaint import Column

# A column with more distinct values than this share of the rows is an identifier or free text: a category seen only
# once says nothing about other rows. A few repeated values do not turn the rest into categories.
MOSTLY_DIFFERENT = 0.9

# The most values inspected to find out what a text column holds.
LOOKED_AT = 1000

ISO_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([ T].*)?$")
OTHER_DATE = re.compile(r"\d{1,2}([./-])\d{1,2}\1(\d{4}|\d{2})$|\d{4}([./])\d{1,2}\3\d{1,2}$")
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?$|[+-]?\d+$")
WITH_UNIT = re.compile(r"[+-]?\d+([.,]\d+)?\s*(%|[€$£]|\s[a-zA-Z]{1,3})$|[€$£]\s*\d+([.,]\d+)*$")

# The most columns to list.
MOST_LISTED = 20


@dataclass(frozen=True)
class Unreadable:
    """A column that is not numeric.

    Attributes
    ----------
    name : str
    holds : str
        Description of its contents.
    remedy : str
        What to do.
    option : str
        The option that does it; empty if the file must be changed.
    """

    name: str
    holds: str
    remedy: str
    option: str = ""


def is_identifier(column: Column) -> bool:
    """Whether nearly every row has a different value.

    >>> is_identifier(pd.Series(["p1", "p2", "p3"])), is_identifier(pd.Series(["a", "b", "a"]))
    (True, False)
    """
    known = column.dropna()
    return len(known) > 1 and known.nunique() >= MOSTLY_DIFFERENT * len(known)


def has_decimal_commas(column: Column) -> bool:
    """Whether a column of text holds numbers such as 1,5.

    >>> has_decimal_commas(pd.Series(["1,5", "2"])), has_decimal_commas(pd.Series(["1,5", "low"]))
    (True, False)
    """
    texts = [str(value).strip() for value in column.dropna().head(LOOKED_AT)]
    return _all_match(DECIMAL_COMMA, texts) and any("," in text for text in texts)


def read_unreadable(column: Column, bad: NDArray[np.bool_]) -> Unreadable:
    """Describe a column whose values in the rows `bad` are not numbers."""
    name = str(column.name)
    drop, without = f"--drop {_shell(name)}", f"leave the column out with --drop {_shell(name)}"
    date = f"--date {_shell(name)}"
    if pd.api.types.is_datetime64_any_dtype(column):
        return Unreadable(name, "holds dates", f"convert them to days with {date}, or {without}", date)
    if pd.api.types.is_timedelta64_dtype(column):
        return Unreadable(name, "holds durations", f"write them as numbers in one unit, or {without}", drop)
    if column.dtype.kind == "c":
        return Unreadable(name, "holds complex numbers", f"write two columns, or {without}", drop)
    texts = [str(value).strip() for value in column[bad].head(LOOKED_AT)]
    row = int(np.argmax(bad))
    first = f"{column.iloc[row]!r} in row {row + 1} below the header"
    if _all_match(ISO_DATE, texts):
        return Unreadable(name, f"holds dates, {first}", f"convert them to days with {date}, or {without}", date)
    if _all_match(OTHER_DATE, texts):
        remedy = f"write them as 2020-12-31 and give {date}, or {without}"
        return Unreadable(name, f"holds dates, {first}", remedy, drop)
    if _all_match(DECIMAL_COMMA, texts):
        return Unreadable(name, f"holds {first}, a decimal comma", "read the table with --decimal ,", "--decimal ,")
    if _all_match(WITH_UNIT, texts):
        return Unreadable(name, f"holds {first}, a number with a unit", f"write the number alone, or {without}", drop)
    n_bad, n_known = int(bad.sum()), int(column.notna().sum())
    if 2 * n_bad < n_known:
        more = "" if n_bad == 1 else f" ({n_bad} of {n_known} values are not)"
        remedy = f"correct it or empty the cell, treat all values as categories with --onehot {_shell(name)}, or "
        return Unreadable(name, f"holds {first}, which is not a number{more}", remedy + without, drop)
    n = column.nunique()
    if is_identifier(column):
        holds = f"holds text, {first}, with {n} different values in {n_known} rows: an identifier or free text"
        return Unreadable(name, holds, without, drop)
    onehot = f"--onehot {_shell(name)}"
    holds = f"holds text with {n} different values, {first}"
    return Unreadable(name, holds, f"expand its values into a group with {onehot}, or {without}", onehot)


def complaint(found: Sequence[Unreadable], remedy: str | None = None) -> str:
    """The message for all columns that are not numeric, with a common remedy or one for each."""
    if len(found) == 1:
        return f"Column {found[0].name!r} {found[0].holds}; {remedy or found[0].remedy}."
    lines = [f"{one.name!r} {one.holds}" + ("" if remedy else f"; {one.remedy}") for one in found[:MOST_LISTED]]
    lines += [f"and {len(found) - MOST_LISTED} more columns"] * (len(found) > MOST_LISTED)
    options = list(dict.fromkeys(one.option for one in found if one.option))
    short = f"; {remedy}:" if remedy else f"; in short, {' '.join(options)}:"
    return f"{len(found)} columns are not numeric{short}" + "".join(f"\n  - {line}" for line in lines)


def _all_match(pattern: re.Pattern[str], texts: Sequence[str]) -> bool:
    return all(pattern.match(text) for text in texts)


def _shell(name: str) -> str:
    """A name quoted for a shell."""
    return name if re.fullmatch(r"[\w.:-]+", name) else "'" + name.replace("'", "'\\''") + "'"
