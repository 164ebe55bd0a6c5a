"""The awake groups of the near path, in arrays with room to grow."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from covey.engine.kernels import NODES
from covey.validation import FloatArray

__all__ = ["AwakeView", "NearAwake"]

# Room for so many columns at first.
ROOM = 64


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

    Arrays are longer than what they hold. Those of one kind are rows of one array, for which a kernel is called sooner
    than for many.

    Attributes
    ----------
    of_awake : ndarray, shape (9, room)
        u, v, w; speeds, c, where power iteration has come to, and three vectors to work with.
    places : ndarray of int, shape (6, room + 1)
        The groups, where their columns start, and which these are; when each group woke up, -1 for one that is stepped
        but has not yet, and the same at an earlier time; whole numbers to work with.
    K, block : ndarray, shape (room, room)
        Their Gram block, and a matrix to work with.
    rows : ndarray, shape (room, r)
        Their Gram rows against all near groups.
    state : ndarray, shape (3 room,)
        u, v, w, as they lie in `of_awake` one after another.
    nodes : ndarray, shape (n_nodes, 3 room)
        The same at the nodes of a march.
    times, top : ndarray, shape (n_nodes,)
        See `covey.engine.kernels.march`.
    """

    def __init__(self, n_near: int) -> None:
        self.rows = np.empty((0, n_near))
        self._make(ROOM)

    def _make(self, room: int) -> None:
        """Arrays with so much room."""
        self.room = room
        self.of_awake = np.zeros((9, room))
        self.places = np.zeros((6, room + 1), dtype=np.int64)
        self.K, self.block = np.empty((room, room)), np.empty((room, room))
        self.rows = np.empty((room, self.rows.shape[1]))
        self.state = self.of_awake.reshape(-1)[: 3 * room]
        self.nodes, self._ways = np.empty((NODES + 1, 3 * room)), np.empty(2 * (NODES + 1) * room)
        self.times, self.top = np.empty(NODES + 1, dtype=np.int64), np.empty(NODES + 1)

    def ways(self, n_columns: int) -> FloatArray:
        """Room for the coefficients of so many columns at the nodes, and for their means on the way to them."""
        n = 2 * (NODES + 1)
        return self._ways[: n * n_columns].reshape(n, n_columns)

    def make_room(self, needed: int) -> None:
        """Make the arrays long enough for so many columns."""
        if needed <= self.room:
            return
        k, of_awake, places, K, rows = self.room, self.of_awake, self.places, self.K, self.rows
        self._make(max(needed, 2 * k))
        self.of_awake[:, :k], self.places[:, : k + 1], self.K[:k, :k], self.rows[:k] = of_awake, places, K, rows

    def join(
        self, n_awake: int, groups: NDArray[Any], own: NDArray[np.intp], ranks: NDArray[Any], u: FloatArray, v: FloatArray,
        depth: int, speeds: FloatArray, c: FloatArray, rows: FloatArray, entered_at: NDArray[Any],
    ) -> None:  # fmt: skip
        """Put near groups, with columns `own`, directions v and Gram rows `rows`, behind those that are awake."""
        which, starts, columns, when, _, _ = self.places
        of_u, of_v, of_w, of_speeds, of_c, vector = self.of_awake[:6]
        k, last = int(starts[n_awake]), n_awake + groups.size
        ends = k + np.cumsum(ranks)
        end = k + own.size
        which[n_awake:last], starts[n_awake + 1 : last + 1], when[n_awake:last] = groups, ends, entered_at
        of_u[n_awake:last], of_speeds[n_awake:last] = u, speeds
        of_v[k:end], of_c[k:end], columns[k:end] = v, c, own
        of_w[k:end], vector[k:end] = v * np.repeat(u**depth, ranks), np.repeat(ends**-0.5, ranks)
        self.rows[k:end] = rows
        cross = rows[:, columns[:end]]
        # one product rounds differently above and below the diagonal
        self.K[k:end, :k], self.K[:k, k:end] = cross[:, :k], cross[:, :k].T
        self.K[k:end, k:end] = (cross[:, k:] + cross[:, k:].T) / 2

    def widen(self, n_near: int, more: NDArray[Any]) -> None:
        """Add columns to the Gram rows."""
        k, known = more.shape[0], self.rows.shape[1]
        wider = np.empty((self.room, n_near))
        wider[:k, :known], wider[:k, known:] = self.rows[:k], more
        self.rows = wider

    def view(self, n_awake: int) -> AwakeView:
        """What is filled of the arrays."""
        which, starts, columns, entered_at = self.places[:4]
        k = int(starts[n_awake])
        u, _, w, _, c = self.of_awake[:5]
        return AwakeView(
            which[:n_awake].tolist(), starts[: n_awake + 1], columns[:k], entered_at[:n_awake], u[:n_awake], w[:k],
            c[:k], self.K[:k, :k],
        )  # fmt: skip

    def save(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """What changes while groups are stepped, and who they are."""
        return self.of_awake.copy(), self.places.copy()

    def load(self, saved: tuple[NDArray[Any], NDArray[Any]]) -> None:
        """Undo what was done since the save; what groups that joined since have filled lies behind the end."""
        room = saved[0].shape[1]
        self.of_awake[:, :room], self.places[:, : room + 1] = saved
