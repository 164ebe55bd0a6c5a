"""The exact path: every group is stepped at every iteration.

The reference for the screened engine, and the engine to use if every group matters from the start (a large
``init_scale``). Correlations are computed from Gram rows here too. The rows of a group are read once its norm exceeds
`NEGLIGIBLE` times the largest correlation; before that it changes no correlation in its first ten digits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from covey.layout import spans
from covey.network.awake import LARGEST_STABLE, STABLE_FROM_ABOVE, AwakeGroups
from covey.network.beginning import Beginning, ending
from covey.network.growth import phi_of
from covey.network.kernels import EXPLODED, risen, step_groups, substeps_of
from covey.network.printed import printed_step
from covey.network.recorder import Recorder
from covey.network.settings import ENTER, Settings
from covey.network.switching import Switch
from covey.path import PathState
from covey.preprocess import WorkingProblem
from covey.validation import FloatArray

__all__ = ["ExactPath", "all_awake"]

# A group below this share of the largest correlation changes no correlation in its first ten digits.
NEGLIGIBLE = 1e-10

# In working coordinates the response has unit size: a larger magnitude is diverging.
LARGEST_MAGNITUDE = 1e6

# The longest interval between records, relative to the time so far: the path changes on a logarithmic time scale.
RECORD_EVERY = 0.02

# All groups count as awake from the start if the first one sleeps no longer than this, in units of the time in which
# its magnitude roughly doubles near the top. For N = 2 it then starts at 1/150 of the waking norm or more.
SHORT_SLEEP = 2.5


class ExactPath:
    """One run of the exact engine: `run` executes it, and the attributes then hold the final state."""

    def __init__(self, problem: WorkingProblem, settings: Settings, recorder: Recorder, begin: Beginning) -> None:
        self.problem, self.settings, self.recorder = problem, settings, recorder
        self.t = begin.time
        self.u, self.v = np.exp(begin.log_u), begin.v
        self.w = np.repeat(self.u**settings.depth, problem.ranks) * self.v
        # correlations of the current w, once known
        self.g: FloatArray | None = None
        self.entered = np.zeros(problem.ranks.size, dtype=bool)
        large = settings.start**settings.depth >= settings.enter
        self.awake = AwakeGroups(problem, STABLE_FROM_ABOVE if large else LARGEST_STABLE)
        self.switch = Switch(settings, begin.eta, begin.armed)
        self.join_at = NEGLIGIBLE / ENTER * settings.enter
        self.joined = np.zeros(problem.ranks.size, dtype=bool)
        self.rows = np.empty((0, problem.n_columns), dtype=problem.design.dtype)
        self.live = np.empty(0, dtype=np.intp)
        self.n_gram_columns = 0
        self._fetch()
        awake = self._above(settings.enter)
        awake[begin.awake] = True
        self._enter(np.flatnonzero(awake))

    def run(self, max_iter: int, stops: NDArray[np.int64]) -> str:
        """Run until `max_iter`, the stop rule, or the end of all growth; returns the status."""
        settings, recorder = self.settings, self.recorder
        self._record()
        if not self.problem.correlation.any():
            return "exhausted"
        while self.t < max_iter and not recorder.stopped:
            horizon = self._next_stop(max_iter, stops)
            new, change = np.empty(0, dtype=np.intp), np.inf
            while self.t < horizon and new.size == 0 and not change < self.switch.tau:
                good = self.t, self.u.copy(), self.v.copy(), self.w.copy()
                change = self._step()
                if not change < EXPLODED:
                    self.t, self.u, self.v, self.w = good
                    self.g = None
                    return "diverged"
                self._fetch()
                new = np.flatnonzero(self._above(settings.enter) & ~self.entered)
            self._enter(new)
            self._gather()
            if self.switch.due(self.awake, change):
                self.switch.fire(self.awake)
            self._record()
        return "stopped" if recorder.stopped else "completed"

    def _step(self) -> float:
        """One iteration of every group; returns the largest relative change of a magnitude."""
        settings, awake = self.settings, self.awake
        if settings.printed:
            change = printed_step(self.problem, settings, self.u, self.v, self.w, self._at, self.switch.eta)
            self.g = None
            self.t += 1
            return change if self.u.max() < LARGEST_MAGNITUDE else np.inf
        substeps = substeps_of(self.u, self.u.size, settings.speeds, settings.gamma, awake.curvature, settings.depth)
        change = 0.0
        for _ in range(substeps):
            x, _ = step_groups(
                self.problem.starts, self.u.size, self.u, self.v, self.w, self._correlations(), settings.speeds,
                settings.gamma / substeps, awake.direction_step, self.switch.eta, settings.depth, settings.enter,
            )  # fmt: skip
            self.g = None
            change = max(change, x * substeps)
            if not self.u.max() < LARGEST_MAGNITUDE:
                return np.inf
        self.t += 1
        return change

    def _correlations(self) -> FloatArray:
        if self.g is None:
            self.g = self._at(self.w)
        return self.g

    def _at(self, w: FloatArray) -> FloatArray:
        """The correlations of a model."""
        return self.problem.correlation - self._gram_product(w)

    def _gram_product(self, w: FloatArray) -> FloatArray:
        """``Z' diag(q) Z w``."""
        return (w[self.live].astype(self.rows.dtype, copy=False) @ self.rows).astype(np.float64, copy=False)

    def _above(self, norm: float) -> NDArray[np.bool_]:
        return (self.u**self.settings.depth >= norm) & (self.problem.ranks > 0)

    def _next_stop(self, max_iter: int, stops: NDArray[np.int64]) -> int:
        later = stops[stops > self.t]
        return min(max_iter, self.t + max(1, int(RECORD_EVERY * self.t)), int(later[0]) if later.size else max_iter)

    def _fetch(self) -> None:
        """Read the Gram rows of groups that are no longer negligible."""
        new = np.flatnonzero(self._above(self.join_at) & ~self.joined)
        if new.size == 0:
            return
        rows = self.problem.gram_rows(new.tolist())
        self.joined[new] = True
        self.rows = np.concatenate([self.rows, rows])
        self.live = np.concatenate([self.live, spans(self.problem.starts, new)])
        self.n_gram_columns += rows.shape[0]

    def _enter(self, new: NDArray[np.intp]) -> None:
        """Add groups that woke up in the last iteration, and find safe steps for all awake groups."""
        if new.size == 0:
            return
        new = new[np.argsort(-self.u[new], kind="stable")]
        self.entered[new] = True
        self.recorder.enter((l, self.t) for l in new.tolist())
        v = self.v[spans(self.problem.starts, new)]
        self.awake.add(new, self.u[new], v, self.settings.depth, self.settings.speeds[new])
        self.awake.find_safe_steps(self._awake_product)

    def _awake_product(self, x: FloatArray) -> FloatArray:
        """The product with the Gram block of the awake groups."""
        w = np.zeros(self.problem.n_columns)
        w[self.awake.columns] = x
        return self._gram_product(w)[self.awake.columns]

    def _gather(self) -> None:
        """Update the state of the awake groups."""
        awake = self.awake
        if awake.which:
            awake.u, awake.v, awake.w = self.u[awake.which], self.v[awake.columns], self.w[awake.columns]

    def _record(self) -> None:
        awake = self.awake
        count = risen(self._correlations(), awake.columns, awake.starts, len(awake.which), awake.w)
        self.recorder.record(self.t, awake.which, awake.starts, awake.w, count)

    def state(self) -> PathState:
        """The current state of the path."""
        log_u = np.log(np.maximum(self.u, 1e-300))
        entered = self.recorder.entered
        return ending(self.problem, self.t, self.awake, self.awake.which, log_u, self.switch, self.v, entered)


def all_awake(settings: Settings) -> bool:
    """Whether all groups are awake from the start, or will be within a few iterations."""
    N, top, waking = settings.depth, settings.enter / ENTER, settings.enter ** (1.0 / settings.depth)
    sleep = phi_of(waking, N) - phi_of(settings.start, N)
    return bool(sleep * top ** ((N - 2.0) / N) <= SHORT_SLEEP)
