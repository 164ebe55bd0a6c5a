"""Recorder: what is kept of a path while it runs, and the online stop."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from covey.preprocess import WorkingProblem
from covey.preprocess.kernels import to_user
from covey.preprocess.working import spans
from covey.validation import FloatArray

__all__ = ["Move", "Prospects", "Recorder", "Snapshot", "StopRule"]


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


# A rule may also have a method ``look_ahead(prospects) -> bool``, asked now and then; a true answer ends the path.
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
    """

    now: Snapshot
    settling: list[Move]
    next: list[Move]
    until: float


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
        self._columns = np.empty(0, dtype=np.intp)
        self._factors = np.empty(0)
        self._shapes = np.empty((0, 2), dtype=np.intp)
        self._means = np.empty(0)
        self.times: list[int] = []
        self.records: list[FloatArray] = []
        self.stopped = False

    def enter(self, l: int, t: float) -> None:
        """A group has woken up."""
        self.enter_all([l], t)

    def enter_all(self, groups: Sequence[int], t: float) -> None:
        """Groups have woken up together, in this order."""
        new = [l for l in groups if l not in self._position]
        for l in new:
            self._position[l] = len(self.entered)
            self.entered.append((l, float(t)))
            if self.verbose:
                print(f"[covey] t = {t:g}: group {self.names[l]} woke up, {len(self.entered)} awake", flush=True)
        if not new:
            return
        problem, which = self.problem, np.array(new, dtype=np.intp)
        own = spans(problem.layout.starts, which)
        shapes = np.column_stack([problem.layout.sizes[which], problem.ranks[which]]).astype(np.intp)
        self._columns = np.concatenate([self._columns, problem.layout.members[own]])
        self._factors = np.concatenate([self._factors, problem.factors[spans(problem.factor_starts, which)]])
        self._shapes = np.concatenate([self._shapes, shapes])
        self._means = np.concatenate([self._means, problem.mean[own]])

    def has(self, l: int) -> bool:
        """Whether a group has woken up."""
        return l in self._position

    def record(self, t: int, which: list[int], starts: NDArray[np.intp], w: FloatArray, n_risen: float) -> None:
        """Keep the model of time t; `which`, `starts` and `w` as in `Awake`."""
        if self.stopped or (self.times and t <= self.times[-1]):
            return
        if self._wanted is not None and t not in self._wanted:
            return
        row = self._row(which, starts, w)
        self.times.append(t)
        self.records.append(row)
        if self.stop is not None:
            self.stopped = bool(self.stop(self._snapshot(t, row, n_risen)))

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
        settling: list[dict[int, FloatArray]], following: dict[int, FloatArray], until: float,
    ) -> None:  # fmt: skip
        """Tell the stop rule what lies ahead: changes of working coefficients by group."""
        assert self.stop is not None
        now = self._snapshot(t, self._row(which, starts, w), n_risen)
        moves = [self._move(change) for change in settling]
        ahead = Prospects(now, moves, [self._move({l: change}) for l, change in following.items()], until)
        self.stopped = bool(self.stop.look_ahead(ahead))  # type: ignore[attr-defined]

    def _move(self, change: dict[int, FloatArray]) -> Move:
        problem = self.problem
        columns = np.concatenate([np.empty(0, dtype=np.intp), *(problem.members(l) for l in change)])
        coef = np.concatenate([np.empty(0), *(problem.to_user(l, part) for l, part in change.items())])
        starts = problem.layout.starts
        means = np.concatenate([np.empty(0), *(problem.mean[starts[l] : starts[l + 1]] for l in change)])
        return Move(columns, coef, -float(coef @ means))

    def _snapshot(self, t: int, row: FloatArray, n_risen: float) -> Snapshot:
        coef = np.empty(self._columns.size)
        to_user(self._factors, self._shapes, row, self.problem.y_scale, coef)
        intercept = self.problem.y_mean - float(coef @ self._means)
        return Snapshot(t, self._columns, coef, intercept, len(self.entered), n_risen)

    def coefficients(self) -> tuple[sp.csr_array, FloatArray]:
        """All records on the user's scale: sparse coefficients (n_times, p) and intercepts."""
        n, p = len(self.times), self.problem.mean.size
        lengths = np.array([row.size for row in self.records])
        widths = np.concatenate([[0], np.cumsum(self._shapes[:, 1])]).astype(np.intp)
        heights = np.concatenate([[0], np.cumsum(self._shapes[:, 0])]).astype(np.intp)
        stored = heights[np.searchsorted(widths, lengths)] if n else np.empty(0, dtype=np.intp)
        indptr = np.concatenate([[0], np.cumsum(stored)]).astype(np.intp)
        data = np.empty(indptr[-1])
        intercepts = np.empty(n)
        for i, row in enumerate(self.records):
            coef = data[indptr[i] : indptr[i + 1]]
            n_groups = int(np.searchsorted(heights, coef.size))
            to_user(self._factors, self._shapes[:n_groups], row, self.problem.y_scale, coef)
            intercepts[i] = self.problem.y_mean - coef @ self._means[: coef.size]
        indices = (
            np.concatenate([self._columns[:k] for k in stored]) if n and indptr[-1] else np.empty(0, dtype=np.intp)
        )
        coefs = sp.csr_array((data, indices, indptr), shape=(n, p))
        coefs.sort_indices()
        return coefs, intercepts

    def strengths(self) -> sp.csr_array:
        """Norm of every awake group in working coordinates, in units of the response; shape (n_times, n_groups)."""
        widths = np.concatenate([[0], np.cumsum(self._shapes[:, 1])]).astype(np.intp)
        order = np.array([l for l, _ in self.entered], dtype=np.intp)
        rows = []
        for row in self.records:
            starts = widths[: int(np.searchsorted(widths, row.size))]
            squares = np.add.reduceat(row * row, starts) if starts.size else np.empty(0)
            rows.append(np.sqrt(squares) * self.problem.y_scale)
        counts = [values.size for values in rows]
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)
        indices = np.concatenate([np.empty(0, dtype=np.intp), *(order[:k] for k in counts)])
        data = np.concatenate([np.empty(0), *rows])
        out = sp.csr_array((data, indices, indptr), shape=(len(rows), len(self.names)))
        out.sort_indices()
        return out
