"""Gram rows of some near groups against all of them, as they were read of X; one run leaves them to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.preprocess import WorkingProblem
from covey.validation import FloatArray

__all__ = ["StoredRows"]

# Room for so many rows at first.
ROWS = 64

# Where all Gram rows together cost no more multiplications than this, about a millisecond, they are read at once: that
# is less than reading them group by group takes around its products.
WHOLE = 3e7


class StoredRows:
    """Rows in one array, in the order in which they were read.

    Attributes
    ----------
    rows : ndarray, shape (room, r)
    starts : ndarray, shape (n_groups,)
        Where a group's rows begin; -1 where they have not been read.
    """

    def __init__(self, problem: WorkingProblem) -> None:
        self._ranks = problem.ranks
        self._filled = 0
        self.rows: FloatArray = np.empty((ROWS, problem.n_columns))
        self.starts = np.full(problem.ranks.size, -1, dtype=np.int64)

    def lacks(self, l: int) -> bool:
        """Whether the rows of a group have not been read."""
        return bool(self.starts[l] < 0)

    def add(self, which: Sequence[int] | NDArray[np.intp], rows: NDArray[Any]) -> None:
        """Keep the rows of some groups, one under the other."""
        end = self._filled + rows.shape[0]
        if end > self.rows.shape[0]:
            longer = np.empty((max(end, 2 * self.rows.shape[0]), self.rows.shape[1]))
            longer[: self._filled] = self.rows[: self._filled]
            self.rows = longer
        self.rows[self._filled : end] = rows
        ends = self._filled + np.cumsum(self._ranks[which])
        self.starts[which] = ends - self._ranks[which]
        self._filled = end


def reads_all(problem: WorkingProblem) -> bool:
    """Whether to read the Gram rows of all groups at once."""
    r = problem.n_columns
    return bool(problem.design.reads_columns) and problem.design.shape[0] * r * r <= WHOLE
