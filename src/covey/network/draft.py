"""A piece of a path that has not yet been checked against the far groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covey.network.kernels import JOINS, RECORDS, WAKE_UPS
from covey.validation import FloatArray

__all__ = ["Draft", "Pieces"]


class Draft:
    """Everything since the last check, in arrays with spare capacity.

    Attributes
    ----------
    filled : ndarray of int, shape (3,)
        The numbers of recorded models, of groups that have woken up, and of groups that started to be stepped; the
        arrays are longer.
    numbers : ndarray of int, shape (3, room)
        For each record: the time, the number of groups that had woken up since the path began, and the iterations since
        the previous node. A model on a stretch where nothing changes has no previous node, and zero steps.
    events : ndarray of int, shape (3, n_groups)
        The groups that have woken up, and when; the groups that started to be stepped.
    n_risen : ndarray
        How many of the awake groups had risen.
    models : ndarray, two rows for each record
        Coefficients of the awake groups, and their mean since the previous node.
    lefts : ndarray
        Coefficients at the previous node.
    """

    def __init__(self, room: int, n_columns: int, n_groups: int = 0) -> None:
        self.filled = np.zeros(3, dtype=np.int64)
        self.events = np.empty((3, n_groups), dtype=np.int64)
        self._make(room, n_columns)

    def _make(self, room: int, n_columns: int) -> None:
        """Allocate arrays of this capacity."""
        self.numbers, self.n_risen = np.zeros((3, room), dtype=np.int64), np.empty(room)
        self.models, self.lefts = np.empty((2 * room, n_columns)), np.empty((room, n_columns))

    @property
    def n_records(self) -> int:
        """The number of recorded models."""
        return int(self.filled[RECORDS])

    @property
    def times(self) -> NDArray[np.int64]:
        """The time of each record."""
        return self.numbers[0, : self.n_records]

    @property
    def n_entered(self) -> NDArray[np.int64]:
        """The number of groups that had woken up since the path began, per record."""
        return self.numbers[1, : self.n_records]

    @property
    def steps(self) -> NDArray[np.int64]:
        """The number of iterations between each record and the previous node."""
        return self.numbers[2, : self.n_records]

    @property
    def entered(self) -> NDArray[np.int64]:
        """The groups that have woken up since the last check, and when; shape (2, n)."""
        return self.events[:2, : self.filled[WAKE_UPS]]

    @property
    def joined(self) -> NDArray[np.int64]:
        """The groups that started to be stepped."""
        return self.events[2, : self.filled[JOINS]]

    def make_room(self, records: int, n_columns: int) -> None:
        """Extend the arrays for this many more models with this many columns."""
        room, width = self.lefts.shape
        n = self.n_records
        if n + records <= room and n_columns <= width:
            return
        numbers, n_risen, models, lefts = self.numbers, self.n_risen, self.models, self.lefts
        self._make(room if n + records <= room else 2 * (n + records), max(n_columns, width))
        self.numbers[:, :n], self.n_risen[:n] = numbers[:, :n], n_risen[:n]
        for new, old in ((self.models[: 2 * n], models[: 2 * n]), (self.lefts[:n], lefts[:n])):
            new[:] = 0.0
            new[:, :width] = old

    def widen(self, n_groups: int) -> None:
        """Make room for the events of this many groups."""
        known = self.events
        self.events = np.empty((3, n_groups), dtype=np.int64)
        self.events[:, : known.shape[1]] = known

    def enter(self, groups: list[int], times: list[int]) -> None:
        """Record groups that have woken up, and when."""
        n = int(self.filled[WAKE_UPS])
        self.events[:2, n : n + len(groups)] = groups, times
        self.filled[WAKE_UPS] += len(groups)

    def join(self, groups: NDArray[np.int64]) -> None:
        """Record groups that started to be stepped."""
        n = int(self.filled[JOINS])
        self.events[2, n : n + groups.size] = groups
        self.filled[JOINS] += groups.size

    def add(self, t: int, w: FloatArray, n_risen: float, n_entered: int, steps: int = 0) -> None:
        """Record a model that has not changed for some time."""
        i = self.n_records
        self.numbers[:, i], self.n_risen[i] = (t, n_entered, steps), n_risen
        for row in (self.models[2 * i], self.models[2 * i + 1], self.lefts[i]):
            row[: w.size] = w
            row[w.size :] = 0.0
        self.filled[RECORDS] += 1

    def pieces(self, count: int, n_columns: int) -> Pieces:
        """The draft in at most `count` pieces of similar numbers of steps, from node to node."""
        at = np.flatnonzero(self.steps)
        steps, means = self.steps[at], self.models[2 * at + 1, :n_columns]
        first = np.array([part[0] for part in np.array_split(np.arange(at.size), min(count, at.size))], dtype=np.intp)
        last = np.append(first[1:], at.size) - 1
        total = np.add.reduceat(steps, first)
        share = steps / np.repeat(total, last - first + 1)
        mean = np.add.reduceat(share[:, None] * means, first, axis=0)
        return Pieces(total, self.lefts[at[first], :n_columns], self.models[2 * at[last], :n_columns], mean)


@dataclass(frozen=True)
class Pieces:
    """Consecutive pieces of a path: numbers of steps, coefficients at both ends, and the mean coefficients between."""

    steps: NDArray[np.int64]
    left: FloatArray
    right: FloatArray
    mean: FloatArray

    @property
    def shares(self) -> FloatArray:
        """The position of each mean between the ends, from 0 to 1."""
        way = self.right - self.left
        length = np.einsum("ij,ij->i", way, way)
        along = np.einsum("ij,ij->i", self.mean - self.left, way)
        return np.where(length > 0, np.clip(along / np.where(length > 0, length, 1.0), 0.0, 1.0), 0.5)

    @property
    def farthest(self) -> float:
        """The largest distance of the coefficients from their initial values."""
        away = np.concatenate([self.right, self.mean]) - self.left[0]
        return float(np.sqrt(np.einsum("ij,ij->i", away, away).max()))
