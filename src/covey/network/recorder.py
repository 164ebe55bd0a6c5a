"""Recorder: stores the models of a path while it runs, and applies the stop rule."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from covey.layout import offsets, spans
from covey.network.draft import Draft
from covey.network.snapshots import Snapshot, Snapshots, StopRule
from covey.network.staircase import models_to_user
from covey.preprocess import WorkingProblem
from covey.validation import FloatArray

__all__ = ["Recorder"]


class Recorder:
    """Stores coefficients at recorded times and applies the stop rule.

    A record holds the working coefficients of the groups that have entered so far, in order, so that the records of a
    path form a staircase. It is mapped to the user's scale group by group at the end.
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
        """Record groups that have woken up, with their times, in this order."""
        new = [(l, t) for l, t in events if l not in self._position]
        self._kept = self._kept.add(self.problem, [l for l, _ in new])
        self._note_all(new)

    def _note(self, l: int, t: float) -> None:
        self._position[l] = len(self.entered)
        self.entered.append((l, float(t)))
        if self.verbose:
            print(f"[covey] t = {t:g}: group {self.names[l]} woke up, {len(self.entered)} awake", flush=True)

    def record(self, t: int, which: list[int], starts: NDArray[np.intp], w: FloatArray, n_risen: float) -> None:
        """Store the model at time t; `which`, `starts` and `w` as in `AwakeGroups`."""
        if self.stopped or (self.times and t <= self.times[-1]):
            return
        if self._wanted is not None and t not in self._wanted:
            return
        row = self._row(which, starts, w)
        self.times.append(t)
        self.records.append(row)
        if self.stop is not None:
            self.stopped = self.stop.stop_at(self._snapshot(t, row, n_risen))

    def record_all(
        self, draft: Draft, events: list[tuple[int, int]], which: list[int], starts: NDArray[np.intp]
    ) -> None:
        """Store the models of a draft up to the first one at which the stop rule ends the path, and its events.

        `events` are the draft's wake-ups; `which` and `starts` are the awake groups as in `AwakeGroups`.
        """
        new = [(l, t) for l, t in events if l not in self._position]
        use = self._to_keep(draft.times)
        times = draft.times[use]
        # how many of the new groups had woken up by each of these records
        known = np.cumsum([0, *(l not in self._position for l, _ in events)])[draft.n_entered[use] - self._n_told]
        self._n_told += len(events)
        layout = self._kept.add(self.problem, [l for l, _ in new])
        rows = draft.models[2 * use][:, self._gather_order(new, which, starts)]
        counts = len(self.entered) + known
        widths = layout.row_starts[counts]
        stop_at, first = counts.size, len(self.entered)
        if self.stop is not None and counts.size:
            snapshots = self._snapshots(times, rows, counts, draft.n_risen[use], layout)
            stop_at = self.stop.stop_among(snapshots)
        self.stopped = stop_at < counts.size
        count = int(known[stop_at]) if self.stopped else len(new)
        self._note_all(new[:count])
        self._kept = layout.first(first + count)
        last = stop_at + 1
        self.times += times[:last].tolist()
        self.records += [row[:width] for row, width in zip(rows[:last], widths[:last].tolist(), strict=True)]

    def _note_all(self, events: Sequence[tuple[int, float]]) -> None:
        for l, t in events:
            self._note(l, t)

    def _to_keep(self, times: NDArray[np.int64]) -> NDArray[np.intp]:
        """Indices of the records to store, each time once."""
        last = self.times[-1] if self.times else -1
        use = times > np.append(last, times[:-1]) if times.size else np.empty(0, dtype=bool)
        found = np.flatnonzero(use)
        wanted = self._wanted
        return found if wanted is None else found[[t in wanted for t in times[found].tolist()]]

    def _gather_order(self, new: list[tuple[int, int]], which: list[int], starts: NDArray[np.intp]) -> NDArray[np.intp]:
        """Indices, among the awake groups' coefficients, of those of all entered groups, the new ones last."""
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
        """Working coefficients of the groups that have entered, in order of entry."""
        pieces: list[FloatArray] = [np.empty(0)] * len(self.entered)
        for a, l in enumerate(which):
            position = self._position.get(l)
            if position is not None:
                pieces[position] = w[starts[a] : starts[a + 1]]
        return np.concatenate(pieces) if pieces else np.empty(0)

    def _snapshot(self, t: int, row: FloatArray, n_risen: float) -> Snapshot:
        counts = np.array([len(self.entered)], dtype=np.intp)
        return self._snapshots(np.array([t]), row[None, :], counts, np.array([n_risen]), self._kept)[0]

    @property
    def _counts(self) -> NDArray[np.intp]:
        """The number of groups in each record."""
        return np.searchsorted(self._kept.row_starts, [row.size for row in self.records]).astype(np.intp)

    def _flat(self) -> tuple[FloatArray, NDArray[np.intp]]:
        """All records concatenated, and their offsets."""
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
    """The groups of the records, concatenated in order of entry.

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
        """The offset of each group's columns, and their total."""
        return offsets(self.shapes[:, 0])

    @cached_property
    def row_starts(self) -> NDArray[np.intp]:
        """The offset of each group's working coefficients, and their total."""
        return offsets(self.shapes[:, 1])

    def add(self, problem: WorkingProblem, groups: list[int]) -> _Layout:
        """The layout with more groups appended."""
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
