"""The awake groups of the near path, in arrays with room to grow."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from covey.engine.awake import EIGENVALUE_MARGIN, LARGEST_STABLE, unit
from covey.engine.kernels import curvature_of, substeps_of
from covey.engine.settings import Settings
from covey.engine.stored_rows import StoredRows
from covey.validation import FloatArray

__all__ = ["NODES", "AwakeView", "NearAwake", "Trio"]

# Copies of u, v, w.
Trio = tuple[FloatArray, FloatArray, FloatArray]

# Room for so many columns at first.
ROOM = 64

# Nodes of one march: enough to cover a wake-up, few enough that a window given up costs little.
NODES = 6


class AwakeView(NamedTuple):
    """What is filled of the arrays of `NearAwake`."""

    which: list[int]
    starts: NDArray[np.intp]
    columns: NDArray[np.intp]
    entered_at: NDArray[np.int64]
    u: FloatArray
    w: FloatArray
    c: FloatArray
    K: FloatArray


class NearAwake:
    """State of the groups that are stepped, in the order in which they joined; names as in `AwakeGroups`.

    Arrays are longer than what they hold: the first ``len(which)`` groups, and `n_columns` columns.

    Attributes
    ----------
    entered_at : ndarray
        When each group woke up; -1 for one that is stepped but has not yet.
    K : ndarray, shape (room, room)
        Their Gram block.
    rows : ndarray, shape (room, r)
        Their Gram rows against all near groups.
    nodes_u, nodes_v : ndarray, shape (n_nodes, room)
        Magnitudes and directions at the nodes of a march.
    scratch, block : list of ndarray, ndarray
        Vectors to work with, the last one of whole numbers, and a matrix.
    """

    def __init__(self, n_near: int) -> None:
        self.which: list[int] = []
        self.n_columns = 0
        self.direction_step, self.curvature = 1.0, 0.0
        self.rows = np.empty((0, n_near))
        self._make(0)

    def _make(self, room: int) -> None:
        """Arrays with so much room."""
        self.room = room
        self.starts = np.zeros(room + 1, dtype=np.intp)
        self.columns = np.empty(room, dtype=np.intp)
        self.entered_at = np.full(room, -1, dtype=np.int64)
        self.u, self.speeds, self.v, self.w, self.c, self.vector = (np.empty(room) for _ in range(6))
        self.K = np.empty((room, room))
        self.rows = np.empty((room, self.rows.shape[1]))
        self.scratch: list[Any] = [np.empty(room), np.empty(room), np.empty(room), np.empty(room, dtype=np.intp)]
        self.block = np.empty((room, room))
        self.nodes_u, self.nodes_v = np.empty((NODES, room)), np.empty((NODES, room))

    def make_room(self, more: int) -> None:
        """Make the arrays long enough for so many more columns."""
        needed = self.n_columns + more
        if needed <= self.room:
            return
        k, n, old = self.n_columns, len(self.which), dict(self.__dict__)
        self._make(max(ROOM, needed, 2 * self.room))
        self.starts[: n + 1] = old["starts"][: n + 1]
        for names, filled in ((("u", "speeds", "entered_at"), n), (("columns", "v", "w", "c", "vector"), k)):
            for name in names:
                getattr(self, name)[:filled] = old[name][:filled]
        self.K[:k, :k], self.rows[:k] = old["K"][:k, :k], old["rows"][:k]

    def widen(self, n_near: int, more: NDArray[Any] | None) -> None:
        """Add columns to the Gram rows."""
        k, known = self.n_columns, self.rows.shape[1]
        wider = np.empty((self.room, n_near))
        wider[:k, :known] = self.rows[:k]
        if more is not None:
            wider[:k, known:] = more
        self.rows = wider

    def join(
        self, l: int, u: float, directions: FloatArray, settings: Settings, starts: NDArray[np.intp], c: FloatArray,
        stored: StoredRows, entered_at: int,
    ) -> None:  # fmt: skip
        """Add a near group whose Gram rows are stored; `starts` and `c` are those of all near groups."""
        first, last = int(starts[l]), int(starts[l + 1])
        a, k, end = len(self.which), self.n_columns, self.n_columns + last - first
        self.make_room(last - first)
        rows = stored.rows_of(l)
        cross, inner = rows[:, self.columns[:k]], rows[:, first:last]
        self.rows[k:end], self.K[k:end, :k], self.K[:k, k:end] = rows, cross, cross.T
        # one product rounds differently above and below the diagonal
        self.K[k:end, k:end] = (inner + inner.T) / 2
        self.v[k:end] = v = unit(directions[first:last])
        self.w[k:end], self.c[k:end], self.columns[k:end] = u**settings.depth * v, c[first:last], range(first, last)
        self.vector[k:end] = 1.0 / np.sqrt(end)
        self.which = [*self.which, l]
        self.u[a], self.speeds[a], self.entered_at[a], self.starts[a + 1] = u, settings.speeds[l], entered_at, end
        self.n_columns = end

    def make_safe(self, t: int) -> None:
        """Find steps that cannot oscillate in the Gram block of the groups that are up.

        Only groups that have entered count, so that engines in which groups join earlier take the same steps.
        """
        x, y, _, own = self.scratch
        largest = curvature_of(
            self.K, self.starts, self.entered_at, len(self.which), t, self.vector, x, y, own, self.block
        )
        if largest >= 0:
            self.curvature = EIGENVALUE_MARGIN * largest
            self.direction_step = 1.0 if self.curvature < LARGEST_STABLE else 1.0 / self.curvature

    def substeps(self, settings: Settings) -> int:
        """Steps into which an iteration is divided at present."""
        return int(substeps_of(self.u, len(self.which), self.speeds, settings.gamma, self.curvature, settings.depth))

    def explained(self) -> float:
        """How much of the response, of unit norm, these groups explain."""
        k = self.n_columns
        w = self.w[:k]
        return float(w @ (2 * self.c[:k] - self.K[:k, :k] @ w)) if k else 0.0

    def snapshot(self) -> Trio:
        """A copy of the state, to come back to with `restore`."""
        a, k = len(self.which), self.n_columns
        return self.u[:a].copy(), self.v[:k].copy(), self.w[:k].copy()

    def restore(self, state: Trio) -> None:
        """Return to a state in which the same groups were awake."""
        a, k = len(self.which), self.n_columns
        self.u[:a], self.v[:k], self.w[:k] = state[0][:a], state[1][:k], state[2][:k]

    @property
    def view(self) -> AwakeView:
        """What is filled of the arrays."""
        a, k = len(self.which), self.n_columns
        return AwakeView(
            self.which, self.starts[: a + 1], self.columns[:k], self.entered_at[:a], self.u[:a], self.w[:k],
            self.c[:k], self.K[:k, :k],
        )  # fmt: skip

    def save(self) -> dict[str, Any]:
        """Everything that changes while groups are stepped, and who they are."""
        a, k = len(self.which), self.n_columns
        kept = {name: getattr(self, name)[:a].copy() for name in ("u", "entered_at")}
        kept |= {name: getattr(self, name)[:k].copy() for name in ("v", "w", "vector")}
        return kept | {name: getattr(self, name) for name in ("which", "n_columns", "direction_step", "curvature")}

    def load(self, saved: dict[str, Any]) -> None:
        """Undo what was done since the save; what groups that joined since have filled lies behind the end."""
        for name, value in saved.items():
            if isinstance(value, np.ndarray):
                getattr(self, name)[: value.size] = value
            else:
                setattr(self, name, value)
