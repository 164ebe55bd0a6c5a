"""Formulas as properties that know their place in the paper, and their values as a table and as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

__all__ = ["as_frame", "as_text", "quantity"]


class _Quantity(property):
    source: str


def quantity(source: str) -> Callable[[Callable[[Any], float | None]], Any]:
    """A property that is a row of the table, with its place in the paper."""

    def named(formula: Callable[[Any], float | None]) -> _Quantity:
        found = _Quantity(formula)
        found.source = source
        return found

    return named


def as_frame(bounds: Any, *more: tuple[str, float, str]) -> pd.DataFrame:
    """One row per quantity of an object, in the order of definition, then its limits on the coherence, then more."""
    found = [(n, getattr(bounds, n), q.source) for n, q in vars(type(bounds)).items() if isinstance(q, _Quantity)]
    for k in (1, 2):
        found.append((f"delta_in, algorithm {k}", bounds.delta_in(k), f"convergence-alg-{k}"))
        found.append((f"delta_out, algorithm {k}", bounds.delta_out(k), f"convergence-alg-{k}"))
    return pd.DataFrame([*found, *more], columns=["quantity", "value", "source"])


def as_text(head: str, frame: pd.DataFrame) -> str:
    """The head, and one line per quantity that has a value."""
    known = frame.dropna()
    lines = zip(known.quantity, known.value, known.source, strict=True)
    return "\n".join([head, *(f"  {quantity:<24} {value:>12.5g}  {source}" for quantity, value, source in lines)])
