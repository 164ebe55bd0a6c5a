"""The screened path: near groups in Gram space, far groups by an occasional look at X.

Most groups are far from waking up, and are ignored between two checks: the near path runs on a copy of the few columns
that may matter soon, and writes a draft. A check then computes the correlations of all groups at the draft's nodes, in
one product with X, accumulates the far groups' growth, and accepts the draft; or, if a far group should have woken up
in the meantime, adds that group and repeats the piece. The result therefore does not depend on which groups were near,
and the stop rule only sees accepted models.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from covey.layout import spans
from covey.network.awake import unit_groups
from covey.network.beginning import Beginning, ending
from covey.network.draft import Draft
from covey.network.growth import growth_of, join_at, logs_of, phi_of, phis_of
from covey.network.kernels import gains
from covey.network.looks import ColumnLook, GramLook, KeptRows, Look, pulls_of
from covey.network.near import NearPath
from covey.network.recorder import Recorder
from covey.network.settings import Settings
from covey.network.stored_rows import StoredRows
from covey.path import PathState
from covey.preprocess import WorkingProblem
from covey.validation import FloatArray

__all__ = ["NearGroups", "ScreenedPath"]

# Up to this many columns all groups are near; beyond, this many or a share of all columns (`Design.near_share`).
FEW_COLUMNS = 1500

# A check is made after this many groups have joined, so that the stop rule is applied before many more do.
JOINS = 12

# ... and at this share of the time until the first far group would wake up at its current growth.
CAUTION = 0.8

# Far groups that would wake up within this share of the time so far become near.
SOON = 0.5

# A check divides a draft into this many pieces: with two correlations each, the product costs little more than reading
# X.
PIECES = 5

# If the awake groups have moved by less than this, in units of the norm of y, no correlation has changed, and X is not
# read.
AT_REST = 1e-8


@dataclass
class NearGroups:
    """Data that a run has read from X, for the next run on the same problem.

    Attributes
    ----------
    groups, problem
        The near groups, and the problem restricted to them.
    rows : StoredRows or None
        Gram rows of some of them.
    kept : KeptRows or None
        Gram rows against all groups, if columns cannot be held in memory.
    """

    groups: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    problem: WorkingProblem | None = None
    rows: StoredRows | None = None
    kept: KeptRows | None = None


class ScreenedPath:
    """One run of the screened engine: `run` executes it, and the attributes then hold the final state."""

    def __init__(
        self, problem: WorkingProblem, settings: Settings, recorder: Recorder, begin: Beginning, tol: float,
        known: NearGroups,
    ) -> None:  # fmt: skip
        self.problem, self.settings, self.recorder, self.begin, self.tol = problem, settings, recorder, begin, tol
        self.known = known
        N = settings.depth
        self.threshold = phi_of(join_at(settings, tol) ** (1.0 / N), N)
        self.phi = phis_of(begin.log_u, N)
        self.directions = begin.v
        self.rate = N * settings.gamma * settings.speeds
        if known.kept is None and not problem.design.reads_columns:
            known.kept = KeptRows(problem)
        self.kept = known.kept
        self.look = self._look_at([])
        self.far = problem.ranks > 0
        self.g: FloatArray = problem.correlation
        self.pull = self._first_pulls()
        self.near = np.empty(0, dtype=np.intp)

    def run(self, max_iter: int, stops: NDArray[np.int64]) -> str:
        """Run until `max_iter`, the stop rule, or the end of all growth; returns the status."""
        self._begin(stops)
        while True:
            soonest = self._soonest_far()
            if soonest < SOON * self.path.t or (soonest < 2**62 and not self.path.can_grow):
                self._take_in(np.empty(0, dtype=np.intp))
                continue
            horizon = int(min(max_iter, self.path.t + max(1.0, CAUTION * soonest)))
            saved = self.path.save()
            frozen = self.path.switch.frozen
            status = self.path.advance(horizon, JOINS)
            late = self._check(self.path.draft)
            if late.size:
                self.path.load(saved)
                self._take_in(late)
                continue
            if self.path.switch.frozen and not frozen and self.far.any():
                self._freeze()
            self._publish()
            if self.recorder.stopped:
                return "stopped"
            if status in ("exhausted", "diverged"):
                return status
            if self.path.t >= max_iter:
                return "completed"
            if not self.path.can_grow and self._soonest_far() >= 2**62:
                return "exhausted"

    # ------------------------------------------------------------------ near groups

    def _begin(self, stops: NDArray[np.int64]) -> None:
        """Choose the first near groups, those of the previous run if there was one, and start their path."""
        begin, known = self.begin, self.known
        if known.problem is None or not np.isin(begin.awake, known.groups).all():
            self.near = self._next_in_line(begin.awake)
            known.groups, known.problem = self.near, self._restrict(self.near)
            known.rows = StoredRows(known.problem)
        else:
            self.near = known.groups
            self.far[self.near] = False
        position = np.empty(self.problem.ranks.size, dtype=np.intp)
        position[self.near] = np.arange(self.near.size)
        near_begin = Beginning(
            begin.time, begin.log_u[self.near], begin.v[spans(self.problem.starts, self.near)],
            position[begin.awake], begin.eta, begin.armed,
        )  # fmt: skip
        assert known.problem is not None
        assert known.rows is not None
        self.path = NearPath(known.problem, self.settings.restrict(self.near), near_begin, stops, self.tol, known.rows)

    def _restrict(self, which: NDArray[np.intp]) -> WorkingProblem:
        """The problem restricted to some groups: on a copy of their columns, or on kept Gram rows."""
        if self.kept is not None:
            return self.kept.restrict(which)
        return self.problem if not self.far.any() and which.size == self.far.size else self.problem.restrict(which)

    def _next_in_line(self, first: NDArray[np.intp]) -> NDArray[np.intp]:
        """These groups and the far groups expected to wake up first, all marked as near."""
        sizes = self.problem.layout.sizes
        wanted = max(FEW_COLUMNS, int(self.problem.design.near_share * self.problem.mean.size))
        self.far[first] = False
        order = np.argsort(self._steps_to_wake(), kind="stable")
        order = order[self.far[order]]
        filled = np.cumsum(sizes[order]) + sizes[first].sum()
        # including a few more groups costs less than checking a few remaining ones
        count = order.size if filled.size and filled[-1] <= 1.5 * wanted else int(np.searchsorted(filled, wanted)) + 1
        chosen = np.concatenate([first, order[:count]]).astype(np.intp)
        self.far[chosen] = False
        if not self.far.any() and self.near.size == 0:
            self.far[:] = False
            return np.arange(sizes.size)
        return chosen

    def _take_in(self, late: NDArray[np.intp]) -> None:
        """Make more groups near."""
        more = self._next_in_line(late)
        self.near = np.concatenate([self.near, more])
        self.path.widen(
            self._restrict(more), self.settings.restrict(self.near),
            self.phi[more], self.directions[spans(self.problem.starts, more)],
        )  # fmt: skip
        self.known.groups, self.known.problem, self.known.rows = self.near, self.path.problem, self.path.stored

    def _steps_to_wake(self) -> FloatArray:
        each = growth_of(self.rate * self.pull, self.settings.depth, 1)
        steps = np.full(each.size, np.inf)
        able = self.far & (each > 0)
        with np.errstate(over="ignore"):  # infinity means never
            steps[able] = (self.threshold - self.phi[able]) / each[able]
        return steps

    def _soonest_far(self) -> float:
        """Iterations until the first far group would wake up at the current correlations."""
        return float(self._steps_to_wake().min(initial=2.0**62))

    # ------------------------------------------------------------------ checks

    def _check(self, draft: Draft) -> NDArray[np.intp]:
        """Update the growth of the far groups; returns those that should have woken up in the draft, if any."""
        none = np.empty(0, dtype=np.intp)
        if not self.far.any():
            return none
        path = self.path
        look = self.look.join(path.problem, draft.joined.tolist())
        if not draft.steps.any():
            # groups may join before the first iteration, and the next draft has their columns
            self.look = look
            return none
        pieces = draft.pieces(PIECES, path.n_columns)
        if pieces.farthest <= AT_REST:
            P, g = np.broadcast_to(self.pull, (2 * pieces.steps.size, self.pull.size)), self.g
        else:
            W = np.stack([pieces.right, pieces.mean], axis=1).reshape(2 * pieces.steps.size, -1)
            P, g = look.pulls(W, self.directions, self._was_frozen, row=-2)
        phi, pull, substeps = self.phi.copy(), self.pull, path.substeps
        gain, doubt = np.empty(phi.size), np.empty(phi.size)
        for i, (steps, share) in enumerate(zip(pieces.steps.tolist(), pieces.shares.tolist(), strict=True)):
            gains(
                pull, P[2 * i], P[2 * i + 1], share, steps, self.rate, self.settings.depth,
                substeps, self.far, self._was_frozen, gain, doubt,
            )  # fmt: skip
            late = np.flatnonzero(self.far & (phi + gain + doubt >= self.threshold))
            if late.size:
                return late
            phi += gain
            pull = P[2 * i]
        self.phi, self.pull, self.look, self.g = phi, pull, look, g
        return none

    def _look_at(self, awake: list[int]) -> Look:
        if self.kept is not None:
            return GramLook(self.kept, tuple(awake))
        on_device = self.problem.design.look(self.problem)
        return ColumnLook.first(self.problem, awake) if on_device is None else on_device.join(self.problem, awake)

    def _first_pulls(self) -> FloatArray:
        begin, problem = self.begin, self.problem
        self._was_frozen = begin.eta > 0
        if begin.awake.size:
            own = spans(problem.starts, begin.awake)
            sizes = np.exp(self.settings.depth * begin.log_u[begin.awake])
            w = begin.v[own] * np.repeat(sizes, problem.ranks[begin.awake])
            P, self.g = self._look_at(begin.awake.tolist()).pulls(w[None, :], self.directions, self._was_frozen)
            return P[0]
        return pulls_of(self.g[None, :], problem.starts, self.directions, self._was_frozen)[0]

    def _freeze(self) -> None:
        """Freeze the directions of far groups at the switch."""
        self._was_frozen = True
        self.directions = unit_groups(self.g, self.problem.starts)

    # ------------------------------------------------------------------ results

    def _publish(self) -> None:
        """Pass an accepted draft to the recorder."""
        draft = self.path.draft
        events = list(zip(self.near[draft.entered[0]].tolist(), draft.entered[1].tolist(), strict=True))
        self.recorder.record_all(draft, events, self.which, self.path.view.starts)
        self.path.accept()

    @property
    def n_gram_columns(self) -> int:
        """Gram columns computed so far."""
        return self.path.n_fetched

    @property
    def which(self) -> list[int]:
        """The awake groups."""
        return self.near[self.path.view.which].tolist()

    def state(self) -> PathState:
        """The current state of the path."""
        path = self.path
        phi, directions = self.phi.copy(), self.directions.copy()
        phi[self.near] = path.phi
        directions[spans(self.problem.starts, self.near)] = path.directions
        log_u = logs_of(phi, self.settings.depth)
        which = self.which
        awake = path.view
        log_u[which] = np.log(awake.u)
        return ending(self.problem, path.t, awake, which, log_u, path.switch, directions, self.recorder.entered)
