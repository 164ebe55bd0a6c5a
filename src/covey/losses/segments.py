"""Cumulative sums that restart in every segment of an array, as sums over risk sets do in every stratum."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.validation import FloatArray

__all__ = ["Segments"]

# Exponentials of numbers further apart than this do not fit into the range of float64.
WIDEST = 600.0


class Segments:
    """Consecutive segments of the first axis.

    Segments of similar length are laid side by side in one padded table, so that a thousand strata of a few rows each
    take as many numpy calls as one stratum of a thousand rows.

    Parameters
    ----------
    lengths : ndarray of int
        All positive.
    """

    def __init__(self, lengths: NDArray[np.intp]) -> None:
        self.n = int(lengths.sum())
        begins = np.cumsum(lengths) - lengths
        self.single = lengths.size == 1
        # the position of each entry of a table; n beyond the end of a segment
        self._tables = []
        for power in np.unique(np.frexp(lengths)[1]):
            members = np.flatnonzero(np.frexp(lengths)[1] == power)
            steps = np.arange(lengths[members].max())
            table = begins[members, None] + steps
            self._tables.append(np.where(steps < lengths[members, None], table, self.n))

    def cumulative(self, values: FloatArray, *, reverse: bool = False) -> FloatArray:
        """Cumulative sums within each segment; from the end if `reverse`."""
        return self._each(values, lambda table: np.cumsum(table, axis=1), 0.0, reverse)

    def log_cumulative(self, logs: FloatArray, *, reverse: bool = False) -> FloatArray:
        """Logarithms of cumulative sums of exponentials, which may lie far outside the range of float64."""
        return self._each(logs, _log_cumulative, -np.inf, reverse)

    def _each(self, values: FloatArray, sums: Any, empty: float, reverse: bool) -> FloatArray:
        turn = slice(None, None, -1 if reverse else 1)
        if self.single:
            return np.asarray(sums(values[None, turn])[0, turn])
        padded = np.concatenate([values, np.full((1, *values.shape[1:]), empty)])
        out = np.empty_like(padded)
        for table in self._tables:
            out[table] = sums(padded[table][:, turn])[:, turn]
        return out[:-1]


def _log_cumulative(logs: FloatArray) -> FloatArray:
    """The logarithm of cumulative sums of exponentials along the second axis."""
    largest = logs.max(axis=1, keepdims=True)
    finite = np.where(np.isfinite(logs), logs, largest)
    if (largest - finite.min(axis=1, keepdims=True)).max(initial=0.0) > WIDEST:
        return np.asarray(np.logaddexp.accumulate(logs, axis=1))
    with np.errstate(divide="ignore"):  # sums may start with zeros
        return np.asarray(largest + np.log(np.cumsum(np.exp(logs - largest), axis=1)))
