"""Vectors with an entry per row, in memory: the response's scale, and the rows that are held out.

The choice of rows to hold out is a seeded one under which equal rows stay together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv

from covey.validation import FloatArray

if TYPE_CHECKING:
    from covey.designs.protocol import Design

__all__ = [
    "ENOUGH_KEYS",
    "KEY_COLUMNS",
    "all_equal",
    "check_size",
    "hold_out",
    "key_columns",
    "mix",
    "split_masks",
    "standard_response",
]

# Columns that go into a row's key beside the response: first a few, then more where few keys come of it.
KEY_COLUMNS = (8, 128)
ENOUGH_KEYS = 50

# Squared errors of such a response, summed over rows, are still numbers.
LARGEST_RESPONSE = 1e152


def standard_response(y: FloatArray, q: FloatArray, *, centre: bool) -> tuple[FloatArray, float, float]:
    """The response centred and of unit mean square; y of 1e150 and of 1e-150 keep every digit."""
    used = np.where(q > 0, y, 0.0)
    largest = float(np.abs(used).max())
    if largest == 0:
        return np.zeros_like(y), 0.0, 1.0
    check_size(largest)
    unit = np.where(q > 0, y / largest, 0.0)
    mean = float(q @ unit) if centre else 0.0
    unit = np.where(q > 0, unit - mean, 0.0)
    size = float(np.sqrt(q @ (unit * unit)))
    # what rounding leaves of a constant response is no signal
    if size <= 8 * np.finfo(float).eps * abs(mean):
        return np.zeros_like(y), mean * largest, 1.0
    return unit / size, mean * largest, size * largest


def check_size(largest: float) -> None:
    """Refuse a response of which this is the largest absolute value, if that is too large."""
    if largest > LARGEST_RESPONSE:
        raise ValueError(f"y has values of {largest:.3g}, whose squares are no numbers any more: give it other units.")


def split_masks(n: int, cv: Any, y: FloatArray, labels: Any) -> list[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """Training and held-out rows of each fold of anything that scikit-learn takes as `cv`."""
    pairs = []
    for train, test in check_cv(cv, y, classifier=False).split(np.empty((n, 1)), y, labels):
        learn, held = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        learn[train], held[test] = True, True
        pairs.append((learn, held))
    return pairs


def hold_out(
    design: Design, y: FloatArray, weight: FloatArray, fraction: float, random_state: Any
) -> NDArray[np.bool_]:
    """A mask of rows: about `fraction` of the weight, equal rows on the same side."""
    rng = np.random.default_rng(random_state)
    used = np.flatnonzero(weight > 0)
    keys = _row_keys(design, y, used, rng)
    distinct, inverse = np.unique(keys, return_inverse=True)  # keys are hashes, so their order is random
    if distinct.size < 2:
        raise all_equal()
    shares = np.bincount(inverse, weights=weight[used])
    ends = np.cumsum(shares)
    # whole rows only: the smallest number that reaches the fraction, at least one, never all
    n_held = int(np.searchsorted(ends, fraction * ends[-1] * (1 - 1e-12))) + 1
    held = np.zeros(weight.size, dtype=bool)
    held[used] = inverse < min(n_held, distinct.size - 1)
    return held


def _row_keys(design: Design, y: FloatArray, rows: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.uint64]:
    """A seeded 64-bit hash of each row's response and of some of its columns: equal rows have equal keys.

    Values enter by their rank among the distinct ones, so that neither units nor repetitions change the split.
    """
    p = design.shape[1]
    key = np.zeros(rows.size, dtype=np.uint64)
    for n_columns in KEY_COLUMNS:
        chosen = key_columns(p, n_columns)
        for values in (y[rows], *design.take(chosen)[rows].T):
            rank = np.unique(values, return_inverse=True)[1].astype(np.uint64)
            key = mix(key ^ (rank + rng.integers(0, 2**63, dtype=np.uint64)))
        if np.unique(key).size >= ENOUGH_KEYS:
            break
    return key


def key_columns(p: int, count: int) -> NDArray[np.intp]:
    """About `count` of p columns, evenly spread."""
    return np.unique(np.linspace(0, p - 1, min(p, count)).astype(np.intp))


def all_equal() -> ValueError:
    """The error for rows of which none can be held out."""
    return ValueError(
        "Rows cannot be held out: all rows are equal. Choose otherwise, with selection='ebic' for instance."
    )


def mix(key: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: every bit of the input changes half of the output's."""
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))
