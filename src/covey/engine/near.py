"""The near groups: those that may wake before anybody looks again at the others.

A sleeping group does not touch the residual, and its magnitude only adds up its growth. So the loop is: march the
awake groups in their own small Gram block to the time at which somebody is expected to wake, leaving nodes; read the
correlations of all near groups at the nodes (one product with the Gram rows); add up the sleepers' growth; and where
one of them crosses the threshold, go back to the node before, and step again with that group watched exactly.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.engine.awake import Awake, GramRows, Trio
from covey.engine.beginning import Beginning, unit
from covey.engine.draft import Draft, Interval, Record
from covey.engine.growth import growth_of, join_at, phis_of
from covey.engine.kernels import DIVERGED, STILL, WORKED, gains, march, phi_of, pulls, risen, substeps_of, u_of, watch
from covey.engine.settings import Settings
from covey.engine.switching import Switch
from covey.preprocess import WorkingProblem
from covey.validation import FloatArray

__all__ = ["NearPath"]

# Nodes of one march: enough to cover a wake-up, few enough that a window given up costs little.
NODES = 6

# The first distance between nodes, in units of the norm of y; error control takes over from there.
FIRST_DELTA = 0.1

LARGEST_DELTA, SMALLEST_DELTA = 0.25, 1e-4

# Doubts are the size of a correction that is made, not of the error that it leaves.
DOUBT_SHARE = 5.0

# Nothing moves any more when all that could still move before the horizon is this share of the tolerance.
STILL_SHARE = 0.1

# A residual of this squared norm (that of y is 1) is rounding.
EXPLAINED = 1e-12

# Gram rows are fetched with those of the groups next in line, as many columns as cost hardly more than reading X. A
# group is worth that when it would wake, at its present growth, before this many times the time now; or at any time
# where reading X is dear.
AHEAD = 1.5


# A march goes on for at most as long as the time so far, or this many iterations: a stop rule may be waiting.
SHORT = 50

# A rest of at least this share of the time so far ends a piece, so that the stop rule can look ahead.
REST_SHARE = 0.3

# What `advance` changes, besides the state of the awake groups and their Gram rows.
CHANGED = ("t", "awake", "entered_at", "asleep", "phi", "switch", "directions", "delta", "g", "pull", "told", "resting")


class NearPath:
    """The path of a problem restricted to its near groups, run piece by piece with `advance`."""

    def __init__(
        self, problem: WorkingProblem, settings: Settings, begin: Beginning, stops: NDArray[np.int64], tol: float,
        rows: dict[int, FloatArray],
    ) -> None:  # fmt: skip
        self.problem, self.settings, self.tol, self.stops = problem, settings, tol, stops
        N = settings.depth
        self.t = begin.time
        self.rows = GramRows(problem.n_columns, problem.design.dtype)
        self.awake = Awake(problem)
        self.entered_at = np.empty(0, dtype=np.int64)
        self.asleep = problem.ranks > 0
        # groups join the stepping no later than they are said to have woken up
        self.threshold = phi_of(join_at(settings, tol) ** (1.0 / N), N)
        self.phi = phis_of(begin.log_u, N)
        self.rate = N * settings.gamma * settings.speeds
        self.switch = Switch(settings, begin.eta, begin.armed)
        self.directions = begin.v
        self.delta = FIRST_DELTA
        self.stash = rows
        self.n_fetched = 0
        self.draft = Draft()
        self.told: frozenset[int] = frozenset()
        self.resting = self.worked = False
        self.g = problem.correlation.copy()
        self.pull = self._pulls(self.g[None, :])[0]
        if begin.awake.size:
            self._join(begin.awake, begin.v)
            self._read_correlations()
        self._wake()
        self._record()

    # ------------------------------------------------------------------ the loop

    def advance(self, horizon: int, joins: int) -> str:
        """Go on to the horizon, or until so many groups have joined, or the switch; how it ended."""
        frozen, joins = self.switch.frozen, joins + len(self.awake.which)
        while self.t < horizon and len(self.awake.which) < joins and self.switch.frozen == frozen:
            if self._explained():
                return "exhausted"
            expected = self._expected()
            if not self.awake.which and expected is None:
                return "asleep"
            until = horizon if expected is None else min(horizon, self.t + expected)
            if not self.awake.which or self.resting:
                self._stand_still(until)
            elif not self._window(until, self.t + max(SHORT, self.t)):
                return "diverged"
            if self.resting:
                return "resting"
            self._wake()
            if self.worked:
                self.worked = False
                return "running"
        return "running"

    @property
    def can_grow(self) -> bool:
        """Whether anybody is awake, or will ever wake as things stand."""
        return bool(self.awake.which) or self._expected() is not None

    def _expected(self) -> int | None:
        """Iterations until somebody wakes if all correlations stay as they are; None for never."""
        steps = self.steps_to_wake()
        soonest = steps.min(initial=np.inf)
        return int(max(soonest, 1.0)) if np.isfinite(soonest) and soonest < 2**62 else None

    @property
    def substeps(self) -> int:
        """Steps into which an iteration is divided at present."""
        awake, settings = self.awake, self.settings
        return int(substeps_of(awake.u, awake.speeds, settings.gamma, awake.curvature, settings.depth))

    def _growth(self) -> FloatArray:
        """What one iteration adds to every ``phi`` as things stand."""
        return growth_of(self.rate * self.pull, self.settings.depth, self.substeps)

    def steps_to_wake(self) -> FloatArray:
        """Iterations until each group wakes if all correlations stay as they are."""
        each = self._growth()
        steps = np.full(each.size, np.inf)
        able = self.asleep & (each > 0)
        with np.errstate(over="ignore"):  # never is far away
            steps[able] = np.ceil((self.threshold - self.phi[able]) / each[able])
        return steps

    def _stand_still(self, horizon: int) -> None:
        """Nothing awake moves: everybody asleep grows at a constant rate, to the horizon or the first to wake."""
        expected = self._expected()
        until = horizon if expected is None else min(horizon, self.t + expected)
        self.phi += np.where(self.asleep, self._growth() * (until - self.t), 0.0)
        for stop in self.stops[(self.stops > self.t) & (self.stops < until)]:
            self._record(int(stop))
        self.draft.intervals.append(Interval(until - self.t, self.awake.w, self.awake.w, self.awake.w))
        self.t, self.resting = until, False
        self._record()

    def _window(self, horizon: int, limit: int) -> bool:
        """March to the horizon, or the limit, and bring the sleepers along; False if the awake groups diverged."""
        awake, k, A = self.awake, self.awake.w.size, len(self.awake.which)
        before = awake.snapshot()
        times, top = np.empty(NODES, dtype=np.int64), np.empty(NODES)
        nodes_u, nodes_v, nodes_w, means = (np.empty((NODES, size)) for size in (A, k, k, k))
        count, why = march(*(
            *self._kernel_state(), self.t, horizon, limit, self.delta, self.tol * STILL_SHARE, self.switch.tau, self.stops,
            times, nodes_u, nodes_v, nodes_w, means, top,
        ))  # fmt: skip
        if why == DIVERGED:
            awake.restore(before)
            return False
        self.worked = why == WORKED
        W = np.empty((2 * count, k))
        W[0::2], W[1::2] = nodes_w[:count], means[:count]
        G = self.rows.correlations(self.problem.correlation, W)
        P = self._pulls(G)
        easiest = 0.0
        for i in range(count):
            gain, doubt, worst = self._gains(before[2], W[2 * i], W[2 * i + 1], P[2 * i], P[2 * i + 1], times[i])
            if worst > DOUBT_SHARE * self.tol and times[i] - self.t > 1 and self.delta > SMALLEST_DELTA:
                self.delta = max(self.delta / 2, SMALLEST_DELTA)
                self._return_to(before)
                return True
            easiest = max(easiest, worst)
            waking = np.flatnonzero(self.asleep & (self.phi + gain + doubt >= self.threshold))
            if waking.size:
                self._return_to(before)
                if self._watch(waking, int(times[i]), gain):
                    return True
            else:
                self.phi += gain
            self.draft.intervals.append(Interval(int(times[i]) - self.t, before[2], W[2 * i], W[2 * i + 1]))
            before = nodes_u[i], nodes_v[i], nodes_w[i]
            self._arrive(int(times[i]), before, G[2 * i], P[2 * i])
            if self._switched(top[i]):
                self.awake.restore(before)
                return True
        if easiest < DOUBT_SHARE * self.tol / 4:
            self.delta = min(self.delta * 1.5, LARGEST_DELTA)
        if why == STILL:
            expected = self._expected()
            if expected is None or expected > REST_SHARE * self.t:
                self.resting = True
            else:
                self._stand_still(horizon)
        return True

    def _watch(self, waking: NDArray[np.intp], until: int, gain: FloatArray) -> bool:
        """Step again to the node `until` with some sleepers followed exactly; whether one of them woke on the way."""
        starts = self.problem.starts
        own = [np.arange(starts[l], starts[l + 1]) for l in waking]
        columns = np.concatenate(own)
        startsC = np.concatenate([[0], np.cumsum([part.size for part in own])]).astype(np.intp)
        phi = self.phi[waking]
        mean = np.empty_like(self.awake.w)
        origin = self.awake.w.copy()
        t = watch(*(
            *self._kernel_state(), self.t, until, mean,
            self.rows.columns(columns), self.problem.correlation[columns], startsC, phi,
            self.directions[columns], self.settings.speeds[waking], self.threshold, self.switch.frozen,
        ))  # fmt: skip
        if phi.max() < self.threshold:
            self.phi += gain
            self.phi[waking] = phi
            return False
        G = self.rows.correlations(self.problem.correlation, np.stack([self.awake.w, mean]))
        P = self._pulls(G)
        gain, _, _ = self._gains(origin, self.awake.w, mean, P[0], P[1], t)
        self.phi += gain
        self.phi[waking] = phi
        self.draft.intervals.append(Interval(t - self.t, origin, self.awake.w.copy(), mean))
        self._arrive(t, self.awake.snapshot(), G[0], P[0])
        return True

    # ------------------------------------------------------------------ events

    def _wake(self) -> None:
        """Let every group past the threshold join the awake ones."""
        ready = np.flatnonzero(self.asleep & (self.phi >= self.threshold))
        if ready.size == 0:
            return
        self._join(
            ready[np.argsort(-self.phi[ready], kind="stable")], self.directions if self.switch.frozen else self.g
        )

    def _join(self, ready: NDArray[np.intp], directions: FloatArray) -> None:
        """Let groups join the awake ones, in this order."""
        N, starts = self.settings.depth, self.problem.starts
        self._fetch(ready)
        for l in ready.tolist():
            rows = self.stash[l]
            self.rows.append(rows)
            u = u_of(self.phi[l], N)
            v = unit(directions[starts[l] : starts[l + 1]])
            self.awake.join(l, u, v, N, self.settings.speeds[l], rows)
            self.asleep[l] = False
            # a tie with the threshold is decided in favour of having entered
            entered = u**N >= self.settings.enter * (1 - 1e-9)
            self.entered_at = np.append(self.entered_at, self.t if entered else -1)
            self.draft.joined.append(l)
            if entered:
                self._enter(l, self.t)
        self.awake.make_safe(self.entered_at >= 0)

    def _enter(self, l: int, t: int) -> None:
        """Write into the draft, once, that a group has woken up."""
        if l not in self.told:
            self.told = self.told | {l}
            self.draft.entered.append((l, t))
            self.draft.n_entered += 1

    def _fetch(self, ready: NDArray[np.intp]) -> None:
        """Read the Gram rows of groups about to wake, and of those next in line, in one product."""
        needed = [int(l) for l in ready if l not in self.stash]
        if not needed:
            return
        ranks, design = self.problem.ranks, self.problem.design
        latest = AHEAD * self.t if design.reads_columns else np.inf
        n_columns = int(ranks[needed].sum())
        steps = self.steps_to_wake()
        steps[ready] = np.inf
        order = np.argsort(steps, kind="stable")
        if not design.reads_columns:
            soonest = [self.problem.members(l) for l in order[: 2 * design.batch_columns].tolist() if steps[l] < np.inf]
            design.upcoming = np.concatenate([np.empty(0, dtype=np.intp), *soonest])
        for l in order[: design.batch_columns + 1].tolist():
            if not steps[l] <= latest or not np.isfinite(steps[l]) or n_columns + ranks[l] > design.batch_columns:
                break
            if l not in self.stash:
                needed.append(l)
                n_columns += int(ranks[l])
        rows = self.problem.gram_rows(needed)
        self.n_fetched += rows.shape[0]
        at = 0
        for l in needed:
            self.stash[l] = rows[at : at + ranks[l]]
            at += int(ranks[l])

    def _switched(self, change: float) -> bool:
        """Apply the switch of Algorithm 2 if it is due at this node."""
        if self.settings.depth == 2:
            change = max(change, float((self.rate * self.pull)[self.asleep].max(initial=0.0)))
        if not self.switch.due(self.awake, change):
            return False
        self.switch.fire(self.awake)
        norms = np.repeat(self.pull, self.problem.ranks)
        self.directions = np.divide(self.g, norms, out=np.zeros_like(self.g), where=norms > 0)
        return True

    def _explained(self) -> bool:
        """Whether nothing is left to explain; y has unit norm."""
        awake = self.awake
        return bool(1.0 - awake.w @ awake.c - awake.w @ self.g[awake.columns] < EXPLAINED) if awake.which else False

    # ------------------------------------------------------------------ small things

    def _gains(
        self, left_w: FloatArray, right_w: FloatArray, mean_w: FloatArray, right: FloatArray, middle: FloatArray, t: int
    ) -> tuple[FloatArray, FloatArray, float]:
        """Growth of all sleepers from now to t, with its doubt."""
        way = right_w - left_w
        length = float(way @ way)
        share = min(max(float((mean_w - left_w) @ way) / length, 0.0), 1.0) if length > 0 else 0.5
        gain, doubt = np.empty(self.phi.size), np.empty(self.phi.size)
        worst = gains(
            self.pull, right, middle, share, t - self.t, self.rate, self.settings.depth,
            self.substeps, self.asleep, self.switch.frozen, gain, doubt,
        )  # fmt: skip
        return gain, doubt, worst

    def _pulls(self, G: FloatArray) -> FloatArray:
        out = np.empty((G.shape[0], self.phi.size))
        pulls(G, self.problem.starts, self.directions, self.switch.frozen, out)
        return out

    def _kernel_state(self) -> tuple[Any, ...]:
        awake, settings = self.awake, self.settings
        return (
            awake.K, awake.c, awake.starts, awake.u, awake.v, awake.w, awake.speeds, settings.gamma,
            awake.direction_step, self.switch.eta, settings.depth, awake.curvature, settings.enter, self.entered_at,
        )  # fmt: skip

    def _return_to(self, state: Trio) -> None:
        """Take the awake groups back to the present time."""
        self.awake.restore(state)
        self.entered_at[self.entered_at > self.t] = -1

    def _arrive(
        self, t: int, state: tuple[FloatArray, FloatArray, FloatArray], g: FloatArray, pull: FloatArray
    ) -> None:
        """Accept a node."""
        self.t, self.g, self.pull = t, g, pull
        up = (self.entered_at >= 0) & (self.entered_at <= t)
        if up.sum() > self.draft.n_entered:
            for a in sorted(np.flatnonzero(up), key=lambda a: self.entered_at[a]):
                self._enter(self.awake.which[a], int(self.entered_at[a]))
            self.awake.make_safe(up)
        self._record(t, state[2])

    def _record(self, t: int | None = None, w: FloatArray | None = None) -> None:
        awake = self.awake
        w = awake.w.copy() if w is None else w
        count = risen(awake.K, awake.c, awake.starts, w)
        self.draft.records.append(Record(self.t if t is None else t, len(awake.which), w, count, self.draft.n_entered))

    # ------------------------------------------------------------------ going back, and taking in more groups

    def save(self) -> dict[str, Any]:
        """Everything that `advance` changes."""
        kept = {name: copy.copy(getattr(self, name)) for name in CHANGED}
        return kept | {"trio": self.awake.snapshot(), "n_rows": self.rows.n_rows}

    def load(self, saved: dict[str, Any]) -> None:
        """Undo what was done since the save."""
        for name in CHANGED:
            setattr(self, name, copy.copy(saved[name]))
        self.awake.restore(saved["trio"])
        self.rows.truncate(saved["n_rows"])
        self.draft = Draft(n_entered=len(self.told))

    def widen(self, more: WorkingProblem, settings: Settings, phi: FloatArray, directions: FloatArray) -> None:
        """Take in more groups, to stand after those known here."""
        known = self.phi.size
        rows = self.problem.cross_gram_rows(self.awake.which, more) if self.awake.which else None
        problem = self.problem.join(more)
        self.problem, self.settings, self.awake.problem = problem, settings, problem
        self.switch.settings = settings
        self.phi = np.concatenate([self.phi, phi])
        self.directions = np.concatenate([self.directions, directions])
        self.asleep = np.concatenate([self.asleep, problem.ranks[known:] > 0])
        self.rate = settings.depth * settings.gamma * settings.speeds
        self.stash = {}
        if rows is None:
            self.rows = GramRows(problem.n_columns, problem.design.dtype)
        else:
            self.rows.widen(rows)
        self._read_correlations()

    def _read_correlations(self) -> None:
        self.g = self.rows.correlations(self.problem.correlation, self.awake.w[None, :])[0]
        self.pull = self._pulls(self.g[None, :])[0]
