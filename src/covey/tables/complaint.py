"""The error for unusable tables, helpers for its messages, and the type of a column."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covey.validation import some

# The most characters of a value that a message shows.
LONGEST = 100

# A column of a table.
Column: TypeAlias = "pd.Series[Any]"


class TableError(ValueError):
    """A table cannot be used as it is; the message says why and what to do."""


def shown(value: object) -> str:
    """A value as Python writes it, shortened: a cell of a table may hold a book.

    >>> shown("a"), shown(2.5), shown(np.str_("a")), len(shown("ab" * 1_000_000))
    ("'a'", '2.5', "'a'", 105)
    """
    value = value.item() if isinstance(value, np.generic) else value
    short = shortened(value if isinstance(value, str) else repr(value))
    return repr(short) if isinstance(value, str) else short


def shortened(text: str) -> str:
    """The beginning of a text that is too long to be printed.

    >>> shortened("a"), len(shortened("ab" * 1_000_000))
    ('a', 103)
    """
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def in_sentence(name: str) -> str:
    """A name among others in a sentence: as Python writes it, and shortened, if it has commas or line ends or is long.

    >>> in_sentence("age"), in_sentence("city, state"), len(in_sentence("ab" * 1_000_000))
    ('age', "'city, state'", 105)
    """
    return shown(name) if len(name) > LONGEST or re.search(r"[,;\n\r]", name) else name


def listed(names: Iterable[object], limit: int = 6) -> str:
    """The first few names, each with what a mapping says of it, and a count of the rest.

    >>> listed("abcd", limit=2), listed({"age": "3 rows"})
    ("'a', 'b' and 2 more", "'age' (3 rows)")
    """
    notes = {name: f" ({note})" for name, note in names.items()} if isinstance(names, Mapping) else {}
    return some([shown(str(name)) + notes.get(name, "") for name in names], limit)


def leave_out(names: Sequence[str]) -> str:
    """The call that leaves columns out of a table, short if there are many."""
    return f"X.drop(columns={list(names)!r})" if sum(map(len, names)) < 10 * LONGEST else "X.drop(columns=...)"


def near(name: str, columns: Sequence[str]) -> str:
    """A suggestion for a column name that does not exist.

    >>> near("agee", ["age", "bmi"]), near("Y ", ["age", "y"]), near("x", ["age", "bmi"])
    ("did you mean 'age'?", "did you mean 'y'?", "the columns are 'age', 'bmi'.")
    """
    plain = name.strip().casefold()
    close = [one for one in columns if one.strip().casefold() == plain] or get_close_matches(name, columns, n=1)
    return f"did you mean {close[0]!r}?" if close else f"the columns are {listed(columns)}."


def refuse_rows(
    bad: NDArray[np.bool_], values: NDArray[Any], must: str, remedy: str, against: NDArray[Any] | None = None
) -> None:
    """Refuse values that break a rule, with the first one, its row, and how many there are."""
    if bad.any():
        n, row = int(bad.sum()), int(np.argmax(bad))
        beside = "" if against is None else f" against {against[row]:g}"
        rows = f"{n} such row{'' if n == 1 else 's'}"
        raise TableError(f"{must}, but is {values[row]:g}{beside} in row {row + 1} ({rows}); {remedy}.")


def check_names(names: Sequence[str], where: object) -> None:
    """Refuse duplicate column names, which pandas would silently rename."""
    twice = [name for name, count in Counter(names).items() if name and count > 1]
    if twice:
        raise TableError(f"{where} has several columns of the same name: {listed(twice)}; rename them.")
