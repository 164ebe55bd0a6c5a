"""Columns that are not numeric: what each of them holds, and what makes it usable."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

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
NUMBER = r"[+\-\u2212]?\s*\d+([.,'\u2019 \u00a0\u202f]\d+)*"
WITH_UNIT = re.compile(rf"{NUMBER}\s*(%|[€$£¥°]|\s[a-zA-Z]{{1,3}}\.?)$|[+\-\u2212]?\s*[€$£¥]\s*{NUMBER}$")
# A longer word, or no space, as in 12kg: such texts are numbers if few words are used, and codes otherwise.
WITH_WORD = re.compile(rf"{NUMBER}(\s+[^\W\d_]+|[^\W\d_]{{2,}})\.?$")
MOST_UNITS = 3

# Other spellings of numbers and dates: a pattern, what a column of them holds, and what to do.
SPELLINGS = (
    (r"[\u2212\u2013]\s*\d*[.,]?\d+([eE][+-]?\d+)?$", "{first}, with a dash instead of a minus", "write a minus"),
    (
        rf"[<>≤≥]=?\s*{NUMBER}$",
        "{first}, a limit instead of a number ({n_bad} of {n_known} values)",
        "write a number, such as half of the limit",
    ),
    (r"[([]\s*[€$£]?\d+([.,]\d+)*\s*[€$£]?[)\]]$", "{first}, a number in brackets", "write it with a minus"),
    (
        r"([01]?\d|2[0-4]):[0-5]\d(:[0-5]\d(\.\d+)?)?( ?[aApP]\.?[mM]\.?)?$",
        "times of the day, {first}",
        "write them as numbers of hours",
    ),
)

# Text with at most this many different values is taken as categories, whatever it looks like.
FEW_LEVELS = 10

# The most texts that may all stand for a missing value, such as "?" and "n. a.".
MOST_CODES = 5
LONGEST_CODE = 20  # characters

# The most columns to list.
MOST_LISTED = 20


@dataclass(frozen=True)
class Unreadable:
    """A column that is not numeric: what it holds, and what to do besides leaving it out."""

    name: str
    holds: str
    remedy: str = ""
    # how to read its table, such as ``decimal=','``, which makes it numeric
    marks: str = ""

    @property
    def steps(self) -> str:
        """What to do, in words."""
        if self.marks:
            return f"read the table with {self.marks}"
        without = f"leave it out with {leave_out([self.name])}"
        return f"{self.remedy}, or {without}" if self.remedy else without


def disguise_of(column: Column) -> tuple[str, str] | None:
    """What numbers such as 1,5 or 2,596 or 12% are written with, and the remedy; None for other text, and for numbers.

    >>> disguise_of(pd.Series(["1,5", "2"])), disguise_of(pd.Series(["u", "v"]))
    (('a decimal comma', "read the table with decimal=','"), None)
    """
    if column.dtype.kind in "biufcmM":
        return None
    texts = _texts(column.dropna())
    if marks := describe_marks(texts):
        return marks[0], f"read the table with {marks[1]}"
    has_units = len(set(texts)) > FEW_LEVELS and _units(texts)
    return ("a number with a unit", "write the number alone") if has_units else None


def read_unreadable(column: Column, bad: NDArray[np.bool_]) -> Unreadable:
    """Describe a column of a matrix whose values in the rows `bad` are not numbers."""
    found = partial(Unreadable, str(column.name))
    becomes = "give terms='auto' instead of groups=, and {} become terms"
    if pd.api.types.is_datetime64_any_dtype(column):
        return found("dates", becomes.format("dates"))
    if pd.api.types.is_timedelta64_dtype(column):
        return found("durations", "write them as numbers in one unit")
    if column.dtype.kind == "c":
        return found("complex numbers", "write two columns")
    texts, first = _texts(column[bad]), _first(column, bad)
    if _all_match(ISO_DATE, texts) or _all_match(OTHER_DATE, texts):
        return found(f"dates, {first}", becomes.format("dates"))
    if fault := _read_fault(column, bad, texts):
        return fault
    n, n_known = column.nunique(), int(column.notna().sum())
    if n_known > 1 and n >= MOSTLY_DIFFERENT * n_known:
        return found(f"text, {first}, with {n} different values in {n_known} rows: an identifier or free text")
    values = f"with {n} different values" if n > 1 else "that is always the same"
    return found(f"text {values}, {first}", becomes.format("categories"))


def find_faulty(columns: Iterable[Column]) -> list[Unreadable]:
    """The columns of text that hold numbers or dates, except that their spelling is not understood."""
    found = []
    for column in columns:
        if column.nunique() > FEW_LEVELS:
            bad = (pd.to_numeric(column, errors="coerce").isna() & column.notna()).to_numpy()
            fault = _read_fault(column, bad, _texts(column[bad]))
            found += [fault] if fault is not None and bad.any() else []
    return found


def _read_fault(column: Column, bad: NDArray[np.bool_], texts: Sequence[str]) -> Unreadable | None:
    """Describe a column that holds numbers or dates, except for the spelling of the texts in some rows."""
    name, first, n_known = str(column.name), _first(column, bad), int(column.notna().sum())
    if _all_match(OTHER_DATE, texts):
        holds = f"dates, {first}, of which the day or the month may come first"
        return Unreadable(name, holds, "write them as 2020-12-31")
    if dates := _read_dates(column, bad, texts):
        return dates
    if marks := describe_marks(texts):
        return Unreadable(name, f"{first}, {marks[0]}", marks=marks[1])
    if _units(texts):
        return Unreadable(name, f"{first}, a number with a unit", "write the number alone")
    for pattern, holds, remedy in SPELLINGS:
        if _all_match(re.compile(pattern), texts):
            return Unreadable(name, holds.format(first=first, n_bad=int(bad.sum()), n_known=n_known), remedy)
    return _read_odd(column, bad, "a number") if 2 * bad.sum() < n_known else None


def _read_dates(column: Column, bad: NDArray[np.bool_], texts: Sequence[str]) -> Unreadable | None:
    """Describe a column of dates that are written in several ways, of which some do not exist, or among other text."""
    iso = [bool(ISO_DATE.match(text)) for text in texts]
    are_dates = [is_iso or bool(OTHER_DATE.match(text)) for is_iso, text in zip(iso, texts, strict=True)]
    if 2 * sum(are_dates) <= len(texts):
        return None
    if not all(are_dates):
        known = column.astype(str).str.strip()
        return _read_odd(column, bad & ~(known.str.match(ISO_DATE) | known.str.match(OTHER_DATE)).to_numpy(), "a date")
    if not all(iso):
        holds = f"dates in more than one format, {texts[iso.index(True)]!r} and {texts[iso.index(False)]!r}"
        return Unreadable(str(column.name), holds, "write all as 2020-12-31")
    odd = np.zeros_like(bad)
    read = pd.to_datetime(pd.Series(texts), format="ISO8601", errors="coerce", utc=True)
    odd[np.flatnonzero(bad)[: len(texts)]] = read.isna()
    return _read_odd(column, odd, "a date") if odd.any() else None


def _read_odd(column: Column, odd: NDArray[np.bool_], what: str) -> Unreadable:
    """Describe a column in which these rows are the only ones that are not numbers, or not dates."""
    name, n_odd = str(column.name), int(odd.sum())
    different = list(dict.fromkeys(_texts(column[odd])))
    more = "" if n_odd == 1 else f" ({n_odd} of {column.notna().sum()} values are not: {listed(different, 3)})"
    levels = f"take its values as categories with terms={{{name!r}: 'levels'}}"
    remedy = f"correct it or empty the cell, {levels} if they are codes"
    are_codes = all(len(text) <= LONGEST_CODE and not re.search(r"\d", text) for text in different)
    if len(different) <= MOST_CODES and are_codes:
        remedy = f"if that means missing, read the table with na_values={different!r}; otherwise {remedy}"
    if n_odd == 1 and odd[-1]:
        remedy = f"if the last row sums up the others, delete it; {remedy}"
    return Unreadable(name, f"{_first(column, odd)}, which is not {what}{more}", remedy)


def _texts(values: Column) -> list[str]:
    """The first values as text."""
    return [str(value).strip() for value in values.head(LOOKED_AT)]


def _units(texts: Sequence[str]) -> bool:
    """Whether all texts are numbers with units.

    >>> _units(["1.234,50 €", "7 €"]), _units(["12kg", "3 kg"]), _units(["12a", "14b", "15c", "16d"])
    (True, True, False)
    """
    if _all_match(WITH_UNIT, texts):
        return True
    units = {text.lstrip("+-\u20120123456789.,'\u2019 \u00a0\u202f") for text in texts}
    return len(units) <= MOST_UNITS and all(WITH_UNIT.match(text) or WITH_WORD.match(text) for text in texts)


def _first(column: Column, bad: NDArray[np.bool_]) -> str:
    row = int(np.argmax(bad))
    return f"{shown(column.iloc[row])} in row {row + 1} below the header"


def complaint(found: Sequence[Unreadable], remedy: str | None = None) -> str:
    """The message for all columns that are not numeric, with a common remedy or one for each."""
    if len(found) == 1:
        (one,) = found
        return f"Column {shown(one.name)} holds {one.holds}; {one.steps if one.marks or remedy is None else remedy}."
    lines = [f"{shown(one.name)} holds {one.holds}" + ("" if remedy else f"; {one.steps}") for one in found]
    lines = lines[:MOST_LISTED]
    lines += [f"and {len(found) - MOST_LISTED} more columns"] * (len(found) > MOST_LISTED)
    drop = [one.name for one in found if not one.marks]
    marks = list(dict.fromkeys(one.marks for one in found if one.marks))
    marks = [one for one in marks if " or " not in one] or marks  # a certain mark settles it for all columns
    marks = [one for one in marks if not any(one in other for other in marks if other != one)]
    steps = [*marks, *([leave_out(drop)] if drop else [])]
    short = f"; {remedy}:" if remedy else f"; in short, {', '.join(steps)}:"
    return f"{len(found)} columns cannot be read as numbers{short}" + "".join(f"\n  - {line}" for line in lines)


def _all_match(pattern: re.Pattern[str], texts: Sequence[str]) -> bool:
    return all(pattern.match(text) for text in texts)
