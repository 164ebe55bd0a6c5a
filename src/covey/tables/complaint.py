"""The error for unusable tables, helpers for its messages, and the type of a column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, TypeAlias

import pandas as pd

# A column of a table.
Column: TypeAlias = "pd.Series[Any]"


class TableError(ValueError):
    """A table cannot be used as it is; the message says why and what to do."""


def listed(names: Iterable[object], limit: int = 6) -> str:
    """The first few names, and a count of the rest.

    >>> listed("abcd", limit=2)
    "'a', 'b' and 2 more"
    """
    every = list(names)
    more = f" and {len(every) - limit} more" if len(every) > limit else ""
    return ", ".join(repr(str(name)) for name in every[:limit]) + more


def near(name: str, columns: Sequence[str]) -> str:
    """A suggestion for a column name that does not exist.

    >>> near("agee", ["age", "bmi"]), near("x", ["age", "bmi"])
    ("did you mean 'age'?", "the columns are 'age', 'bmi'.")
    """
    close = get_close_matches(name, columns, n=1)
    return f"did you mean {close[0]!r}?" if close else f"the columns are {listed(columns)}."
