"""Escape text that a spreadsheet would run as a formula, and undo it when reading."""

from __future__ import annotations

import re
from collections.abc import Callable

import pandas as pd

# The first characters of a formula in Excel, LibreOffice and Google Sheets, including full-width forms. Apostrophes
# before them are guards already, or text that looks like one.
FORMULA = re.compile("'*[=+\\-@\\t\\r\uff1d\uff0b\uff0d\uff20]")


def guarded(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with an apostrophe before all text that begins like a formula, in cells and in names.

    >>> guarded(pd.DataFrame({"=1+1": ["@a", "-2", "b-c"]})).to_dict("list")
    {"'=1+1": ["'@a", '-2', 'b-c']}
    """
    return _mapped(frame, lambda text: f"'{text}" if FORMULA.match(text) and not _is_number(text) else text)


def unguarded(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame as it was before `guarded`."""
    return _mapped(frame, lambda text: text[1:] if text.startswith("'") and FORMULA.match(text) else text)


def _mapped(frame: pd.DataFrame, change: Callable[[str], str]) -> pd.DataFrame:
    """The frame with other texts, in cells and in names."""
    changed = frame.copy(deep=False)
    for j, dtype in enumerate(frame.dtypes):
        if dtype.kind == "O":
            column = frame.iloc[:, j].astype(object)
            other = {value: change(value) for value in column.unique() if isinstance(value, str)}
            if any(value != shown for value, shown in other.items()):
                changed.isetitem(j, column.map(lambda value, other=other: other.get(value, value)).to_numpy())
    changed.columns = frame.columns.map(lambda name: change(name) if isinstance(name, str) else name)
    return changed


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
