"""Stop rules, and the models that they see while a path runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covey.validation import FloatArray

__all__ = ["Snapshot", "Snapshots", "StopLike", "StopRule", "as_stop_rule"]


@dataclass(frozen=True)
class Snapshot:
    """The model at a recorded time, on the user's scale, restricted to the awake groups.

    Attributes
    ----------
    time : int
        Iteration.
    columns : ndarray of int, shape (k,)
        The design's columns of the groups that have woken up, in order: later snapshots only append columns.
    coef : ndarray, shape (k,)
        Their coefficients. All other columns have coefficient zero.
    intercept : float
    n_woken : int
        How many groups have woken up so far.
    n_risen : float
        How many of them have risen, each counted by its norm relative to where it is heading. Patience should be
        counted in this unit: the model is constant for long times between events, and many groups may wake up together
        long before any of them is large enough to change a prediction.
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
        The columns of the last model.
    widths : ndarray of int, shape (n_models,)
        The number of columns in each model.
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


class StopRule(ABC):
    """Decides, while a path runs, where it ends; it sees every recorded model, in order."""

    @abstractmethod
    def stop_at(self, snapshot: Snapshot) -> bool:
        """Whether the path ends at this model."""

    def stop_among(self, snapshots: Snapshots) -> int:
        """The index of the first of several models at which the path ends, or their number if it continues.

        A rule that can score many models in one product overrides this.
        """
        for i in range(len(snapshots)):
            if self.stop_at(snapshots[i]):
                return i
        return len(snapshots)


# Accepted as `stop`: a rule, or a function that is true where the path should end.
StopLike = StopRule | Callable[[Snapshot], bool]


class _Function(StopRule):
    """A function of a snapshot as a rule."""

    def __init__(self, function: Callable[[Snapshot], bool]) -> None:
        self.function = function

    def stop_at(self, snapshot: Snapshot) -> bool:
        return bool(self.function(snapshot))


def as_stop_rule(stop: StopLike | None) -> StopRule | None:
    """Read ``stop=`` as a rule."""
    if stop is None or isinstance(stop, StopRule):
        return stop
    if not callable(stop):
        raise ValueError(f"stop must be a function of a Snapshot or a StopRule, not {type(stop).__name__}.")
    return _Function(stop)
