"""The awake groups: their state, their Gram block, and their Gram rows against everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.preprocess import WorkingProblem
from covey.preprocess.working import spans
from covey.validation import FloatArray

__all__ = ["Awake", "AwakeGroups", "GramRows", "Trio"]

# u, v, w
Trio = tuple[FloatArray, FloatArray, FloatArray]

# Gram rows live in blocks of this many, so that waking a group never copies the rows of the others.
BLOCK_ROWS = 64

# The large direction step is a unit gradient step on w: stable while the largest eigenvalue of the awake Gram block
# is below 2. A little earlier it is replaced by the safe one, 1 over that eigenvalue.
LARGEST_STABLE = 1.9

# That holds for groups that rise from nothing. One that starts above its level is thrown to the other side of it by an
# eigenvalue above 1, and there its magnitude grows again.
STABLE_FROM_ABOVE = 1.0

# Power iteration approaches an eigenvalue from below; it ends when a round adds less than the tolerance.
EIGENVALUE_MARGIN = 1.02
EIGENVALUE_TOLERANCE = 1e-3
MOST_ROUNDS = 100


class GramRows:
    """``Z_awake' diag(q) Z``, one row per awake column, in blocks."""

    def __init__(self, n_columns: int, dtype: Any) -> None:
        self.n_columns = n_columns
        self.dtype = dtype
        self.blocks: list[NDArray[Any]] = []
        self.n_rows = 0

    def append(self, rows: NDArray[Any]) -> None:
        """Add the rows of a group."""
        while rows.shape[0]:
            filled = self.n_rows % BLOCK_ROWS
            if filled == 0:
                self.blocks.append(np.empty((BLOCK_ROWS, self.n_columns), dtype=self.dtype))
            part = rows[: BLOCK_ROWS - filled]
            self.blocks[-1][filled : filled + part.shape[0]] = part
            self.n_rows += part.shape[0]
            rows = rows[part.shape[0] :]

    def truncate(self, n_rows: int) -> None:
        """Forget the last rows."""
        self.n_rows = n_rows
        del self.blocks[-(-n_rows // BLOCK_ROWS) :]

    def widen(self, columns: NDArray[Any]) -> None:
        """Add columns to all rows."""
        for b, block in enumerate(self.blocks):
            more = np.empty((BLOCK_ROWS, columns.shape[1]), dtype=self.dtype)
            part = columns[b * BLOCK_ROWS : (b + 1) * BLOCK_ROWS]
            more[: part.shape[0]] = part
            self.blocks[b] = np.concatenate([block, more], axis=1)
        self.n_columns += columns.shape[1]

    def correlations(self, c: FloatArray, W: FloatArray) -> FloatArray:
        """``c - W K`` for several w as rows; shape (k, n_columns)."""
        out = np.empty((W.shape[0], self.n_columns))
        out[:] = c
        for b, block in enumerate(self.blocks):
            a = b * BLOCK_ROWS
            rows = min(BLOCK_ROWS, self.n_rows - a)
            part = np.ascontiguousarray(W[:, a : a + rows], dtype=self.dtype)
            out -= part @ block[:rows]
        return out

    def columns(self, columns: NDArray[np.intp]) -> FloatArray:
        """Some columns of all rows; shape (n_rows, k)."""
        parts = [block[:, columns] for block in self.blocks]
        whole = np.concatenate(parts) if parts else np.empty((0, columns.size))
        return np.ascontiguousarray(whole[: self.n_rows], dtype=np.float64)


class AwakeGroups:
    """State of the groups that are stepped, in the order in which they joined.

    Attributes
    ----------
    which : list of int
        The groups.
    starts : ndarray
        Where each one's columns lie in the arrays below.
    columns : ndarray
        Their working columns.
    u, v, w : ndarray
        Magnitudes, unit directions, coefficients ``w = u^N v``.
    c : ndarray
        Correlations at w = 0.
    direction_step : float
        The largest s for which ``w + s g`` is a stable step on the directions.
    curvature : float
        The largest eigenvalue of their Gram block, which bounds steps on the magnitudes.
    """

    def __init__(self, problem: WorkingProblem, largest_stable: float = LARGEST_STABLE) -> None:
        self.problem = problem
        self.largest_stable = largest_stable
        self.which: list[int] = []
        self.starts = np.zeros(1, dtype=np.intp)
        self.columns = np.empty(0, dtype=np.intp)
        self.u: FloatArray = np.empty(0)
        self.v: FloatArray = np.empty(0)
        self.w: FloatArray = np.empty(0)
        self.c: FloatArray = np.empty(0)
        self.speeds = np.empty(0)
        self.direction_step = 1.0
        self.curvature = 0.0
        self._vector = np.empty(0)

    def add(self, new: NDArray[np.intp], u: FloatArray, v: FloatArray, depth: int, speeds: FloatArray) -> None:
        """Add groups, in this order; `v` are their directions, one after another."""
        ranks, own = self.problem.ranks[new], spans(self.problem.starts, new)
        ends = self.columns.size + np.cumsum(ranks)
        self.which = [*self.which, *new.tolist()]
        self.columns = np.concatenate([self.columns, own])
        self.starts = np.concatenate([self.starts, ends]).astype(np.intp)
        self.u = np.concatenate([self.u, u])
        self.v = np.concatenate([self.v, v])
        self.w = np.concatenate([self.w, np.repeat(u**depth, ranks) * v])
        self.c = np.concatenate([self.c, self.problem.correlation[own]])
        self.speeds = np.concatenate([self.speeds, speeds])
        self._vector = np.concatenate([self._vector, np.repeat(1.0 / np.sqrt(ends), ranks)])

    def find_safe_steps(self, product: Callable[[FloatArray], FloatArray], columns: Any = slice(None)) -> None:
        """Find steps that cannot oscillate in the Gram block of some columns, which `product` multiplies by."""
        largest, self._vector[columns] = largest_eigenvalue(product, self._vector[columns])
        self.curvature = EIGENVALUE_MARGIN * largest
        self.direction_step = 1.0 if self.curvature < self.largest_stable else 1.0 / self.curvature


class Awake(AwakeGroups):
    """Awake groups with their Gram block ``K``, for as few of them as the screened engine steps."""

    def __init__(self, problem: WorkingProblem) -> None:
        super().__init__(problem)
        self.K = np.empty((0, 0))

    def join(self, l: int, u: float, v: FloatArray, depth: int, speed: float, rows: FloatArray) -> None:
        """Add a group; `rows` are its Gram rows against all working columns."""
        own = np.arange(self.problem.starts[l], self.problem.starts[l + 1], dtype=np.intp)
        cross = rows[:, self.columns].astype(np.float64)
        inner = rows[:, own].astype(np.float64)
        # one product rounds differently above and below the diagonal
        k = self.columns.size
        K = np.empty((k + own.size, k + own.size))
        K[:k, :k], K[:k, k:], K[k:, :k], K[k:, k:] = self.K, cross.T, cross, (inner + inner.T) / 2
        self.K = K
        self.add(np.array([l]), np.array([u]), v, depth, np.array([speed]))

    def make_safe(self, entered: NDArray[np.bool_]) -> None:
        """Find steps that cannot oscillate in the Gram block of the groups that are up.

        Only groups that have entered count, so that engines in which groups join earlier take the same steps.
        """
        columns = np.repeat(entered, np.diff(self.starts))
        if columns.any():
            block = self.K if columns.all() else self.K[np.ix_(columns, columns)]
            self.find_safe_steps(block.__matmul__, columns)

    def snapshot(self) -> Trio:
        """A copy of the state, to come back to with `restore`."""
        return self.u.copy(), self.v.copy(), self.w.copy()

    def restore(self, state: Trio) -> None:
        """Return to a snapshot taken with the same groups awake."""
        self.u, self.v, self.w = (part.copy() for part in state)


def largest_eigenvalue(product: Callable[[FloatArray], FloatArray], x: FloatArray) -> tuple[float, FloatArray]:
    """Largest eigenvalue of a positive semidefinite matrix by power iteration from x, and where x has come to."""
    value = 0.0
    for _ in range(MOST_ROUNDS):
        y = product(x)
        size = float(np.linalg.norm(y))
        if not size > 0.0:
            return 0.0, x
        previous, value, x = value, size, y / size
        if abs(value - previous) <= EIGENVALUE_TOLERANCE * value:
            break
    return value, x
