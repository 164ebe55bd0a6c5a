"""Gram rows of some near groups against all of them, as read from X and reused by later runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.preprocess import WorkingProblem
from covey.validation import FloatArray

__all__ = ["StoredRows"]

# Initial capacity, in rows.
ROWS = 64

# Gram rows are fetched together with those of the next groups, up to as many columns as cost little more than reading
# X. A group qualifies if it would wake up, at its current growth, before this multiple of the current time, or at any
# time if reading X is expensive.
AHEAD = 1.5

# If all Gram rows together cost no more multiplications than this, about a millisecond, they are computed at once: this
# is less than the overhead of computing them group by group. The columns are copied for it, up to this many numbers.
WHOLE, MOST_NUMBERS = 3e7, 2**17


class StoredRows:
    """Rows of a problem in one array, in the order in which they were read.

    Attributes
    ----------
    rows : ndarray, shape (room, r)
    starts : ndarray, shape (n_groups,)
        The offset of a group's rows; -1 if they have not been read.
    """

    def __init__(self, problem: WorkingProblem) -> None:
        self.problem = problem
        self._filled = 0
        self.rows: FloatArray = np.empty((ROWS, problem.n_columns))
        self.starts = np.full(problem.ranks.size, -1, dtype=np.int64)

    def lacks(self, l: int) -> bool:
        """Whether the rows of a group have not been read."""
        return bool(self.starts[l] < 0)

    def rows_of(self, l: int) -> FloatArray:
        """The rows of a group that have been read."""
        at = int(self.starts[l])
        return self.rows[at : at + int(self.problem.ranks[l])]

    def fetch(self, ready: NDArray[np.intp], t: int, steps: FloatArray) -> int:
        """Read the rows of groups about to wake up, and of the next ones, in one product; returns their number.

        `steps` are the iterations until each group would wake up at its current growth.
        """
        needed = [l for l in ready.tolist() if self.lacks(l)]
        problem = self.problem
        if self._reads_all:
            all_groups = np.flatnonzero(problem.ranks)
            needed, rows = all_groups.tolist(), problem.gram_block(all_groups)[0]
        else:
            steps[ready] = np.inf
            order = np.argsort(steps, kind="stable")
            needed += self._next_in_line(order, steps, t, int(problem.ranks[needed].sum()))
            rows = problem.gram_rows(needed, self._upcoming(order, steps))
        self.add(needed, rows)
        return int(rows.shape[0])

    @property
    def _reads_all(self) -> bool:
        """Whether to read the rows of all groups at once."""
        n, r = self.problem.design.shape[0], self.problem.n_columns
        return bool(self.problem.design.reads_columns) and n * r * r <= WHOLE and n * r <= MOST_NUMBERS

    def _upcoming(self, order: NDArray[np.intp], steps: FloatArray) -> NDArray[np.intp] | None:
        """Columns that may be needed next, soonest first, for a design that always reads all of X."""
        design = self.problem.design
        if design.reads_columns:
            return None
        soonest = [self.problem.members(l) for l in order[: 2 * design.batch_columns].tolist() if steps[l] < np.inf]
        return np.concatenate([np.empty(0, dtype=np.intp), *soonest])

    def _next_in_line(self, order: NDArray[np.intp], steps: FloatArray, t: int, n_columns: int) -> list[int]:
        """Groups whose rows are worth reading along with `n_columns` others; `order` sorts by `steps`."""
        ranks, design = self.problem.ranks, self.problem.design
        latest = AHEAD * t if design.reads_columns else np.inf
        more = []
        for l in order[: design.batch_columns + 1].tolist():
            if not steps[l] <= latest or not np.isfinite(steps[l]) or n_columns + ranks[l] > design.batch_columns:
                break
            if self.lacks(l):
                more.append(l)
                n_columns += int(ranks[l])
        return more

    def add(self, which: Sequence[int] | NDArray[np.intp], rows: NDArray[Any]) -> None:
        """Store the rows of some groups, stacked."""
        end = self._filled + rows.shape[0]
        if end > self.rows.shape[0]:
            longer = np.empty((max(end, 2 * self.rows.shape[0]), self.rows.shape[1]))
            longer[: self._filled] = self.rows[: self._filled]
            self.rows = longer
        self.rows[self._filled : end] = rows
        ends = self._filled + np.cumsum(self.problem.ranks[which])
        self.starts[which] = ends - self.problem.ranks[which]
        self._filled = end
