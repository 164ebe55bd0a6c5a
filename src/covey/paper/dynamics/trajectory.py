"""Trajectory: the result of every dynamics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from covey.groups import Groups
from covey.summary import brief
from covey.validation import FloatArray


class Status(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    STOPPED = "stopped"
    DIVERGED = "diverged"


@dataclass(frozen=True, repr=False)
class Trajectory:
    """The recorded iterates of a run; the first axis of every array is time, entry 0 is the start.

    Attributes
    ----------
    t : ndarray, shape (n_records,)
        Iterations, or times of the flow.
    u, v : ndarrays, shapes (n_records, n_groups) and (n_records, n_columns)
        Magnitudes and directions; for the diagonal network the factors of its two parts, one per column.
    w : ndarray, shape (n_records, n_columns)
        Coefficients.
    loss, error : ndarrays, shape (n_records,)
        ``norm(y - X w)^2 / (2 n)``, or the mean over rows of another loss; ``norm(w - w_star)^2``, or None if the truth
        was not given.
    depth : int
        The power N on the magnitudes.
    switch : int or None
        The iteration after which the direction step was decreased (Algorithm 2); None if it never was.
    status, message : Status and str
        ``"completed"``, ``"stopped"`` by the caller, or ``"diverged"``, and then the record ends at the last finite
        iterate. The message says what it means and what to do about it.
    """

    t: NDArray[np.floating | np.integer]
    u: FloatArray
    v: FloatArray
    w: FloatArray
    loss: FloatArray
    error: FloatArray | None
    groups: Groups
    depth: int
    switch: int | None = None
    status: Status = Status.COMPLETED
    message: str = ""
    _dense: Callable[[FloatArray], tuple[FloatArray, FloatArray]] | None = field(default=None, repr=False)

    __repr__ = brief

    def __len__(self) -> int:
        return len(self.t)

    @property
    def group_norms(self) -> FloatArray:
        """Euclidean norm of each group's coefficients; shape (n_records, n_groups)."""
        return self.groups.norms(self.w)

    @property
    def best(self) -> int:
        """The record with the least recovery error."""
        if self.error is None:
            raise ValueError("The recovery error is unknown: pass w_star= to the dynamics.")
        return int(np.argmin(self.error))

    def woke(self, fraction: float = 0.5, least: float = 0.01) -> list[tuple[int, float]]:
        """Which groups woke up and when: ``(group position, time)``, in order of time.

        A group has woken up when its norm first reaches `fraction` of its last recorded norm; groups that end below
        `least` times the largest are asleep.
        """
        norms = self.group_norms
        awake = np.flatnonzero(norms[-1] > least * norms[-1].max())
        first = [(int(l), self.t[np.argmax(norms[:, l] >= fraction * norms[-1, l])].item()) for l in awake]
        return sorted(first, key=lambda event: event[1])

    def at(self, t: float) -> FloatArray:
        """The coefficients at time ``t``: exact for a flow, otherwise from the last record up to ``t``."""
        if not self.t[0] <= t <= self.t[-1]:
            raise ValueError(f"The trajectory runs from {self.t[0]:g} to {self.t[-1]:g}; time {t:g} lies outside.")
        if self._dense is not None:
            u, v = self._dense(np.array([t], dtype=float))
            return (u[:, self.groups.labels] ** self.depth * v)[0]
        return self.w[np.searchsorted(self.t, t, side="right") - 1]
