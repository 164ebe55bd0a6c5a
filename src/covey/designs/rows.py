"""Which rows to hold out: a seeded choice under which equal rows stay together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from covey.validation import FloatArray

if TYPE_CHECKING:
    from covey.designs.protocol import Design

__all__ = ["hold_out"]

# Columns that go into a row's key beside the response: first a few, then more where few keys come of it.
KEY_COLUMNS = (8, 128)
ENOUGH_KEYS = 50


def hold_out(
    design: Design, y: FloatArray, weight: FloatArray, fraction: float, random_state: Any
) -> NDArray[np.bool_]:
    """A mask of rows: about `fraction` of the weight, equal rows on the same side."""
    rng = np.random.default_rng(random_state)
    used = np.flatnonzero(weight > 0)
    keys = _row_keys(design, y, used, rng)
    distinct, inverse = np.unique(keys, return_inverse=True)  # keys are hashes, so their order is random
    if distinct.size < 2:
        raise ValueError(
            "Rows cannot be held out: all rows are equal. Choose the time otherwise, with stopping='ebic' for instance."
        )
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
        chosen = np.unique(np.linspace(0, p - 1, min(p, n_columns)).astype(np.intp))
        for values in (y[rows], *design.take(chosen)[rows].T):
            rank = np.unique(values, return_inverse=True)[1].astype(np.uint64)
            key = _mix(key ^ (rank + rng.integers(0, 2**63, dtype=np.uint64)))
        if np.unique(key).size >= ENOUGH_KEYS:
            break
    return key


def _mix(key: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: every bit of the input changes half of the output's."""
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))
