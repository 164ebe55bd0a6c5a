"""Arrays of responses: their dtypes, and checks that a loss can take them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pandas import isna

from covey.validation import FloatArray, on_host, refuse_odd

__all__ = [
    "codes_among",
    "common_dtype",
    "finite_numbers",
    "floating",
    "numbers",
    "refuse_rows",
    "spread",
    "weighted_median",
    "weighted_quantile",
    "within_range",
]

# Squares of larger numbers, summed over rows, overflow in float64.
LARGEST = 1e150


def floating(values: Any) -> FloatArray:
    """An array of float32 or float64; other types become float64."""
    array = np.asarray(values)
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def common_dtype(y: Any, eta: Any) -> tuple[FloatArray, FloatArray]:
    """Both as arrays of their common dtype, float32 or float64; a Python number takes the dtype of the other."""
    if isinstance(y, np.ndarray) and isinstance(eta, np.ndarray) and y.dtype == eta.dtype == np.float64:
        return y, eta  # the most common case
    if isinstance(y, int | float):
        eta = floating(eta)
        return np.asarray(y, dtype=eta.dtype), eta
    if isinstance(eta, int | float):
        y = floating(y)
        return y, np.asarray(eta, dtype=y.dtype)
    y, eta = np.asarray(y), np.asarray(eta)
    dtype = np.result_type(y.dtype, eta.dtype, np.float32)
    return y.astype(dtype, copy=False), eta.astype(dtype, copy=False)


def spread(values: FloatArray, y: FloatArray) -> FloatArray:
    """Values that do not depend on y, broadcast against it."""
    return values if y.shape == values.shape else np.broadcast_arrays(values, y)[0].copy()


def numbers(y: Any, name: str) -> FloatArray:
    """A response as float64 numbers, of any shape; missing values become NaN."""
    refuse_odd(y, name)
    text = False
    try:
        array = np.asarray(on_host(y))
        kind = array.dtype.kind
        text = kind in "US" or (kind == "O" and any(isinstance(value, str | bytes) for value in array.flat))
        if text or kind == "c":
            raise TypeError
        return np.where(isna(array), np.nan, array).astype(np.float64) if kind == "O" else array.astype(np.float64)
    except (TypeError, ValueError):
        rule = f"{name} holds text, and must hold numbers" if text else f"{name} must hold numbers"
        raise ValueError(f"{rule}. For classes use covey.GroupSparseClassifier.") from None


def finite_numbers(y: Any, name: str, *, vector: bool = False) -> FloatArray:
    """A response as finite float64 numbers: one per row, or several if `vector`."""
    array = numbers(y, name)
    if vector and array.ndim != 2:
        raise ValueError(f"{name} must have two dimensions (rows, outputs), not shape {array.shape}.")
    if not vector and array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if not vector and array.ndim != 1:
        remedy = " For several responses use the loss 'multi-squared'." if array.ndim == 2 else ""
        raise ValueError(f"{name} must have one dimension, not shape {array.shape}.{remedy}")
    if array.size == 0:
        raise ValueError(f"{name} is empty: shape {array.shape}.")
    bad = np.flatnonzero(~np.isfinite(array).reshape(len(array), -1).all(axis=1))
    if bad.size:
        raise ValueError(
            f"{name} has missing or infinite values, first in row {bad[0]} ({bad.size} in all); impute or drop them."
        )
    return np.ascontiguousarray(array)


def codes_among(values: NDArray[Any], labels: NDArray[Any], rule: str) -> NDArray[np.intp]:
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


def refuse_rows(bad: Any, y: FloatArray, rule: str, remedy: str) -> None:
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
