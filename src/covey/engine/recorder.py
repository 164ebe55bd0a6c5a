"""Recorder: what is kept of a path while it runs, and the online stop."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from covey.engine.draft import Draft
from covey.engine.snapshots import Move, Prospects, Snapshot, Snapshots, StopRule
from covey.engine.staircase import models_to_user
from covey.preprocess import WorkingProblem, offsets, spans
from covey.validation import FloatArray

__all__ = ["Recorder"]


class Recorder:
    """Keeps coefficients at recorded times and asks the stop rule.

    Groups enter in an order; a record holds the working coefficients of those entered so far, so the records of one
    path form a staircase that is mapped to the user's scale group by group at the end.
    """

    def __init__(
        self, problem: WorkingProblem, stop: StopRule | None, wanted: NDArray[np.int64] | None,
        names: Sequence[Hashable], verbose: int,
    ) -> None:  # fmt: skip
        self.problem = problem
        self.stop = stop
        self.names, self.verbose = names, verbose
        self._wanted = None if wanted is None else frozenset(wanted.tolist())
        self.entered: list[tuple[int, float]] = []
        self._position: dict[int, int] = {}
        self._n_told = 0
        self._kept = _Layout(np.empty(0, dtype=np.intp), np.empty(0), np.empty((0, 2), dtype=np.intp), np.empty(0))
        self.times: list[int] = []
        self.records: list[FloatArray] = []
        self.stopped = False

    def enter(self, events: Iterable[tuple[int, float]]) -> None:
        """Groups have woken up, each at a time, in this order."""
        new = [(l, t) for l, t in events if l not in self._position]
        self._kept = self._kept.add(self.problem, [l for l, _ in new])
        self._note_all(new)

    def _note(self, l: int, t: float) -> None:
        self._position[l] = len(self.entered)
        self.entered.append((l, float(t)))
        if self.verbose:
            print(f"[covey] t = {t:g}: group {self.names[l]} woke up, {len(self.entered)} awake", flush=True)

    def has(self, l: int) -> bool:
        """Whether a group has woken up."""
        return l in self._position

    def record(self, t: int, which: list[int], starts: NDArray[np.intp], w: FloatArray, n_risen: float) -> None:
        """Keep the model of time t; `which`, `starts` and `w` as in `AwakeGroups`."""
        if self.stopped or (self.times and t <= self.times[-1]):
            return
        if self._wanted is not None and t not in self._wanted:
            return
        row = self._row(which, starts, w)
        self.times.append(t)
        self.records.append(row)
        if self.stop is not None:
            self.stopped = bool(self.stop(self._snapshot(t, row, n_risen)))

    def record_all(
        self, draft: Draft, events: list[tuple[int, int]], which: list[int], starts: NDArray[np.intp]
    ) -> None:
        """Keep the models of a draft up to the first one at which the stop rule says so, and what happened on the way.

        `events` are the draft's wake-ups, `which` and `starts` the awake groups as in `AwakeGroups`.
        """
        new = [(l, t) for l, t in events if l not in self._position]
        use = self._to_keep(draft.times)
        times = draft.times[use]
        # of the new groups, how many had woken up by each of these records
        known = np.cumsum([0, *(l not in self._position for l, _ in events)])[draft.n_entered[use] - self._n_told]
        self._n_told += len(events)
        layout = self._kept.add(self.problem, [l for l, _ in new])
        rows = draft.models[2 * use][:, self._gather_order(new, which, starts)]
        counts = len(self.entered) + known
        widths = layout.row_starts[counts]
        stop_at, first = counts.size, len(self.entered)
        if self.stop is not None and counts.size:
            snapshots = self._snapshots(times, rows, counts, draft.n_risen[use], layout)
            among = getattr(self.stop, "stop_among", None)
            if among is not None:
                stop_at = among(snapshots)
            else:
                told = 0
                for stop_at in range(counts.size):
                    self._note_all(new[told : known[stop_at]])
                    told = int(known[stop_at])
                    if self.stop(snapshots[stop_at]):
                        break
                else:
                    stop_at = counts.size
        self.stopped = stop_at < counts.size
        count = int(known[stop_at]) if self.stopped else len(new)
        self._note_all(new[len(self.entered) - first : count])
        self._kept = layout.first(first + count)
        last = stop_at + 1
        self.times += times[:last].tolist()
        self.records += [row[:width] for row, width in zip(rows[:last], widths[:last].tolist(), strict=True)]

    def record_batch(
        self, times: NDArray[np.int64], models: FloatArray, n_risen: FloatArray, events: Sequence[tuple[int, float]],
        n_events: NDArray[np.intp],
    ) -> int:  # fmt: skip
        """Keep models of all working columns, one a row, up to the first at which the stop rule says so.

        `events` are the wake-ups on the way, and `n_events` says how many of them came before each model. Returns how
        many models there are up to the stop.
        """
        use, first = self._to_keep(times), len(self.entered)
        layout = self._kept.add(self.problem, [l for l, _ in events])
        order = np.array([l for l, _ in (*self.entered, *events)], dtype=np.intp)
        rows = models[use].take(spans(self.problem.starts, order), axis=1)
        counts = first + n_events[use]
        stop_at = use.size
        if self.stop is not None and use.size:
            snapshots = self._snapshots(times[use], rows, counts, n_risen[use], layout)
            among = getattr(self.stop, "stop_among", None)
            stop_at = self._ask(snapshots, events) if among is None else among(snapshots)
        self.stopped = stop_at < use.size
        kept = int(use[stop_at]) + 1 if self.stopped else times.size
        count = int(n_events[kept - 1]) if self.stopped else len(events)
        self._note_all(events[len(self.entered) - first : count])
        self._kept = layout.first(first + count)
        self.times += times[use[: stop_at + 1]].tolist()
        widths = layout.row_starts[counts[: stop_at + 1]].tolist()
        self.records += [row[:width] for row, width in zip(rows, widths, strict=False)]
        return kept

    def _ask(self, snapshots: Snapshots, events: Sequence[tuple[int, float]]) -> int:
        """Ask a rule that looks at one model after another, telling of wake-ups as they come."""
        assert self.stop is not None
        first = len(self.entered)
        for i in range(len(snapshots)):
            self._note_all(events[len(self.entered) - first : int(snapshots.n_woken[i]) - first])
            if self.stop(snapshots[i]):
                return i
        return len(snapshots)

    def _note_all(self, events: Sequence[tuple[int, float]]) -> None:
        for l, t in events:
            self._note(l, t)

    def _to_keep(self, times: NDArray[np.int64]) -> NDArray[np.intp]:
        """Positions of the records that are wanted, each time once."""
        last = self.times[-1] if self.times else -1
        use = times > np.append(last, times[:-1]) if times.size else np.empty(0, dtype=bool)
        found = np.flatnonzero(use)
        wanted = self._wanted
        return found if wanted is None else found[[t in wanted for t in times[found].tolist()]]

    def _gather_order(self, new: list[tuple[int, int]], which: list[int], starts: NDArray[np.intp]) -> NDArray[np.intp]:
        """Where the coefficients of all groups that have entered, the new ones last, lie among the awake ones."""
        place = dict(zip(which, range(len(which)), strict=True))
        order = [place[l] for l in (*(l for l, _ in self.entered), *(l for l, _ in new)) if l in place]
        return spans(starts, np.array(order, dtype=np.intp))

    def _snapshots(
        self, times: NDArray[np.int64], rows: FloatArray, counts: NDArray[np.intp], n_risen: FloatArray,
        layout: _Layout,
    ) -> Snapshots:  # fmt: skip
        """Models on the user's scale; the i-th has the first ``counts[i]`` groups of the layout."""
        n, k = times.size, layout.columns.size
        coefs, intercepts = np.zeros((n, k)), np.empty(n)
        rows = np.ascontiguousarray(rows)
        models_to_user(
            layout.factors, layout.shapes, layout.means, counts, rows.reshape(-1), rows.shape[1] * np.arange(n),
            self.problem.y_scale, self.problem.y_mean, coefs.reshape(-1), k * np.arange(n), intercepts,
        )  # fmt: skip
        return Snapshots(times, layout.columns, layout.column_starts[counts], coefs, intercepts, counts, n_risen)

    def _row(self, which: list[int], starts: NDArray[np.intp], w: FloatArray) -> FloatArray:
        """Working coefficients of the groups that have entered, in the order in which they did."""
        pieces: list[FloatArray] = [np.empty(0)] * len(self.entered)
        for a, l in enumerate(which):
            position = self._position.get(l)
            if position is not None:
                pieces[position] = w[starts[a] : starts[a + 1]]
        return np.concatenate(pieces) if pieces else np.empty(0)

    @property
    def looks_ahead(self) -> bool:
        """Whether the stop rule wants to know what lies ahead."""
        return hasattr(self.stop, "look_ahead")

    def look_ahead(
        self, t: int, which: list[int], starts: NDArray[np.intp], w: FloatArray, n_risen: float,
        settling: tuple[NDArray[np.intp], FloatArray] | None, following: dict[int, FloatArray], until: float,
        stands_out: bool,
    ) -> None:  # fmt: skip
        """Tell the stop rule what lies ahead.

        `settling` are some groups and changes of their working coefficients, one a row; `following` those of others,
        each by itself.
        """
        assert self.stop is not None
        now = self._snapshot(t, self._row(which, starts, w), n_risen)
        moves = [] if settling is None else self._moves(*settling)
        ahead = Prospects(now, moves, self._single_moves(following), until, stands_out)
        self.stopped = bool(self.stop.look_ahead(ahead))  # type: ignore[attr-defined]

    def _moves(self, groups: NDArray[np.intp], changes: FloatArray) -> list[Move]:
        """Moves of some groups together, one for each row."""
        problem = self.problem
        own = spans(problem.layout.starts, groups)
        columns, mean = problem.layout.members[own], problem.mean[own]
        coefs = problem.models_to_user(groups, changes)[0]
        return [Move(columns, coef, -float(coef @ mean)) for coef in coefs]

    def _single_moves(self, change: dict[int, FloatArray]) -> list[Move]:
        """A move of each group by itself."""
        if not change:
            return []
        problem, groups = self.problem, np.fromiter(change, np.intp, len(change))
        own = spans(problem.layout.starts, groups)
        columns = problem.layout.members[own]
        coef = problem.models_to_user(groups, np.concatenate(list(change.values()))[None, :])[0][0]
        edges = offsets(problem.layout.sizes[groups])
        levels = -np.add.reduceat(coef * problem.mean[own], edges[:-1])
        ends = edges.tolist()
        return [
            Move(columns[i:j], coef[i:j], level)
            for i, j, level in zip(ends[:-1], ends[1:], levels.tolist(), strict=True)
        ]

    def _snapshot(self, t: int, row: FloatArray, n_risen: float) -> Snapshot:
        counts = np.array([len(self.entered)], dtype=np.intp)
        return self._snapshots(np.array([t]), row[None, :], counts, np.array([n_risen]), self._kept)[0]

    @property
    def _counts(self) -> NDArray[np.intp]:
        """How many groups each record has."""
        return np.searchsorted(self._kept.row_starts, [row.size for row in self.records]).astype(np.intp)

    def _flat(self) -> tuple[FloatArray, NDArray[np.intp]]:
        """All records one after another, and where each begins."""
        return np.concatenate([np.empty(0), *self.records]), offsets(
            np.array([row.size for row in self.records], dtype=np.intp)
        )

    def coefficients(self) -> tuple[sp.csr_array, FloatArray]:
        """All records on the user's scale: sparse coefficients (n_times, p) and intercepts."""
        n, p, kept, problem = len(self.times), self.problem.mean.size, self._kept, self.problem
        counts = self._counts
        flat, starts = self._flat()
        stored = kept.column_starts[counts]
        indptr = offsets(stored)
        data, intercepts = np.empty(indptr[-1]), np.empty(n)
        models_to_user(
            kept.factors, kept.shapes, kept.means, counts, flat, starts, problem.y_scale, problem.y_mean,
            data, indptr, intercepts,
        )  # fmt: skip
        indices = np.concatenate([np.empty(0, dtype=np.intp), *(kept.columns[:k] for k in stored.tolist())])
        coefs = sp.csr_array((data, indices, indptr), shape=(n, p))
        coefs.sort_indices()
        return coefs, intercepts

    def strengths(self) -> sp.csr_array:
        """Norm of every awake group in working coordinates, in units of the response; shape (n_times, n_groups)."""
        counts, ranks = self._counts, self._kept.shapes[:, 1]
        flat, starts = self._flat()
        indptr = offsets(counts)
        group = np.arange(indptr[-1]) - np.repeat(indptr[:-1], counts)
        filled = ranks[group] > 0
        first = (np.repeat(starts[:-1], counts) + self._kept.row_starts[group])[filled]
        data = np.zeros(indptr[-1])
        if first.size:
            data[filled] = np.sqrt(np.add.reduceat(flat * flat, first)) * self.problem.y_scale
        order = np.array([l for l, _ in self.entered], dtype=np.intp)
        indices = np.concatenate([np.empty(0, dtype=np.intp), *(order[:k] for k in counts.tolist())])
        out = sp.csr_array((data, indices, indptr), shape=(counts.size, len(self.names)))
        out.sort_indices()
        return out


@dataclass(frozen=True)
class _Layout:
    """The groups of the records, one after another in the order in which they entered.

    Attributes
    ----------
    columns : ndarray of int
        Their columns of the design.
    factors : ndarray
        Their factors, flat.
    shapes : ndarray of int, shape (n_groups, 2)
        Their sizes and ranks.
    means : ndarray
        The means of their columns.
    """

    columns: NDArray[np.intp]
    factors: FloatArray
    shapes: NDArray[np.intp]
    means: FloatArray

    @cached_property
    def column_starts(self) -> NDArray[np.intp]:
        """Where each group's columns begin, and where the last one's end."""
        return offsets(self.shapes[:, 0])

    @cached_property
    def row_starts(self) -> NDArray[np.intp]:
        """Where each group's working coefficients begin, and where the last one's end."""
        return offsets(self.shapes[:, 1])

    def add(self, problem: WorkingProblem, groups: list[int]) -> _Layout:
        """These groups and some more."""
        if not groups:
            return self
        which = np.array(groups, dtype=np.intp)
        own = spans(problem.layout.starts, which)
        shapes = np.column_stack([problem.layout.sizes[which], problem.ranks[which]]).astype(np.intp)
        return _Layout(
            np.concatenate([self.columns, problem.layout.members[own]]),
            np.concatenate([self.factors, problem.factors[spans(problem.factor_starts, which)]]),
            np.concatenate([self.shapes, shapes]),
            np.concatenate([self.means, problem.mean[own]]),
        )

    def first(self, count: int) -> _Layout:
        """The first few of these groups."""
        if count == self.shapes.shape[0]:
            return self
        k, m = self.column_starts[count], int((self.shapes[:count, 0] * self.shapes[:count, 1]).sum())
        return _Layout(self.columns[:k], self.factors[:m], self.shapes[:count], self.means[:k])
