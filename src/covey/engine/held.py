"""The exact path of a problem that is held in memory: many iterations in one compiled call.

The steps, and so the path, are those of `ExactPath`, which is the reference. What is left to Python is done once for a
batch of iterations: models are handed to the recorder together, and a batch that runs past the stop is cut back to it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from covey.engine.beginning import Beginning
from covey.engine.descent import DIVERGED, SETTLED, descend, gram_product
from covey.engine.exact import ExactPath
from covey.engine.recorder import Recorder
from covey.engine.settings import Settings
from covey.engine.working_rows import WorkingRows
from covey.preprocess import WorkingProblem, spans
from covey.validation import FloatArray

__all__ = ["HeldPath"]

# Iterations in a batch: at least so many, and this share of the time so far.
BATCH, BATCH_SHARE = 24, 0.25

# Records in a batch, and the numbers that they may take (8 MiB).
ROOM, MOST_NUMBERS = 40, 2**20


class HeldPath(ExactPath):
    """One run of the exact engine on working rows: `run` does it, and the attributes then say where it ended."""

    def __init__(
        self, problem: WorkingProblem, settings: Settings, recorder: Recorder, begin: Beginning, held: WorkingRows
    ) -> None:
        # the Gram matrix of the working columns, or where there are more of them than rows its root
        self.root, self.wide = (held.Z, True) if held.wide else (held.gram, False)
        super().__init__(problem, settings, recorder, begin)
        L, r = problem.ranks.size, problem.n_columns
        self.began = begin.time
        self.n_gram_columns = 0 if held.wide else r
        room = int(np.clip(MOST_NUMBERS // (2 * r + L), 1, ROOM))
        self.times, self.n_woken = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.intp)
        self.n_risen = np.empty(room)
        # u, v and w one after another; of each record, and of the last good iteration
        self.now, self.states = np.concatenate([self.u, self.v, self.w]), np.empty((room + 1, L + 2 * r))
        self._read(self.now)
        self.asleep = (problem.ranks > 0) & ~self.entered
        self.n_awake = len(self.awake.which)
        self.order, self.entered_at = np.empty(L, dtype=np.intp), np.empty(L, dtype=np.int64)
        self.order[: self.n_awake] = self.awake.which
        self.vector = np.empty(r)
        self.vector[: self.awake.vector.size] = self.awake.vector
        # the columns of the awake groups, in their order, as far as they have been needed
        self.block, self.filled = np.empty((self.root.shape[0], r)), 0
        self._scratch = np.empty(r), np.empty(r), np.empty(r, dtype=np.intp), np.arange(r)

    def _read(self, state: FloatArray) -> None:
        L, r = self.problem.ranks.size, self.problem.n_columns
        self.u, self.v, self.w = np.split(state, [L, L + r])

    def run(self, max_iter: int, stops: NDArray[np.int64]) -> str:
        """Go on until `max_iter`, the stop rule, or the end of all growth; the status."""
        if not self.problem.correlation.any():
            self._record()
            return "exhausted"
        status = self._run(max_iter, stops)
        self._join()
        return status

    def _run(self, max_iter: int, stops: NDArray[np.int64]) -> str:
        horizon = self.t
        while self.t < max_iter:
            before = self.n_awake
            count, why, horizon, change = self._advance(max_iter, horizon, stops)
            kept = self._publish(count, before)
            if self.switch.tau > 0.0:
                self._arm(kept)
                # the last record comes after the switch
                if why == SETTLED and kept == count:
                    self._settle(change)
            if self.recorder.stopped:
                return "stopped"
            if why == DIVERGED:
                return "diverged"
        return "completed"

    def _advance(self, max_iter: int, horizon: int, stops: NDArray[np.int64]) -> tuple[int, int, int, float]:
        """A batch: how many records, why it ended, when the next record is due, and the last change."""
        problem, settings, awake = self.problem, self.settings, self.awake
        last = min(max_iter, self.t + max(BATCH, int(BATCH_SHARE * self.t)))
        (
            count, why, self.t, horizon, change, self.n_awake, awake.direction_step, awake.curvature, self.filled
        ) = descend(
            self.root, self.wide, problem.correlation, problem.starts, settings.speeds, settings.gamma,
            self.switch.eta, settings.depth, settings.enter, self.switch.tau, awake.largest_stable, self.now,
            self.asleep, self.order, self.entered_at, self.n_awake, awake.direction_step, awake.curvature,
            self.vector, self.block, self.filled, self.t, last, max_iter, horizon, stops,
            self.times, self.n_woken, self.n_risen, self.states, *self._scratch,
        )  # fmt: skip
        return count, why, horizon, change

    def _publish(self, count: int, before: int) -> int:
        """Hand a batch to the recorder, and cut it back to where the rule stopped; how many of its records are left.

        `before` is how many groups were awake.
        """
        new = slice(before, self.n_awake)
        events = list(zip(self.order[new].tolist(), self.entered_at[new].tolist(), strict=True))
        models = self.states[:count, -self.problem.n_columns :]
        kept = self.recorder.record_batch(
            self.times[:count], models, self.n_risen[:count], events, self.n_woken[:count] - before
        )
        if self.recorder.stopped:
            i = kept - 1
            self.t, self.n_awake = int(self.times[i]), int(self.n_woken[i])
            self._read(self.states[i])
        return kept

    def _arm(self, count: int) -> None:
        """Arm the rule that switches, which may look at all records but the one at which the path begins."""
        first = self.problem.group_norms(self.problem.correlation)
        for i in np.flatnonzero(self.times[:count] > self.began).tolist():
            own = self.order[: self.n_woken[i]]
            self.switch.arm(self.states[i, own], first[own])

    def _settle(self, change: float) -> None:
        """Switch if it is time to."""
        self._join()
        if self.switch.due(self.awake, change):
            self.switch.fire(self.awake)

    def _join(self) -> None:
        """Bring the awake groups up to date."""
        awake = self.awake
        new = self.order[len(awake.which) : self.n_awake]
        if new.size:
            v = self.v[spans(self.problem.starts, new)]
            awake.add(new, self.u[new], v, self.settings.depth, self.settings.speeds[new])
        awake.vector = self.vector[: awake.columns.size]
        self._gather()

    def _fetch(self) -> None:
        """Everything is at hand."""

    def _gram_product(self, w: FloatArray) -> FloatArray:
        out = np.empty_like(w)
        gram_product(self.root, self.root.shape[0], w.size, self.wide, w, out)
        return out
