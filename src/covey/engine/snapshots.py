"""What a stop rule is shown while a path runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from covey.validation import FloatArray

__all__ = ["Move", "Prospects", "Snapshot", "Snapshots", "StopRule"]


@dataclass(frozen=True)
class Snapshot:
    """The model at a recorded time, on the user's scale, restricted to the awake groups.

    Attributes
    ----------
    time : int
        Iteration.
    columns : ndarray of int, shape (k,)
        The design's columns of the groups that have woken up, in the order in which they did: from one snapshot to
        the next columns are only appended.
    coef : ndarray, shape (k,)
        Their coefficients. Every other column has coefficient zero.
    intercept : float
    n_woken : int
        How many groups have woken up so far.
    n_risen : float
        How many of them are up, each counted by how far it has come of where it is heading. This is the clock in
        which patience should be counted: the model stands still for long times between wake-ups, and many groups
        may wake together long before any of them is large enough to change a prediction.
    """

    time: int
    columns: NDArray[np.intp]
    coef: FloatArray
    intercept: float
    n_woken: int
    n_risen: float


@dataclass(frozen=True)
class Snapshots:
    """Consecutive models of a path, one `Snapshot` each, as arrays.

    Attributes
    ----------
    times, intercepts, n_woken, n_risen : ndarray, shape (n_models,)
    columns : ndarray of int, shape (k,)
        Those of the last model.
    widths : ndarray of int, shape (n_models,)
        How many of the columns each model has.
    coefs : ndarray, shape (n_models, k)
        Coefficients; zero in columns that a model does not have.
    """

    times: NDArray[np.int64]
    columns: NDArray[np.intp]
    widths: NDArray[np.intp]
    coefs: FloatArray
    intercepts: FloatArray
    n_woken: NDArray[np.intp]
    n_risen: FloatArray

    def __len__(self) -> int:
        return self.times.size

    def __getitem__(self, i: int) -> Snapshot:
        width = int(self.widths[i])
        return Snapshot(
            int(self.times[i]), self.columns[:width], self.coefs[i, :width], float(self.intercepts[i]),
            int(self.n_woken[i]), float(self.n_risen[i]),
        )  # fmt: skip


# A rule may also have a method ``look_ahead(prospects) -> bool``, asked now and then; a true answer ends the path. And
# it may have a method ``stop_among(snapshots) -> int``, asked instead of the rule itself where several models are known
# at once: the position of the first one at which the rule says True, or how many there are.
StopRule = Callable[[Snapshot], bool]


class Move(NamedTuple):
    """A change of some coefficients, on the user's scale."""

    columns: NDArray[np.intp]
    coef: FloatArray
    intercept: float


@dataclass(frozen=True)
class Prospects:
    """What lies ahead of a path.

    Attributes
    ----------
    now : Snapshot
        The present model.
    settling : list of Move
        The groups that are up, as far as they still have to go: by one gradient step, and all the way.
    next : list of Move
        For each of the groups next in line, its own least squares on the present residual.
    until : float
        The present model stays as it is until this time.
    stands_out : bool
        Whether one of the groups next in line goes with the present residual more than noise would in any of them.
    """

    now: Snapshot
    settling: list[Move]
    next: list[Move]
    until: float
    stands_out: bool = False
