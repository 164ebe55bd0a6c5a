"""The exact path: every group is stepped at every iteration.

The reference for the screened engine, and the one to use when every group matters from the start (a large
``init_scale``). Correlations come from Gram rows here too. A group gets its rows once its norm passes `NEGLIGIBLE`
of the largest correlation: what it could change in any correlation before that is below the tenth digit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from covey.engine.awake import LARGEST_STABLE, STABLE_FROM_ABOVE, Awake
from covey.engine.beginning import Beginning, ending
from covey.engine.kernels import EXPLODED, risen, step_everyone
from covey.engine.recorder import Recorder
from covey.engine.settings import ENTER, Settings
from covey.engine.switching import Switch
from covey.path import PathState
from covey.preprocess import WorkingProblem

__all__ = ["ExactPath"]

NEGLIGIBLE = 1e-10

# A record at least this often, relative to the time so far: the path changes on a logarithmic scale of time.
RECORD_EVERY = 0.02


class ExactPath:
    """One run of the exact engine: `run` does it, and the attributes then say where it ended."""

    def __init__(self, problem: WorkingProblem, settings: Settings, recorder: Recorder, begin: Beginning) -> None:
        self.problem, self.settings, self.recorder = problem, settings, recorder
        L, N = problem.ranks.size, settings.depth
        self.t = begin.time
        self.u, self.v = np.exp(begin.log_u), begin.v
        self.w = np.repeat(self.u**N, problem.ranks) * self.v
        self.join_at = NEGLIGIBLE / ENTER * settings.enter
        self.joined = (self.u**N >= self.join_at) & (problem.ranks > 0)
        self.entered_at = np.full(L, -1, dtype=np.int64)
        self.rows = np.empty((0, problem.n_columns), dtype=problem.design.dtype)
        self.live = np.empty(0, dtype=np.intp)
        large = settings.start**N >= settings.enter
        self.awake = Awake(problem, STABLE_FROM_ABOVE if large else LARGEST_STABLE)
        self.switch = Switch(settings, begin.eta, begin.armed)
        self.n_gram_columns = 0
        self._fetch(np.flatnonzero(self.joined))
        awake = (self.u**N >= settings.enter) & (problem.ranks > 0)
        awake[begin.awake] = True
        self._enter(np.flatnonzero(awake))

    def run(self, max_iter: int, stops: NDArray[np.int64]) -> str:
        """Go on until `max_iter`, the stop rule, or the end of all growth; the status."""
        settings, recorder = self.settings, self.recorder
        top = np.zeros(1)
        self._record()
        if not self.problem.correlation.any():
            return "exhausted"
        while self.t < max_iter and not recorder.stopped:
            before = self.joined.copy()
            good = self.t, self.u.copy(), self.v.copy(), self.w.copy()
            self.t = step_everyone(
                self.rows, self.problem.correlation, self.problem.starts, self.u, self.v, self.w,
                settings.speeds, settings.gamma, self.awake.direction_step, self.switch.eta, settings.depth,
                self.awake.curvature, self.live, self.t, self._next_stop(max_iter, stops), self.join_at,
                settings.enter, self.entered_at, self.joined, self.switch.tau, top,
            )  # fmt: skip
            if not top[0] < EXPLODED:
                self.t, self.u, self.v, self.w = good
                return "diverged"
            self._fetch(np.flatnonzero(self.joined & ~before))
            self._enter(np.flatnonzero(self.entered_at == self.t))
            self._gather()
            if self.switch.due(self.awake, float(top[0])):
                self.switch.fire(self.awake)
            self._record()
        return "stopped" if recorder.stopped else "completed"

    def _next_stop(self, max_iter: int, stops: NDArray[np.int64]) -> int:
        later = stops[stops > self.t]
        return min(max_iter, self.t + max(1, int(RECORD_EVERY * self.t)), int(later[0]) if later.size else max_iter)

    def _fetch(self, new: NDArray[np.intp]) -> None:
        if new.size == 0:
            return
        starts = self.problem.starts
        rows = self.problem.gram_rows(new.tolist())
        self.rows = np.concatenate([self.rows, rows])
        self.live = np.concatenate([self.live, *(np.arange(starts[l], starts[l + 1]) for l in new)]).astype(np.intp)
        self.n_gram_columns += rows.shape[0]

    def _enter(self, new: NDArray[np.intp]) -> None:
        """Groups that woke in the last iteration; the awake block decides on safe steps."""
        if new.size == 0:
            return
        N, starts = self.settings.depth, self.problem.starts
        row_of = np.empty(self.problem.n_columns, dtype=np.intp)
        row_of[self.live] = np.arange(self.live.size)
        for l in new[np.argsort(-self.u[new], kind="stable")].tolist():
            i, j = starts[l], starts[l + 1]
            self.entered_at[l] = self.t
            self.recorder.enter(l, self.t)
            rows = self.rows[row_of[i:j]]
            self.awake.join(l, float(self.u[l]), self.v[i:j], N, float(self.settings.speeds[l]), rows)
        self.awake.make_safe(np.ones(len(self.awake.which), dtype=bool))

    def _gather(self) -> None:
        """Bring the awake groups' state up to date."""
        awake = self.awake
        if awake.which:
            awake.u, awake.v, awake.w = self.u[awake.which], self.v[awake.columns], self.w[awake.columns]

    def _record(self) -> None:
        awake = self.awake
        count = risen(awake.K, awake.c, awake.starts, awake.w)
        self.recorder.record(self.t, awake.which, awake.starts, awake.w, count)

    def state(self) -> PathState:
        """Where the path stands."""
        log_u = np.log(np.maximum(self.u, 1e-300))
        entered = self.recorder.entered
        return ending(self.problem, self.t, self.awake, self.awake.which, log_u, self.switch, self.v, entered)
