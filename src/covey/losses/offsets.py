"""Offsets, which are added to the linear predictor of each row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from covey.losses.arrays import LARGEST
from covey.validation import FloatArray, on_host, refuse_odd

if TYPE_CHECKING:
    from covey.losses.base import Loss

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
        shift = np.asarray(on_host(offset), dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("offset must hold numbers, one per row.") from None
    shape = shift.shape
    if loss.labelled and n_outputs > 1 and (shift.ndim != 2 or shape[1] != n_outputs):
        raise ValueError(
            f"offset has shape {shape}: with {n_outputs} classes it needs one column per class, because an offset that "
            "is the same for all classes has no effect."
        )
    if shift.ndim == 1:
        shift = shift[:, None]
    if shift.shape not in ((n_rows, 1), (n_rows, n_outputs)):
        raise ValueError(f"offset has shape {shape}, but there are {n_rows} rows and {n_outputs} predictors.")
    bad = np.flatnonzero(~np.isfinite(shift).all(axis=1))
    if bad.size:
        raise ValueError(
            f"offset has missing or infinite values, first in row {bad[0]} ({bad.size} in all): impute or drop them; "
            "the logarithm of an exposure of zero is infinite."
        )
    largest = LARGEST if loss.identity_link else LARGEST_LOGARITHM
    bad = np.flatnonzero((np.abs(shift) > largest).any(axis=1))
    if bad.size:
        raise ValueError(
            f"offset must not exceed {largest:g} in size; row {bad[0]} has {np.abs(shift[bad[0]]).max():.3g}. It is "
            "added to the linear predictor: for counts it is the logarithm of the exposure, not the exposure."
        )
    return np.broadcast_to(shift, (n_rows, n_outputs))
