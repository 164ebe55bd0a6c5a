"""What a search is made of: rows to learn from and rows that judge, runs of the network, and sets of groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from covey.path import Path
from covey.stopping.base import PathTask, made_once
from covey.stopping.monitor import Monitor
from covey.stopping.scorer import Scorer
from covey.validation import FloatArray

__all__ = ["NOISY", "Cleaned", "Kept", "Leg", "Trial", "way_to"]

# Noise is strong where more than this share of the response is noise to the best model.
NOISY = 0.15


@dataclass(frozen=True)
class Trial:
    """Rows to learn from, and rows that judge."""

    task: PathTask
    scorer: Scorer

    @property
    def whole(self) -> Trial | None:
        """The same with common factors left in, where they were taken out."""
        return None if self.scorer.whole is None else Trial(self.task.whole, self.scorer.whole())

    @made_once
    def null_error(self) -> float:
        """The error of the intercept alone, with common factors left in."""
        scorer = self.scorer if self.scorer.whole is None else self.scorer.whole()
        level = self.task.design.standard(self.task.y, self.task.design.weights(self.task.weight), centre=True)[1]
        return float(scorer.errors(np.empty(0, dtype=np.intp), np.empty((1, 0)), np.array([level]))[0])


class Kept(NamedTuple):
    """What is kept of an awake set: the groups, and the ridge with which they are fitted."""

    groups: tuple[int, ...]
    ridge: float

    @property
    def key(self) -> tuple[frozenset[int], float]:
        """The same for the same groups in any order."""
        return frozenset(self.groups), self.ridge

    @property
    def name(self) -> str:
        """How it is fitted."""
        return f"ridge {self.ridge:g} on kept groups" if self.ridge else "least squares on kept groups"


@dataclass(frozen=True)
class Cleaned:
    """Least squares, or a ridge, on what cleaning kept: the best set of one way to clean, as it was judged.

    Attributes
    ----------
    kept : Kept
    columns : ndarray of int
    coef : ndarray
        Coefficients of these columns.
    intercept, error : float
    whole : bool
        Whether common factors were left in X, where there are any.
    """

    kept: Kept
    columns: NDArray[np.intp]
    coef: FloatArray
    intercept: float
    error: float
    whole: bool = False


@dataclass(frozen=True, eq=False)
class Leg:
    """One run of the network, and how its models were judged.

    Attributes
    ----------
    path : Path
    monitor : Monitor
    start : Kept or None
        What it was restarted from.
    before : Leg or None
        The leg that was cleaned for it.
    options : dict
        What differs from the settings of the task.
    at_start : bool
        Whether to take the model that it was restarted from, and not the one that the judging rows chose.
    """

    path: Path
    monitor: Monitor
    start: Kept | None = None
    before: Leg | None = None
    options: dict[str, Any] = field(default_factory=dict)
    at_start: bool = False

    @property
    def dense(self) -> bool:
        """Whether all groups rose together."""
        return "init_scale" in self.options

    @property
    def error(self) -> float:
        """The error at the time that it chose."""
        return self.monitor.errors[self.monitor.times.index(self.time)]

    @property
    def time(self) -> float:
        """The time that it chose."""
        return float(self.path.times[0]) if self.at_start else self.monitor.best_time

    @property
    def model(self) -> tuple[NDArray[np.intp], FloatArray, float]:
        """The model that it chose: columns, their coefficients, and the intercept."""
        return self.path.stored(self.path.index(self.time))

    @property
    def settled(self) -> bool:
        """Whether the chosen model is least squares on its groups."""
        return self.start is not None and self.time == self.path.times[0]

    @property
    def order(self) -> list[int]:
        """Groups in the order in which they woke up; those kept from before come first."""
        return [l for l, _ in self.path.entered]

    @property
    def awake(self) -> list[int]:
        """The groups of the chosen model."""
        return [l for l, t in self.path.entered if t <= self.time]


def way_to(leg: Leg) -> list[Leg]:
    """The legs through which one was come to, itself the last."""
    return [leg] if leg.before is None else [*way_to(leg.before), leg]
