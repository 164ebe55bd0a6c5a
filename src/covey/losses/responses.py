"""Responses and offsets: checks that a loss can take them, and their quantiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covey.validation import Array, FloatArray, as_numbers

if TYPE_CHECKING:
    from covey.losses.base import Loss

__all__ = [
    "codes_among",
    "read_offset",
    "refuse_rows",
    "robust_scale",
    "weighted_median",
    "weighted_quantile",
    "within_range",
]

# Squares of larger numbers, summed over rows, overflow in float64.
LARGEST = 1e150

# The largest predictor whose exponential is a mean or odds: beyond it, the effect of a column would be invisible.
LARGEST_LOGARITHM = 1e3

# The scale of Gaussian noise divided by its median absolute value.
MEDIAN_TO_SCALE = 1.4826


def read_offset(offset: ArrayLike, n_rows: int, n_outputs: int, loss: Loss) -> FloatArray:
    """An offset as an array of shape (n_rows, n_outputs).

    Parameters
    ----------
    offset : array-like, shape (n_rows,), (n_rows, 1) or (n_rows, n_outputs)
    n_rows, n_outputs : int
    loss : Loss
        Determines how large the offset may be.
    """
    shift = as_numbers(offset, "offset", finite=False)
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


def codes_among(values: Array, labels: Array, rule: str) -> NDArray[np.intp]:
    """The position of each value among labels; the message about an unknown one begins with `rule`.

    >>> codes_among(np.array(["b", "a", "b"]), np.array(["a", "b"]), "y has the label").tolist()
    [1, 0, 1]
    """
    places = {label: k for k, label in enumerate(labels.tolist())}
    given, codes = np.unique(values, return_inverse=True)
    for label in given.tolist():
        if label not in places:
            raise ValueError(f"{rule} {label!r}, which no row of fit has.")
    return np.array([places[label] for label in given.tolist()], dtype=np.intp)[codes]


def refuse_rows(bad: NDArray[np.bool_], y: FloatArray, rule: str, remedy: str) -> None:
    """Raise if any entry of y is marked as bad; the message gives the rule, the first such row, and the remedy."""
    rows = np.flatnonzero(bad.reshape(len(y), -1).any(axis=1))
    if rows.size:
        first = rows[0]
        value = f"{y[first]:g}" if y.ndim == 1 else np.array2string(y[first], precision=6, threshold=8)
        more = f" ({rows.size} such rows)" if rows.size > 1 else ""
        raise ValueError(f"{rule}; row {first} has {value}{more}. {remedy}")


def within_range(y: FloatArray, name: str, largest: float = LARGEST) -> FloatArray:
    """The response itself, unless it has a number too large to compute with."""
    refuse_rows(
        np.abs(y) > largest,
        y,
        f"{name} must not exceed {largest:g} in size, or sums over it overflow",
        f"Divide {name} by a constant: measure it in larger units.",
    )
    return y


def weighted_median(values: FloatArray, weight: FloatArray) -> float:
    """The weighted median; halfway between two values if the weight splits evenly.

    >>> weighted_median(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 5.0]))
    2.0
    """
    return weighted_quantile(values, weight, 0.5)


def weighted_quantile(values: FloatArray, weight: FloatArray, share: float) -> float:
    """The value below which a share of the weight lies; halfway between two values if the weight splits there."""
    order = np.argsort(values, kind="stable")
    order = order[weight[order] > 0]
    reached = np.cumsum(weight[order])
    at = share * reached[-1]
    low = order[np.searchsorted(reached, at * (1 - 1e-12), side="left")]
    high = order[np.searchsorted(reached, at * (1 + 1e-12), side="right")]
    return float(values[low] / 2 + values[high] / 2)


def robust_scale(size: FloatArray, weight: FloatArray) -> float:
    """The scale of noise with these absolute values, from their median; of those above zero if that is zero."""
    median, above = weighted_median(size, weight), (size > 0) & (weight > 0)
    if median == 0 and above.any():
        median = weighted_median(size[above], weight[above])
    return MEDIAN_TO_SCALE * median or 1.0
