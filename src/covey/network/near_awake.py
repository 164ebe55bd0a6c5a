"""The awake groups of the near path, in arrays with spare capacity."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from covey.network.kernels import NODES, curvature_of
from covey.validation import FloatArray

__all__ = ["AwakeView", "NearAwake"]

# Initial capacity, in columns.
ROOM = 64


class AwakeView(NamedTuple):
    """The filled part of the arrays of `NearAwake`."""

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

    Arrays are longer than their contents. Arrays of the same kind are rows of one array, because calling a kernel with
    fewer arrays is faster.

    Attributes
    ----------
    of_awake : ndarray, shape (9, room)
        u, v, w; speeds, c, the vector of the power iteration, and three work vectors.
    places : ndarray of int, shape (6, room + 1)
        The groups, the offsets of their columns, and the columns; when each group woke up, -1 for one that is stepped
        but not yet awake, and the same at an earlier time; integer workspace.
    K, block : ndarray, shape (room, room)
        Their Gram block, and a work matrix.
    rows : ndarray, shape (room, r)
        Their Gram rows against all near groups.
    state : ndarray, shape (3 room,)
        u, v, w, contiguous as in `of_awake`.
    nodes : ndarray, shape (n_nodes, 3 room)
        The same at the nodes of a march.
    times, top : ndarray, shape (n_nodes,)
        See `covey.network.kernels.march`.
    """

    def __init__(self, n_near: int) -> None:
        self.rows = np.empty((0, n_near))
        self._make(ROOM)

    def _make(self, room: int) -> None:
        """Allocate arrays of this capacity."""
        self.room = room
        self.of_awake = np.zeros((9, room))
        self.places = np.zeros((6, room + 1), dtype=np.int64)
        self.u, self.v, self.w, self.speeds, self.c, self.vector, self._x, self._y, _ = self.of_awake
        self.which, self.starts, self.columns, self.entered_at, self.entered_before, self._own = self.places
        self.K, self.block = np.empty((room, room)), np.empty((room, room))
        self.rows = np.empty((room, self.rows.shape[1]))
        self.state = self.of_awake.reshape(-1)[: 3 * room]
        self.nodes, self._ways = np.empty((NODES + 1, 3 * room)), np.empty(2 * (NODES + 1) * room)
        self.times, self.top = np.empty(NODES + 1, dtype=np.int64), np.empty(NODES + 1)

    def ways(self, n_columns: int) -> FloatArray:
        """Room for the coefficients of this many columns at the nodes, and for their means between nodes."""
        n = 2 * (NODES + 1)
        return self._ways[: n * n_columns].reshape(n, n_columns)

    def make_room(self, needed: int) -> None:
        """Extend the arrays to this many columns."""
        if needed <= self.room:
            return
        k, of_awake, places, K, rows = self.room, self.of_awake, self.places, self.K, self.rows
        self._make(max(needed, 2 * k))
        self.of_awake[:, :k], self.places[:, : k + 1], self.K[:k, :k], self.rows[:k] = of_awake, places, K, rows

    def join(
        self, n_awake: int, l: int, u: float, v: FloatArray, w: FloatArray, speed: float, c: FloatArray, first: int,
        rows: FloatArray, entered_at: int,
    ) -> None:  # fmt: skip
        """Append near group l, with columns from `first` on and Gram rows `rows`, to the awake groups."""
        k, size = int(self.starts[n_awake]), v.size
        end, last = k + size, first + size
        self.which[n_awake], self.starts[n_awake + 1], self.entered_at[n_awake] = l, end, entered_at
        self.u[n_awake], self.speeds[n_awake], self.vector[k:end] = u, speed, end**-0.5
        self.v[k:end], self.w[k:end], self.c[k:end] = v, w, c
        cross, inner = rows[:, self.columns[:k]], rows[:, first:last]
        self.columns[k:end] = range(first, last)
        self.rows[k:end], self.K[k:end, :k], self.K[:k, k:end] = rows, cross, cross.T
        # a product may round differently above and below the diagonal
        self.K[k:end, k:end] = (inner + inner.T) / 2

    def largest_curvature(self, n_awake: int, t: int) -> float:
        """The largest eigenvalue of the Gram block of the groups that have entered by t; below 0 if there are none."""
        return float(
            curvature_of(
                self.K, self.starts, self.entered_at, n_awake, t, self.vector, self._x, self._y, self._own, self.block
            )
        )

    def widen(self, n_near: int, more: NDArray[Any]) -> None:
        """Add columns to the Gram rows."""
        k, known = more.shape[0], self.rows.shape[1]
        wider = np.empty((self.room, n_near))
        wider[:k, :known], wider[:k, known:] = self.rows[:k], more
        self.rows = wider

    def view(self, n_awake: int) -> AwakeView:
        """The filled part of the arrays."""
        a, k = n_awake, int(self.starts[n_awake])
        return AwakeView(
            self.which[:a].tolist(), self.starts[: a + 1], self.columns[:k], self.entered_at[:a], self.u[:a],
            self.w[:k], self.c[:k], self.K[:k, :k],
        )  # fmt: skip

    def save(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Copies of the state that stepping changes, and of the list of groups."""
        return self.of_awake.copy(), self.places.copy()

    def load(self, saved: tuple[NDArray[Any], NDArray[Any]]) -> None:
        """Restore a saved state; entries of groups that joined later lie beyond its end."""
        room = saved[0].shape[1]
        self.of_awake[:, :room], self.places[:, : room + 1] = saved
