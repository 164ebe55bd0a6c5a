"""Columns that are not numeric: what each of them holds, and what makes it usable."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covey.tables.complaint import Column, leave_out, listed, shown
from covey.tables.marks import describe_marks

# A column with more distinct values than this share of the rows is an identifier or free text: a category seen only
# once says nothing about other rows. A few repeated values do not turn the rest into categories.
MOSTLY_DIFFERENT = 0.9

# The most values inspected to find out what a text column holds.
LOOKED_AT = 1000

ISO_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([ T].*)?$")
OTHER_DATE = re.compile(r"\d{1,2}([./-])\d{1,2}\1(\d{4}|\d{2})$|\d{4}([./])\d{1,2}\3\d{1,2}$")
WITH_UNIT = re.compile(r"[+-]?\d+([.,]\d+)?\s*(%|[€$£]|\s[a-zA-Z]{1,3})$|[€$£]\s*\d+([.,]\d+)*$")
IN_BRACKETS = re.compile(r"[([]\s*[€$£]?\d+([.,]\d+)*\s*[€$£]?[)\]]$")
TIME_OF_DAY = re.compile(r"([01]?\d|2[0-4]):[0-5]\d(:[0-5]\d(\.\d+)?)?( ?[aApP]\.?[mM]\.?)?$")

# Text with at most this many different values is taken as categories, whatever it looks like.
FEW_LEVELS = 10

# The most texts that may all stand for a missing value, such as "?" and "n. a.".
MOST_CODES = 5
LONGEST_CODE = 20  # characters

# The most columns to list.
MOST_LISTED = 20


@dataclass(frozen=True)
class Unreadable:
    """A column that is not numeric."""

    name: str
    holds: str  # description of its contents
    remedy: str  # what to do
    # How to read its table, such as ``decimal=','``; empty if the column can only be left out or be changed
    marks: str = ""


def is_identifier(column: Column) -> bool:
    """Whether nearly every row has a different value.

    >>> is_identifier(pd.Series(["p1", "p2", "p3"])), is_identifier(pd.Series(["a", "b", "a"]))
    (True, False)
    """
    known = column.dropna()
    return len(known) > 1 and known.nunique() >= MOSTLY_DIFFERENT * len(known)


def marks_of(column: Column) -> tuple[str, str] | None:
    """What the marks in a column of numbers such as 1,5 or 2,596 are, and how to read its table; None without marks."""
    if column.dtype.kind in "biufcmM":
        return None
    return describe_marks([str(value).strip() for value in column.dropna().head(LOOKED_AT)])


def read_unreadable(column: Column, bad: NDArray[np.bool_]) -> Unreadable:
    """Describe a column of a matrix whose values in the rows `bad` are not numbers."""
    name = str(column.name)
    without = f"leave it out with {leave_out([name])}"
    becomes = "give terms='auto' instead of groups=, and {} become terms, or " + without
    if pd.api.types.is_datetime64_any_dtype(column):
        return Unreadable(name, "holds dates", becomes.format("dates"))
    if pd.api.types.is_timedelta64_dtype(column):
        return Unreadable(name, "holds durations", f"write them as numbers in one unit, or {without}")
    if column.dtype.kind == "c":
        return Unreadable(name, "holds complex numbers", f"write two columns, or {without}")
    texts = [str(value).strip() for value in column[bad].head(LOOKED_AT)]
    if _all_match(ISO_DATE, texts) or _all_match(OTHER_DATE, texts):
        return Unreadable(name, f"holds dates, {_first(column, bad)}", becomes.format("dates"))
    faulty = _read_fault(column, bad, texts)
    if faulty is not None:
        return faulty
    n, n_known = column.nunique(), int(column.notna().sum())
    if is_identifier(column):
        holds = f"holds text, {_first(column, bad)}, with {n} different values in {n_known} rows"
        return Unreadable(name, f"{holds}: an identifier or free text", without)
    values = f"with {n} different values, " if n > 1 else "that is always the same, "
    return Unreadable(name, f"holds text {values}{_first(column, bad)}", becomes.format("categories"))


def find_faulty(columns: Iterable[Column]) -> list[Unreadable]:
    """The columns of text that hold numbers or dates, except that their spelling is not understood."""
    found = []
    for column in columns:
        if column.nunique() > FEW_LEVELS:
            bad = (pd.to_numeric(column, errors="coerce").isna() & column.notna()).to_numpy()
            fault = _read_fault(column, bad, [str(value).strip() for value in column[bad].head(LOOKED_AT)])
            found += [fault] if fault is not None and bad.any() else []
    return found


def _read_fault(column: Column, bad: NDArray[np.bool_], texts: Sequence[str]) -> Unreadable | None:
    """Describe a column that holds numbers or dates, except for the spelling of the texts in some rows."""
    name, first = str(column.name), _first(column, bad)
    without = f"leave it out with {leave_out([name])}"
    levels = f"take its values as categories with terms={{{name!r}: 'levels'}}"
    if _all_match(OTHER_DATE, texts):
        return Unreadable(
            name,
            f"holds dates, {first}, of which the day or the month may come first",
            f"write them as 2020-12-31, or {without}",
        )
    if marks := describe_marks(texts):
        holds, remedy = marks
        return Unreadable(name, f"holds {first}, {holds}", f"read the table with {remedy}", remedy)
    if _all_match(WITH_UNIT, texts):
        return Unreadable(name, f"holds {first}, a number with a unit", f"write the number alone, or {without}")
    if _all_match(IN_BRACKETS, texts):
        return Unreadable(name, f"holds {first}, a number in brackets", f"write it with a minus, or {without}")
    if _all_match(TIME_OF_DAY, texts):
        return Unreadable(name, f"holds times of the day, {first}", f"write them as numbers of hours, or {without}")
    n_bad, n_known = int(bad.sum()), int(column.notna().sum())
    if 2 * n_bad < n_known:
        different = list(dict.fromkeys(texts))
        more = "" if n_bad == 1 else f" ({n_bad} of {n_known} values are not: {listed(different, 3)})"
        remedy = f"correct it or empty the cell, {levels} if they are codes, or {without}"
        are_codes = all(len(text) <= LONGEST_CODE and not re.search(r"\d", text) for text in different)
        if len(different) <= MOST_CODES and are_codes:
            remedy = f"if that means missing, read the table with na_values={different!r}; otherwise {remedy}"
        return Unreadable(name, f"holds {first}, which is not a number{more}", remedy)
    return None


def _first(column: Column, bad: NDArray[np.bool_]) -> str:
    row = int(np.argmax(bad))
    return f"{shown(column.iloc[row])} in row {row + 1} below the header"


def complaint(found: Sequence[Unreadable], remedy: str | None = None) -> str:
    """The message for all columns that are not numeric, with a common remedy or one for each."""
    if len(found) == 1:
        (one,) = found
        return f"Column {shown(one.name)} {one.holds}; {one.remedy if one.marks or remedy is None else remedy}."
    lines = [f"{shown(one.name)} {one.holds}" + ("" if remedy else f"; {one.remedy}") for one in found[:MOST_LISTED]]
    lines += [f"and {len(found) - MOST_LISTED} more columns"] * (len(found) > MOST_LISTED)
    drop = [one.name for one in found if not one.marks]
    marks = list(dict.fromkeys(one.marks for one in found if one.marks))
    marks = [one for one in marks if " or " not in one] or marks  # a certain mark settles it for all columns
    marks = [one for one in marks if not any(one in other for other in marks if other != one)]
    steps = [*marks, *([leave_out(drop)] if drop else [])]
    short = f"; {remedy}:" if remedy else f"; in short, {' and '.join(steps)}:"
    return f"{len(found)} columns cannot be read as numbers{short}" + "".join(f"\n  - {line}" for line in lines)


def _all_match(pattern: re.Pattern[str], texts: Sequence[str]) -> bool:
    return all(pattern.match(text) for text in texts)
