"""Marks in numbers: which one is the decimal mark, and which separates thousands."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pandas as pd

from covey.tables.complaint import Column, TableError, shown

# Marks between thousands, as options name them, and the characters that are written.
THOUSANDS = {",": ",", ".": r"\.", "space": "[ \u00a0\u202f]", "'": "['\u2019]"}
OTHER = {",": ".", ".": ","}
WORDS = {",": "commas", ".": "points", "space": "spaces", "'": "apostrophes"}

DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
INTEGER = re.compile(r"[+-]?\d+")
# Digits that are no number: 00731.
CODE = re.compile(r"0\d+")
DIGITS = re.compile(r"\d+")
BELOW_1000 = re.compile(r"[+-]?\d{1,3}")


@dataclass(frozen=True)
class Marks:
    """The decimal mark, and the one between thousands; None where neither was given, so that doubts are said."""

    decimal: str = "."
    thousands: str | None = None

    @classmethod
    def of(cls, decimal: str | None, thousands: str | None) -> Marks:
        """The marks of a table: of the comma and the point, either determines the other.

        >>> Marks.of(",", None), Marks.of(None, "'"), Marks.of(None, None)
        (Marks(decimal=',', thousands='.'), Marks(decimal='.', thousands="'"), Marks(decimal='.', thousands=None))
        """
        if decimal not in (None, *OTHER):
            raise TableError(f"decimal= must be '.' or ',', not {decimal!r}.")
        if thousands is None:
            return cls() if decimal is None else cls(decimal, OTHER[decimal])
        named = "space" if re.fullmatch(THOUSANDS["space"], thousands) else thousands
        if named not in THOUSANDS:
            raise TableError(f"thousands= must be ',', '.', 'space' or an apostrophe, not {thousands!r}.")
        if decimal == named:
            raise TableError(
                f"decimal={decimal!r} and thousands={thousands!r} are the same mark: give one, and it determines the "
                "other."
            )
        return cls(decimal or OTHER.get(named, "."), named)

    def grouped(self) -> re.Pattern[str]:
        """Matches a number with marks between thousands: ``2,596`` or ``1.057.566,5``."""
        assert self.thousands is not None
        return re.compile(rf"[+-]?[1-9]\d{{0,2}}({THOUSANDS[self.thousands]}\d{{3}})+({re.escape(self.decimal)}\d*)?")


def as_numbers(frame: pd.DataFrame, marks: Marks) -> pd.DataFrame:
    """The frame with numbers in place of text such as ``2,596``, in columns where that leaves only numbers.

    In other columns these values lose their marks, so that a message names the values that are no numbers.
    """
    if marks.thousands is None:
        return frame
    grouped, between = marks.grouped(), re.compile(THOUSANDS[marks.thousands])
    changed = frame.copy(deep=False)
    for j, dtype in enumerate(frame.dtypes):
        column = frame.iloc[:, j]
        if dtype.kind != "O" or isinstance(dtype, pd.CategoricalDtype):
            continue
        texts = {value: value.strip() for value in column.dropna().unique() if isinstance(value, str)}
        plain = {
            v: between.sub("", text).replace(marks.decimal, ".") for v, text in texts.items() if grouped.fullmatch(text)
        }
        if marks.decimal == ",":
            plain |= {v: text.replace(",", ".") for v, text in texts.items() if DECIMAL_COMMA.fullmatch(text)}
        if plain:
            values = column.astype(object).map(lambda value, plain=plain: plain.get(value, value))
            with suppress(ValueError, TypeError):
                values = pd.to_numeric(values)
            changed.isetitem(j, values.to_numpy())
    return changed


def describe_marks(texts: Sequence[str]) -> tuple[str, str] | None:
    """What the marks in these texts are, and what to do; None if they are not numbers with marks.

    >>> describe_marks(["1,5", "2"])
    ('a decimal comma', "decimal=','")
    >>> describe_marks(["1,057,566", "957"])
    ('with commas between thousands', "thousands=','")
    >>> describe_marks(["1.234,5", "0,5"])
    ('with points between thousands and a decimal comma', "decimal=',' and thousands='.'")
    >>> describe_marks(["1 234,5", "957"])
    ('with spaces between thousands and a decimal comma', "decimal=',' and thousands='space'")
    >>> describe_marks(["2,596", "957"])
    ("which is 2596 with thousands=',' and 2.596 with decimal=','", "thousands=',' or decimal=','")
    """
    for mark, decimal in itertools.product(THOUSANDS, ".,"):
        if mark == decimal:
            continue
        grouped, is_plain = Marks(decimal, mark).grouped(), _is_plain if decimal == "." else _is_plain_with_comma
        marked = [text for text in texts if grouped.fullmatch(text)]
        if not marked or not all(grouped.fullmatch(text) or is_plain(text) for text in texts):
            continue
        if decimal == "," and any("," in text for text in texts):
            return f"with {WORDS[mark]} between thousands and a decimal comma", f"decimal=',' and thousands={mark!r}"
        if mark != "," or not _may_be_decimals(texts):
            return f"with {WORDS[mark]} between thousands", f"thousands={mark!r}"
        first = marked[0]
        return (
            f"which is {first.replace(',', '')} with thousands=',' and {first.replace(',', '.')} with decimal=','",
            "thousands=',' or decimal=','",
        )
    return ("a decimal comma", "decimal=','") if _may_be_decimals(texts) else None


def _may_be_decimals(texts: Sequence[str]) -> bool:
    """Whether all texts are whole numbers or have one decimal comma."""
    return any(map(DECIMAL_COMMA.fullmatch, texts)) and all(map(_is_plain_with_comma, texts))


def _is_plain_with_comma(text: str) -> bool:
    return bool(DECIMAL_COMMA.fullmatch(text) or INTEGER.fullmatch(text))


def _is_plain(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def are_codes(texts: Iterable[str]) -> bool:
    """Whether texts are digits, some with leading zeros: a postcode or the number of an account, not an amount.

    >>> are_codes(["00731", "10115"]), are_codes(["0", "10"]), are_codes(["01.5", "2"])
    (True, False, False)
    """
    plain = [text.strip() for text in texts]
    return any(map(CODE.fullmatch, plain)) and all(map(DIGITS.fullmatch, plain))


def doubtful_points(column: Column) -> bool:
    """Whether numbers such as 1.31 and 297 may have been written as 1.310 and 297: all have up to three decimals."""
    if column.dtype.kind != "f":
        return False
    values = np.abs(column.to_numpy(dtype=float, na_value=np.nan))
    values = values[~np.isnan(values)]
    whole = values == np.rint(values)
    if whole.all() or not whole.any() or values.max() >= 1000 or values[~whole].min() < 1:
        return False
    return bool(np.allclose(values * 1000, np.rint(values * 1000), rtol=0, atol=1e-6))


def refuse_doubtful(frame: pd.DataFrame, where: object) -> None:
    """Refuse a column of text such as 1.310 beside 297: with decimals there would be 1.31, or 297.000."""
    grouped = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}")
    for name, column in frame.items():
        texts = [str(value).strip() for value in column.dropna().unique()]
        marked = [text for text in texts if grouped.fullmatch(text)]
        others = [text for text in texts if not grouped.fullmatch(text)]
        if marked and others and all(BELOW_1000.fullmatch(text) for text in others):
            raise TableError(
                f"{where}: column {shown(name)} holds {marked[0]!r} beside {others[0]!r}: read the table with "
                f"thousands='.' if that is {marked[0].replace('.', '')}, or with decimal='.' if it has three decimals."
            )
