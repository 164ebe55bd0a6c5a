"""Offsets, which are added to the linear predictor of each row."""

from __future__ import annotations

from typing import Any

import numpy as np

from covey.losses.arrays import LARGEST
from covey.losses.base import Loss
from covey.losses.huber import Huber
from covey.losses.squared import MultiSquared, Squared
from covey.validation import FloatArray, on_host, refuse_odd

__all__ = ["read_offset"]

# The largest predictor whose exponential is a mean or odds: beyond it, the effect of a column would be invisible.
LARGEST_LOGARITHM = 1e3


def read_offset(offset: Any, n_rows: int, n_outputs: int, loss: Loss) -> FloatArray:
    """An offset as an array of shape (n_rows, n_outputs).

    Parameters
    ----------
    offset : array-like, shape (n_rows,), (n_rows, 1) or (n_rows, n_outputs)
    n_rows, n_outputs : int
    loss : Loss
        Determines how large the offset may be.
    """
    refuse_odd(offset, "offset")
    try:
        made = np.asarray(on_host(offset), dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("offset must hold numbers, one per row.") from None
    shape = made.shape
    if made.ndim == 1:
        made = made[:, None]
    if made.shape not in ((n_rows, 1), (n_rows, n_outputs)):
        raise ValueError(f"offset has shape {shape}, but there are {n_rows} rows and {n_outputs} predictors.")
    bad = np.flatnonzero(~np.isfinite(made).all(axis=1))
    if bad.size:
        raise ValueError(
            f"offset has missing or infinite values, first in row {bad[0]} ({bad.size} in all): impute or drop them; "
            "the logarithm of an exposure of zero is infinite."
        )
    largest = LARGEST if isinstance(loss, Squared | MultiSquared | Huber) else LARGEST_LOGARITHM
    bad = np.flatnonzero((np.abs(made) > largest).any(axis=1))
    if bad.size:
        raise ValueError(
            f"offset must not exceed {largest:g} in size; row {bad[0]} has {np.abs(made[bad[0]]).max():.3g}. It is "
            "added to the linear predictor: for counts it is the logarithm of the exposure, not the exposure."
        )
    return np.broadcast_to(made, (n_rows, n_outputs))
