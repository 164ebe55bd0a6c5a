"""Limit paths of several splits of the rows, advanced together.

Events are computed among the near groups, whose rows are in a table: one product gives the gradients of all splits.
Then `covey.search.far` checks all others at these events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covey.arrays import stack
from covey.search.active import ActiveSet
from covey.search.events import TIE, EventPath
from covey.search.far import FarGroups
from covey.search.table import Table
from covey.validation import ArrayOrTensor, FloatArray

__all__ = ["Knots", "Paths"]


@dataclass(frozen=True)
class Knots:
    """Models of a path before its first event and after each event, in working coordinates.

    Attributes
    ----------
    groups : list of int
        The groups in the order in which they woke up, as positions among all groups.
    times : list of float
        One per model.
    W, levels : ndarray, shape (n_models, n_outputs, k) and (n_models, n_outputs)
        Coefficients of the groups, and intercepts.
    separated : list of bool
        Whether the minimum lies at infinity, for each model.
    exhausted : bool
        Whether nothing is left to explain after the last event.
    """

    groups: list[int]
    times: list[float]
    W: FloatArray
    levels: FloatArray
    separated: list[bool]
    exhausted: bool


class Paths:
    """One limit path per split.

    Parameters
    ----------
    table : Table
    starts : sequence of sequences of int
        For every split, the groups that are awake from the start, as positions among all groups.
    mains : bool
        Whether only main groups may wake.
    late : bool
        Whether late groups may wake besides: those of the groups that are awake from the start.

    Attributes
    ----------
    paths : list of EventPath
        Groups are positions among the near ones.
    far : FarGroups
    late : bool
    exhausted : set of int
        The splits on which nothing is left to explain: they stay as they are.
    n_columns : int
        Where all paths have ended; set by `end_at`.
    """

    n_columns: int

    def __init__(self, table: Table, starts: Sequence[Sequence[int]], mains: bool = False, late: bool = False) -> None:
        self.table, self.posed, self.late = table, table.posed, late
        racing = np.arange(self.posed.ranks.size) < (self.posed.n_mains if mains else np.inf)
        racing[self.posed.late] = False
        if not mains:
            racing[list(self.posed.pieces)] = False
            table.add_all()
        more = [self.posed.late_after(groups) if late else [] for groups in starts]
        inner = [[] if mains else self.posed.pairs_of(groups) for groups in starts]
        near = [l for groups in (*starts, *more, *inner) for l in groups]
        table.add(np.unique(np.array(near, dtype=np.intp)))
        self.starts = [[table.place[int(l)] for l in groups] for groups in starts]
        active, null = list[ActiveSet](), list[ArrayOrTensor]()
        for split, start in zip(self.posed.splits, self.starts, strict=True):
            one = ActiveSet(table, table.on_split(split)[0], rough=not split.everything)
            null.append(one.score())
            one.refit(*start)
            active.append(one)
        self.far = FarGroups(table, active, racing, inner, with_pairs=not mains)
        self.paths: list[EventPath] = []
        for one, first_norms, some in zip(active, table.gradient_norms(stack(null, 1)), more, strict=True):
            may_wake = self.far.racing[table.groups] | np.isin(table.groups, some)
            weights = self.far.weights(len(self.paths))
            self.paths.append(EventPath(one, weights, table.groups, first_norms, may_wake))
        self.far.paths = self.paths
        self.exhausted: set[int] = set()
        self._same = 0

    def active(self, split: int) -> ActiveSet:
        """The awake groups of a split."""
        return self.paths[split].active

    def groups(self, split: int) -> list[int]:
        """The awake groups of a split, as positions among all groups, in the order in which they woke up."""
        return self.table.groups[self.paths[split].groups].tolist()

    def knots(self, split: int) -> Knots:
        """The models of a split before its first event and after each event, without common factors."""
        active, begun, i = self.active(split).without_factors(), len(self.starts[split]), int(self.posed.intercept)
        models = active.coefficients(begun, len(active.groups))
        levels = models[:, :, 0] if i else np.zeros(models.shape[:2])
        times = [0.0, *self.paths[split].times[begun:]]
        exhausted = split in self.exhausted
        return Knots(self.groups(split), times, models[:, :, i:], levels, active.separated[begun:], exhausted)

    def predictors(self, split: int, which: NDArray[np.intp], first: int, last: int) -> FloatArray:
        """Predictors of the models after the first m events of a split, for every m from first to last, on some rows.

        Where nothing was left to explain earlier, those of its last model; shape (n_rows, n_outputs, n_models).
        """
        active, begun, done = self.active(split), len(self.starts[split]), self._n_events(split)
        known = active.predictors(which, begun + min(first, done), begun + min(last, done))
        return known[:, :, np.minimum(np.arange(first, last + 1), done) - min(first, done)]

    @property
    def ended(self) -> bool:
        """Whether nothing is left to explain on any split."""
        return len(self.exhausted) == len(self.paths)

    def n_events(self) -> int:
        """The number of events that every split has had that is not exhausted; if all are, the largest number.

        Groups that were awake from the start do not count.
        """
        n_events = [self._n_events(s) for s in range(len(self.paths))]
        return min((n for s, n in enumerate(n_events) if s not in self.exhausted), default=max(n_events))

    def n_wakings(self, n_events: int) -> list[int]:
        """How many of the first events took time on the path of all rows, for every number of events up to `n_events`.

        A group and its parents wake at the same time, and so do groups that are tied, up to round-off error. Events
        that only other splits have take time.
        """
        times = np.array([0.0, *self.paths[-1].times[len(self.starts[-1]) :]])[: n_events + 1]
        took = np.append(np.diff(times) > TIE * times[1:], np.ones(n_events + 1 - times.size, dtype=bool))
        return [0, *np.cumsum(took).tolist()]

    def advance(self, n_events: int, *, checked: bool = True) -> int:
        """Advance every split to `n_events` events, or until nothing is left to explain.

        If they need not be `checked`, the events of a streamed X may wait for `is_revised`. Returns how many events
        from before are still the same.
        """
        self._same = self.n_events()
        while self.n_events() < n_events and not self.ended:
            done = self.n_events()
            target = n_events if self.far.are_none else min(n_events, done + self.far.events_per_check)
            self.exhausted = set(self._wake([target] * len(self.paths)))
            if checked:
                self.is_revised()
        return self._same

    def width_after(self, n_events: int) -> int:
        """The columns after some events on all rows; if nothing was left to explain earlier, the most on any split.

        A split may need groups to explain its rows that all rows do without.
        """
        last = len(self.paths) - 1
        splits = range(last, last + 1) if self._n_events(last) >= n_events else range(len(self.paths))
        return max(self.width(s, len(self.starts[s]) + min(n_events, self._n_events(s))) for s in splits)

    def end_at(self, n_columns: int) -> None:
        """End the path of every split where its groups would have more than `n_columns` columns."""
        self.n_columns = n_columns
        short = {s for s in range(len(self.paths)) if self.width(s) < n_columns}
        while short or self.is_revised():
            short = short or {s for s in range(len(self.paths)) if self.width(s) < n_columns}
            most = [self._n_events(s) + self.far.events_per_check if s in short else 0 for s in range(len(self.paths))]
            ended = self._wake(most, n_columns)
            short = {s for s in short.difference(ended) if self.width(s) <= n_columns}
        for s, path in enumerate(self.paths):
            length = max(self.length(s, n_columns), len(self.starts[s]))
            if length < len(path):
                self.exhausted.discard(s)
            path.truncate(length)

    def width(self, split: int, n_groups: int = -1) -> int:
        """The number of columns of the first awake groups of a split, by default of all."""
        active = self.active(split)
        return active.widths[n_groups] - active.n_first

    def length(self, split: int, n_columns: int) -> int:
        """How many of the first awake groups of a split have at most `n_columns` columns together."""
        active = self.active(split)
        return int(np.searchsorted(np.array(active.widths) - active.n_first, n_columns, side="right")) - 1

    def _n_events(self, split: int) -> int:
        return len(self.paths[split]) - len(self.starts[split])

    def _wake(self, most: Sequence[int], n_columns: float = np.inf) -> list[int]:
        """Wake groups up to the most events of each split, while there are at most `n_columns` columns.

        Far groups are checked at the end. Returns the splits on which nothing was left to explain.
        """
        splits = range(len(self.paths))
        while True:
            ended: list[int] = []
            while pending := [
                s for s in splits if s not in ended and self._n_events(s) < most[s] and self.width(s) <= n_columns
            ]:
                scores = stack([self.active(s).score() for s in pending], 1)
                norms = self.table.gradient_norms(scores)
                for s, of_split in zip(pending, norms, strict=True):
                    woken = self.paths[s].next_groups(of_split, self.table.parents)
                    if not woken:
                        ended.append(s)
                    for group in woken:
                        self.active(s).refit(group)
            if self.far.are_none or not (ended or self.far.is_due):
                return ended
            # a far group may be missing at an event, or may be left to explain after the last one
            if not (self.is_revised() or self.far.check_ends(ended)):
                return ended

    def is_revised(self) -> bool:
        """Check the events that have not been checked yet; return whether a path went back."""
        if self.far.are_none or not self.far.check():
            return False
        self.exhausted = set()
        self._same = min(self._same, self.n_events())
        return True
