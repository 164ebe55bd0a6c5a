"""Summary: a few sentences and a table, as text and for notebooks; and one-line descriptions of dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, fields
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Summary", "brief", "digits"]

# The most rows of a table that are shown; `Summary.source` says how to get the rest.
MOST_ROWS = 20


@dataclass(frozen=True, repr=False)
class Summary:
    """A printable summary, which a notebook shows as a table.

    Attributes
    ----------
    head : tuple of str
        Sentences before the table.
    table : DataFrame
        All rows, as text; at most 20 are shown.
    notes : tuple of str
        Sentences after the table.
    source : str
        How to get the full table.
    what : str
        The rows of the table.
    """

    head: tuple[str, ...]
    table: pd.DataFrame
    notes: tuple[str, ...] = ()
    source: str = ""
    what: str = "groups"

    @property
    def more(self) -> str:
        """A sentence about the rows that are not shown; empty if all are."""
        left = len(self.table) - MOST_ROWS
        return f"... and {left} more {self.what}: {self.source} has all of them." if left > 0 else ""

    def __str__(self) -> str:
        shown = [self.table.head(MOST_ROWS).to_string(index=False)] if len(self.table) else []
        return "\n".join([*self.head, *shown, *filter(None, [self.more, *self.notes])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        shown = [self.table.head(MOST_ROWS).to_html(index=False, border=0)] if len(self.table) else []
        after = [f"<p>{escape(text)}</p>" for text in (self.more, *self.notes) if text]
        return "\n".join([*(f"<p>{escape(text)}</p>" for text in self.head), *shown, *after])


def digits(value: float) -> str:
    """A number with four digits, and a dash for NaN.

    >>> digits(12.34567), digits(float("nan"))
    ('12.35', '-')
    """
    return "-" if value != value else f"{value:.4g}"


def brief(values: Any) -> str:
    """Describe a dataclass in one line: arrays by their shapes, without fields that are None.

    >>> import numpy as np
    >>> from dataclasses import make_dataclass
    >>> brief(make_dataclass("Data", ["X", "sigma", "w"])(np.eye(3, 4), 0.5, None))
    'Data(X: 3 x 4, sigma=0.5)'
    """
    parts = []
    for one in fields(values):
        value = getattr(values, one.name)
        if value is None or not one.repr:
            continue
        shape = getattr(value, "shape", None)
        if shape:
            parts.append(f"{one.name}: {' x '.join(map(str, shape))}")
        elif isinstance(value, list | tuple | dict) and len(value) > 6:
            parts.append(f"{one.name}: {len(value)}")
        else:
            parts.append(f"{one.name}={value!r}")
    return f"{type(values).__name__}({', '.join(parts)})"
