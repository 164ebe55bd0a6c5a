"""Limit paths of several splits of the rows, advanced together.

Events are computed among the near groups, whose rows are in memory. Then one product with X checks all far groups at
these events, for all splits. If a far group should have woken, the path goes back to that event and the group becomes
near. The set of near groups only grows, so two decisions that differ in the last bit cannot alternate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from covey.groups import Groups
from covey.layout import offsets
from covey.limit.events import EXHAUSTED, TIE, EventPath
from covey.limit.likelihood import SEPARATED_RIDGE
from covey.limit.posed import Posed
from covey.path import Path
from covey.validation import FloatArray

__all__ = ["Knots", "Near", "Paths", "as_path"]

# Events between two checks of the far groups: with more, going back costs more; with fewer, X is read more often.
EVENTS_PER_CHECK = 12

# When a group was missing, the far groups that would wake next become near: this many columns per split, but at least
# LEAST_GROWTH groups.
GROWTH, LEAST_GROWTH = 80, 5


class Near:
    """The near groups and their table; shared by the rounds of a search."""

    def __init__(self, posed: Posed) -> None:
        self.posed = posed
        self.groups = posed.nearest()
        self.rows: Any = posed.rows(self.groups)

    @property
    def all(self) -> bool:
        """Whether all groups are near."""
        return self.groups.size == self.posed.problem.ranks.size

    def add(self, groups: NDArray[np.intp]) -> None:
        """Make far groups near; groups that are near already keep their positions."""
        known = set(self.groups.tolist())
        new = np.array([l for l in dict.fromkeys(groups.tolist()) if l not in known], dtype=np.intp)
        if new.size:
            n_known = self.groups.size
            self.groups = np.concatenate([self.groups, new])
            self.rows = self.posed.wider_rows(self.rows, self.groups, n_known)


@dataclass(frozen=True)
class Knots:
    """Models of a path before its first event and after each event, in working coordinates.

    Attributes
    ----------
    W, levels : ndarray, shape (n_models, n_outputs, k) and (n_models, n_outputs)
        Coefficients of the groups in the order in which they woke up, and intercepts.
    separated : sequence of bool
        Whether the minimum lies at infinity, for each model; empty if the loss always has a finite minimum.
    """

    W: FloatArray
    levels: FloatArray
    separated: Sequence[bool]


class Paths:
    """One limit path per split.

    Parameters
    ----------
    near : Near
    starts : sequence of sequences of int
        For every split, the groups that are awake from the start, as positions among all groups.

    Attributes
    ----------
    paths : list of EventPath
        Groups are positions among the near ones.
    ended : bool
        Whether nothing is left to explain on some split.
    """

    def __init__(self, near: Near, starts: Sequence[Sequence[int]]) -> None:
        self.near, self.posed = near, near.posed
        near.add(np.unique(np.array([l for own in starts for l in own], dtype=np.intp)))
        place = {int(l): i for i, l in enumerate(near.groups)}
        self.starts = [[place[int(l)] for l in own] for own in starts]
        self.paths = [self._new(s) for s in range(len(starts))]
        self.ended = False
        self._kept: dict[int, Knots] = {}
        self._checked = [len(own) for own in starts]
        self._sums = np.zeros((len(starts), self.posed.problem.ranks.size))

    def _new(self, split: int) -> EventPath:
        near = self.near
        objective = self.posed.objective(near.rows, split)
        return EventPath(objective, self.posed.weights[near.groups], near.groups, self.starts[split])

    def groups(self, split: int) -> list[int]:
        """The awake groups of a split, as positions among all groups, in the order in which they woke up."""
        return [int(self.near.groups[l]) for l in self.paths[split].groups]

    def objective(self, split: int) -> Any:
        """The loss of a split at its current model."""
        return self.paths[split].objective

    def knots(self, split: int) -> Knots:
        """The models of a split before its first event and after each event, without common factors."""
        if split in self._kept:
            return self._kept[split]
        objective, begun = self.objective(split), len(self.starts[split])
        W, levels = objective.models(begun, self.posed.intercept)
        return Knots(W, levels, objective.separated[begun:])

    def close(self, kept: Sequence[int] = ()) -> None:
        """Release all tables once no event follows, keeping the models of some splits."""
        self._kept = {split: self.knots(split) for split in kept}
        for path in self.paths:
            path.close()
        self.near.rows.forget()

    def n_events(self) -> int:
        """The number of events that every split has had, not counting groups awake from the start."""
        return min(len(path) - len(own) for path, own in zip(self.paths, self.starts, strict=True))

    def advance(self, n_events: int) -> None:
        """Advance every split to `n_events` events, or until nothing is left to explain."""
        done = self.n_events()
        while done < n_events and not self.ended:
            target = n_events if self.near.all else min(n_events, done + EVENTS_PER_CHECK)
            ended: list[int] = []
            pending = list(range(len(self.paths)))
            while pending:
                # event by event: splits often wake the same groups, whose Gram rows are then cached
                pending = [s for s in pending if len(self.paths[s]) - len(self.starts[s]) < target]
                stuck = [s for s in pending if not self.paths[s].advance()]
                ended += stuck
                pending = [s for s in pending if s not in stuck]
            # a far group may be missing at an event, or may be left to explain after the last one
            missing = not self.near.all and (self._check() or self._check_ends(ended))
            self.ended = bool(ended) and not missing
            done = self.n_events()
        if self.ended:
            self.truncate(self.n_events())

    def truncate(self, n_events: int) -> None:
        """Go back to `n_events` events in every split."""
        for path, own in zip(self.paths, self.starts, strict=True):
            if len(path) - len(own) > n_events:
                path.truncate(len(own) + n_events)

    # ------------------------------------------------------------------ far groups

    def _check(self) -> bool:
        """Check all groups at the events since the last check; go back and return True if one was missing."""
        spans = [(first, len(path) - 1) for first, path in zip(self._checked, self.paths, strict=True)]
        which, norms = self._gradients(spans)
        if not which.size:
            return False
        steps = np.concatenate(
            [np.diff([0.0, *path.times])[a : b + 1] for path, (a, b) in zip(self.paths, spans, strict=True)]
        )
        rates = np.divide(norms, self.posed.weights, out=norms)
        far = np.ones(rates.shape[1], dtype=bool)
        far[self.near.groups] = False
        complete, soon = True, [np.empty(0, dtype=np.intp)]
        for split, path in enumerate(self.paths):
            own = np.flatnonzero(which == split)
            # in place: with small groups this table takes a good part of the memory of X
            sums = rates[own]
            sums *= steps[own][:, None]
            np.cumsum(sums, axis=0, out=sums)
            sums += self._sums[split]
            late = np.flatnonzero(self._is_late(split, far, sums))
            good = int(late[0]) if late.size else own.size
            if late.size:
                complete = False
                path.truncate(self._checked[split] + good)
            if own.size:
                at = min(good, own.size - 1)
                soon.append(self._soonest(far, sums[at - 1] if at else self._sums[split], rates[own[at]]))
            if good:
                self._sums[split] = sums[good - 1]
            self._checked[split] += good
        if complete:
            return False
        self._widen(np.unique(np.concatenate(soon)))
        return True

    def _is_late(self, split: int, far: NDArray[np.bool_], sums: FloatArray) -> NDArray[np.bool_]:
        """Events at which a far group should have woken: earlier, or at the same time with a smaller position."""
        path, first = self.paths[split], self._checked[split]
        woken = self.near.groups[path.groups[first : first + len(sums)]]
        before = np.vstack([self._sums[split], sums])[:-1]
        tie = (sums > 1 - TIE) & (before <= 1 - TIE) & (np.arange(far.size) < woken[:, None])
        return np.asarray((((sums > 1 + TIE) | tie) & far).any(axis=1))

    def _soonest(self, far: NDArray[np.bool_], sums: FloatArray, rates: FloatArray) -> NDArray[np.intp]:
        """The far groups that would wake next if the model did not change."""
        wait = np.full(rates.size, np.inf)
        np.divide(np.maximum(1 - sums, 0.0), rates, out=wait, where=far & (rates > 0))
        order = np.flatnonzero(np.isfinite(wait))
        most = GROWTH + LEAST_GROWTH  # every group has at least one column
        if order.size > most:
            order = order[wait[order] <= np.partition(wait[order], most)[most]]
        order = order[np.argsort(wait[order], kind="stable")]
        ranks = self.posed.problem.ranks[order]
        return order[: max(LEAST_GROWTH, int(np.searchsorted(np.cumsum(ranks), GROWTH)))]

    def _check_ends(self, ended: Sequence[int]) -> bool:
        """Where the near groups have nothing left to explain, take in far groups that do; return whether any did."""
        spans = [(len(path), len(path) if s in ended else -1) for s, path in enumerate(self.paths)]
        which, norms = self._gradients(spans)
        if not which.size:
            return False
        rates = norms / self.posed.weights
        far = np.ones(rates.shape[1], dtype=bool)
        far[self.near.groups] = False
        rounding = max(EXHAUSTED, 1e3 * float(np.finfo(self.posed.problem.design.dtype).eps))
        first = np.array([self.paths[s].first_rate for s in which])
        if not (far & (rates > rounding * first[:, None]).any(axis=0)).any():
            return False
        soon = [self._soonest(far, self._sums[s], own) for s, own in zip(which, rates, strict=True)]
        self._widen(np.unique(np.concatenate(soon)))
        return True

    def _gradients(self, spans: Sequence[tuple[int, int]]) -> tuple[NDArray[np.intp], FloatArray]:
        """Gradient norms of all groups at the models on the first m groups of each split, for every m in its span."""
        objectives = [path.objective for path in self.paths]
        return self.posed.gradients(self.near.groups, self.near.rows, objectives, spans)

    def _widen(self, groups: NDArray[np.intp]) -> None:
        """Make groups near, with the sums that they have accumulated so far."""
        before = self.near.groups.size
        self.near.add(groups)
        near = self.near.groups
        for split, path in enumerate(self.paths):
            self.objective(split).widen(self.near.rows)
            path.widen(self.posed.weights[near], near, self._sums[split][near[before:]])


MESSAGES = {
    "completed": "The path has the requested number of groups.",
    "exhausted": "Nothing is left to explain at time {time:g}.",
}
SEPARATED = (
    "From time {time:g} on, the awake groups separate the responses perfectly, so the best coefficients are infinite; "
    "models from there on have a ridge of {ridge:g}."
)


def as_path(paths: Paths, split: int, groups: Groups) -> Path:
    """The path of a split: the minimiser on the groups awake after each event."""
    posed, problem = paths.posed, paths.posed.problem
    awake, events = paths.groups(split), paths.paths[split]
    begun = len(paths.starts[split])
    knots = paths.knots(split)
    W = knots.W
    columns, coefs, intercepts = posed.to_user(awake, W, knots.levels)
    n, m, _ = coefs.shape
    starts = offsets(problem.ranks[awake])
    own = posed.outputs(W)
    # in units of each group's largest coefficient, so that squares neither overflow nor underflow
    largest = np.append(np.abs(own).max(axis=(0, 1), initial=0.0), 0.0)
    unit = np.maximum.reduceat(largest, starts[:-1]) if awake else np.empty(0)
    unit[unit == 0] = 1.0
    own = ((own / np.repeat(unit, problem.ranks[awake])) ** 2).sum(axis=1)
    squares = np.add.reduceat(np.hstack([own, np.zeros((n, 1))]), starts[:-1], axis=1) if awake else own
    times = np.array([0.0, *events.times[begun:]])
    status = "exhausted" if paths.ended else "completed"
    separated = np.flatnonzero(knots.separated)
    message = MESSAGES[status].format(time=float(times[-1]))
    if separated.size:
        time = times[separated[0]]
        status = "separated"
        message += " " + SEPARATED.format(time=float(time), ridge=SEPARATED_RIDGE)
    wide = np.concatenate([columns + output * problem.mean.size for output in range(m)])
    path = Path(
        times=times,
        coefs=_sparse(wide, coefs.reshape(n, -1), m * problem.mean.size),
        intercepts=intercepts if m > 1 else intercepts[:, 0],
        groups=groups.apart() if groups.overlapping else groups,
        entered=list(zip(awake, map(float, events.times), strict=True)),
        status=status,
        message=message,
        stepwise=True,
        strengths=_sparse(
            np.array(awake, dtype=np.intp), np.sqrt(squares) * unit * (problem.ranks[awake] > 0), problem.ranks.size
        ),
        n_outputs=m,
    )
    return path.added_up(groups) if groups.overlapping else path


def _sparse(columns: NDArray[np.intp], values: FloatArray, n_columns: int) -> sp.csr_array:
    """A sparse matrix with these values in the given columns; zeros are not stored."""
    order = np.argsort(columns)
    own = values[:, order]
    filled = own != 0
    indices = np.broadcast_to(np.asarray(columns)[order], own.shape)[filled]
    return sp.csr_array((own[filled], indices, offsets(filled.sum(axis=1))), shape=(len(values), n_columns))
