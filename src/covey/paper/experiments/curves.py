"""Curves and numbers read from a table of `covey.paper.experiments.traces`."""

from __future__ import annotations

import numpy as np
import pandas as pd

from covey.paper.experiments.base import where
from covey.paper.experiments.traces import TRUTH
from covey.validation import FloatArray


def series(frame: pd.DataFrame, mode: str, quantity: str, index: int = 0) -> tuple[FloatArray, FloatArray]:
    chosen = where(frame, mode=mode, quantity=quantity, index=index)
    if chosen.empty:
        raise ValueError(f"The table has no {quantity!r} {index} in mode {mode!r}.")
    return chosen["t"].to_numpy(dtype=float), chosen["value"].to_numpy(dtype=float)


def best(frame: pd.DataFrame, mode: str) -> tuple[float, int]:
    t, error = series(frame, mode, "error")
    i = int(np.argmin(error))
    return float(error[i]), int(t[i])


def last(frame: pd.DataFrame, mode: str, quantity: str = "error", index: int = 0) -> float:
    return float(series(frame, mode, quantity, index)[1][-1])


def true_value(frame: pd.DataFrame, quantity: str, index: int = 0) -> float:
    """A true value, or the squared norm of the truth ("signal")."""
    return last(frame, TRUTH, quantity, index)


def support_groups(frame: pd.DataFrame) -> list[int]:
    return sorted(int(l) for l in where(frame, mode=TRUTH, quantity="magnitude")["index"])
