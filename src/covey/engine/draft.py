"""A piece of path that has not been checked against the far groups yet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covey.validation import FloatArray

__all__ = ["Draft", "Pieces"]

# The arrays with a number for each record.
OF_RECORDS = ("times", "n_joined", "n_entered", "steps", "n_risen")


class Draft:
    """What happened since the last check, in arrays with room to grow.

    Attributes
    ----------
    n_records : int
        How many models are recorded; the arrays are longer.
    times, n_joined, n_risen : ndarray
        Of each: the time, how many groups were awake, and how many of these were up.
    n_entered : ndarray
        How many groups had woken up since the path began.
    models : ndarray, two rows for each
        Coefficients of the awake groups, and their mean since the node before.
    steps, lefts : ndarray
        How many iterations ago that was, and the coefficients then. A model on a way on which nothing changes has no
        node before it, and zero steps.
    entered : list of (group, time)
        The groups that have woken up since the last check.
    joined : list of int
        Those that began to be stepped.
    """

    def __init__(self, room: int, n_columns: int) -> None:
        self.n_records = 0
        self.entered: list[tuple[int, int]] = []
        self.joined: list[int] = []
        self._make(room, n_columns)

    def _make(self, room: int, n_columns: int) -> None:
        """Arrays with so much room."""
        self.times, self.n_joined, self.n_entered, self.steps = (np.zeros(room, dtype=np.int64) for _ in range(4))
        self.n_risen = np.empty(room)
        self.models, self.lefts = np.empty((2 * room, n_columns)), np.empty((room, n_columns))

    def make_room(self, records: int, n_columns: int) -> None:
        """Make the arrays long enough for so many more models of so many columns."""
        room, width = self.lefts.shape
        if self.n_records + records <= room and n_columns <= width:
            return
        n, old = self.n_records, {name: getattr(self, name) for name in (*OF_RECORDS, "models", "lefts")}
        self._make(room if n + records <= room else 2 * (n + records), max(n_columns, width))
        for name in OF_RECORDS:
            getattr(self, name)[:n] = old[name][:n]
        for name, rows in (("models", 2 * n), ("lefts", n)):
            getattr(self, name)[:rows] = 0.0
            getattr(self, name)[:rows, :width] = old[name][:rows]

    def add(self, t: int, n_joined: int, w: FloatArray, n_risen: float, n_entered: int, steps: int = 0) -> None:
        """Record a model that has been as it is for some time."""
        i = self.n_records
        self.times[i], self.n_joined[i], self.n_risen[i], self.n_entered[i] = t, n_joined, n_risen, n_entered
        self.steps[i] = steps
        for row in (self.models[2 * i], self.models[2 * i + 1], self.lefts[i]):
            row[: w.size] = w
            row[w.size :] = 0.0
        self.n_records += 1

    def pieces(self, count: int, n_columns: int) -> Pieces:
        """The way in at most `count` pieces, each of about as many steps from node to node."""
        at = np.flatnonzero(self.steps[: self.n_records])
        steps, means = self.steps[at], self.models[2 * at + 1, :n_columns]
        first = np.array([part[0] for part in np.array_split(np.arange(at.size), min(count, at.size))], dtype=np.intp)
        last = np.append(first[1:], at.size) - 1
        total = np.add.reduceat(steps, first)
        share = steps / np.repeat(total, last - first + 1)
        mean = np.add.reduceat(share[:, None] * means, first, axis=0)
        return Pieces(total, self.lefts[at[first], :n_columns], self.models[2 * at[last], :n_columns], mean)


@dataclass(frozen=True)
class Pieces:
    """Consecutive pieces of a path: how many steps they take, coefficients at both ends, and their mean on the way."""

    steps: NDArray[np.int64]
    left: FloatArray
    right: FloatArray
    mean: FloatArray

    @property
    def shares(self) -> FloatArray:
        """Where each mean lies between the ends, from 0 to 1."""
        way = self.right - self.left
        length = np.einsum("ij,ij->i", way, way)
        along = np.einsum("ij,ij->i", self.mean - self.left, way)
        return np.where(length > 0, np.clip(along / np.where(length > 0, length, 1.0), 0.0, 1.0), 0.5)

    @property
    def farthest(self) -> float:
        """How far the coefficients come from where they were at first."""
        away = np.concatenate([self.right, self.mean]) - self.left[0]
        return float(np.sqrt(np.einsum("ij,ij->i", away, away).max()))
