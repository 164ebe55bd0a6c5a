"""A piece of path that has not been checked against the far groups yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from covey.validation import FloatArray

__all__ = ["Draft", "Interval", "Record"]


class Interval(NamedTuple):
    """Awake coefficients between two nodes: at both, and their mean on the way."""

    steps: int
    left: FloatArray
    right: FloatArray
    mean: FloatArray


class Record(NamedTuple):
    """A model to record: the first `n_joined` groups of the awake ones have coefficients w."""

    t: int
    n_joined: int
    w: FloatArray
    n_risen: float
    n_entered: int


@dataclass
class Draft:
    """What happened since the last check.

    Attributes
    ----------
    intervals, records : list
    entered : list of (group, time)
    n_entered : int
        How many have entered since the path began.
    joined : list of int
        Groups that began to be stepped.
    """

    intervals: list[Interval] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    entered: list[tuple[int, int]] = field(default_factory=list)
    n_entered: int = 0
    joined: list[int] = field(default_factory=list)
