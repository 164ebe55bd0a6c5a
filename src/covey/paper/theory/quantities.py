"""Named quantities of the theory as a table and as text."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

__all__ = ["as_frame", "as_text"]


def as_frame(rows: Sequence[tuple[str, float | None, str]]) -> pd.DataFrame:
    """One row per quantity: name, value and place in the paper."""
    return pd.DataFrame(rows, columns=["quantity", "value", "source"])


def as_text(head: str, frame: pd.DataFrame) -> str:
    """The head, and one line per quantity that has a value."""
    known = frame.dropna()
    rows = zip(known.quantity, known.value, known.source, strict=True)
    return "\n".join([head, *(f"  {quantity:<24} {value:>12.5g}  {source}" for quantity, value, source in rows)])
