"""What a column holds, judged by its type and its values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from numbers import Number as AnyNumber
from typing import Any

import numpy as np
import pandas as pd

from covey.tables.complaint import Column
from covey.tables.marks import are_codes
from covey.terms.reading import missing_values, text_columns
from covey.validation import FloatArray

ISO_DATE = re.compile(r"\d{4}-\d{2}(-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?\s?(Z|[+-]\d{2}:?\d{2})?)?)?")
DATE = re.compile(r"\d{1,4}([./-])\d{1,2}\1\d{1,4}( \d{1,2}:\d{2}(:\d{2})?)?")
NAMED_MONTHS = [
    one.replace("%b", month)
    for month in ("%b", "%B")
    for one in ("%d %b %Y", "%d-%b-%Y", "%d/%b/%Y", "%d. %b %Y", "%b %d, %Y", "%b %d %Y", "%d-%b-%y", "%b %Y")
]
IDENTIFIER = re.compile(
    r"(.*[\W_])?(id|ids|uuid|guid|key)|.*[a-z](Id|ID)|index|idx|row|rowid|rownames?|rownum|record|serial|unnamed: \d+|"
)
# Numbers of rows are a trend under these names.
TREND = re.compile(
    r"(.*[\W_])?(t|time|times|date|trend|period|year|quarter|month|week|day|days|hour|age|rank|order|step|position|dose)"
)
# Nearly all distinct: text that repeats less than this is a name of rows.
DISTINCT = 0.95
# A table with fewer rows has consecutive numbers by chance or by design (doses, years).
LEAST_SEQUENCE = 10
# Text with more distinct values per row than this, and more than a handful of them, is free text.
FREE_TEXT_SHARE = 0.25
FREE_TEXT_LEVELS = 10


@dataclass(frozen=True)
class Guess:
    """What a column holds: "number", "boolean", "ordered", "levels", "date" or "objects".

    `integer` says whether numbers are integers, `format` how dates are written if that is not ISO 8601.
    """

    holds: str
    integer: bool = False
    format: str = ""


def guess(column: Column) -> Guess:
    """What a column holds; text counts as numbers or dates if all of its values are."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return Guess("ordered" if dtype.ordered else "levels")
    if isinstance(dtype, pd.PeriodDtype) or dtype.kind == "M":
        return Guess("date")
    if pd.api.types.is_bool_dtype(dtype):
        return Guess("boolean")
    if pd.api.types.is_numeric_dtype(dtype) and dtype.kind != "c":
        return Guess("number", integer=pd.api.types.is_integer_dtype(dtype))
    if dtype.kind == "m":
        return Guess("number")
    if not all(isinstance(value, str | AnyNumber | date | np.generic) or pd.isna(value) is True for value in column):
        return Guess("objects")  # that may have no hash, such as lists
    values = column[~missing_values(column)].unique()
    if any(isinstance(value, complex | np.complexfloating) for value in values):
        return Guess("objects")
    if len(values) == 0:
        return Guess("number")
    if all(isinstance(value, bool | np.bool_) for value in values):
        return Guess("boolean")
    texts = [value for value in values if isinstance(value, str)]
    if not texts:
        if all(isinstance(value, date | np.datetime64) for value in values):
            return Guess("date")
        integer = all(isinstance(value, int | np.integer) for value in values)
        return Guess("number", integer)
    if len(texts) < len(values):
        return Guess("levels")
    if {text.lower() for text in texts} <= {"true", "false"}:
        return Guess("boolean")
    if are_codes(texts):
        return Guess("levels")
    try:
        numbers = pd.to_numeric(np.array(texts, dtype=object))
        return Guess("number", integer=numbers.dtype.kind in "iu")
    except (TypeError, ValueError):
        pass
    if all(ISO_DATE.fullmatch(text.strip()) for text in texts):
        try:
            pd.to_datetime(np.array(texts, dtype=object), format="ISO8601", utc=True)
            return Guess("date")
        except (ValueError, OverflowError):
            pass
    written = date_format(texts)
    return Guess("date", format=written) if written else Guess("levels")


def date_format(texts: Sequence[str]) -> str:
    """How dates such as 31.12.2020 or 12/31/2020 are written; empty if they are no dates or may be read in two ways.

    >>> date_format(["31/12/2020", "1/2/2021"]), date_format(["3.4.21", "5.6.21"]), date_format(["3/4/2021"])
    ('%d/%m/%Y', '%d.%m.%y', '')
    """
    named = [one for one in NAMED_MONTHS if texts and _is_written(texts, one)]
    if named:
        return named[0]
    match = [DATE.fullmatch(text.strip()) for text in texts]
    marks = {found[1] for found in match if found}
    if not all(match) or len(marks) != 1:
        return ""
    (mark,) = marks
    orders = [mark.join(parts) for year in "Yy" for parts in (("%d", "%m", f"%{year}"), ("%m", "%d", f"%{year}"))]
    formats = [f"{order}{time}" for order in (f"%Y{mark}%m{mark}%d", *orders) for time in ("", " %H:%M", " %H:%M:%S")]
    valid = [one for one in formats if _is_written(texts, one)]
    # with points, the day comes first everywhere
    return valid[0] if len(valid) == 1 or (valid and mark == ".") else ""


def _is_written(texts: Sequence[str], format: str) -> bool:
    try:
        pd.to_datetime(np.array([text.strip() for text in texts], dtype=object), format=format)
    except (ValueError, OverflowError):
        return False
    return True


def with_dates_and_codes(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with dates, and categories of codes, in place of text that only all of its rows show to be such."""
    settled: dict[str, Any] = {}
    for name, column in text_columns(frame):
        found, known = guess(column), column.where(~missing_values(column))
        if found.format:
            settled[str(name)] = pd.to_datetime(known, format=found.format)
        elif found.holds == "levels":
            texts = [str(value) for value in known.dropna()]
            if are_codes(set(texts)) and text_reason(texts) is None:
                settled[str(name)] = known.astype("category")
    return frame.assign(**settled) if settled else frame


def looks_like_identifier(name: str, distinct: FloatArray, n_values: int) -> bool:
    """Whether sorted distinct integers of a column with so many values number its rows.

    They are all different and either count from 0 or 1, unless the name says that this is a trend, or the name says
    that they are identifiers.
    """
    if len(distinct) < n_values or n_values < LEAST_SEQUENCE:
        return False
    counting = distinct[0] in (0, 1) and distinct[-1] - distinct[0] == n_values - 1
    counting = counting and not TREND.fullmatch(name.lower())
    return bool(counting or IDENTIFIER.fullmatch(name) or IDENTIFIER.fullmatch(name.lower()))


def text_reason(known: Sequence[str]) -> str | None:
    """Why text is left out, if it is: it identifies rows, or is free text or codes that hardly repeat."""
    n_distinct, n_values = len(set(known)), len(known)
    if n_values >= LEAST_SEQUENCE and n_distinct > DISTINCT * n_values:
        return "identifiers: nearly all values are different"
    if n_distinct > max(FREE_TEXT_LEVELS, FREE_TEXT_SHARE * n_values):
        return f"{'codes' if are_codes(set(known)) else 'free text'}: {n_distinct} different values"
    return None
