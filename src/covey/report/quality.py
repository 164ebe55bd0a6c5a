"""How well a model predicts: R^2 on rows that it has not seen, and on those that it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import r2_score

from covey.selection.judged import Judged
from covey.validation import FloatArray

__all__ = ["Score", "in_memory", "quality"]


@dataclass(frozen=True)
class Score:
    """One figure.

    Attributes
    ----------
    label : str
    value : float
    note : str
        What it is, in a sentence.
    """

    label: str
    value: float
    note: str


def quality(model: Any, chosen_by: Judged | None, X: Any, y: Any, test: tuple[Any, Any] | None) -> tuple[Score, ...]:
    """The figures that can be had, the most telling first."""
    found = []
    if test is not None:
        value = _r2(model, *test)
        note = f"On {len(test[1])} rows that were kept apart throughout."
        found.append(Score("R² on test rows", value, note))
    if chosen_by is not None and chosen_by.r2 is not None:
        found.append(Score("Held-out R²", chosen_by.r2, _how_held_out(model)))
    if X is not None:
        found.append(Score("R² on training rows", _r2(model, X, y), "On the rows of the fit: always flattering."))
    return tuple(found)


def _r2(model: Any, X: Any, y: Any) -> float:
    return float(r2_score(in_memory(y), in_memory(model.predict(X))))


def in_memory(values: Any) -> FloatArray:
    """A vector as numpy has it, also from Dask and from a GPU."""
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values, dtype=float)


def _how_held_out(model: Any) -> str:
    where = f"Mean of {model.n_splits_} folds" if model.n_splits_ > 1 else "On held-out rows"
    return (
        f"{where}: the share of the squared error without any group that the model removes. "
        "The same rows chose the model, so it is slightly flattering."
    )
