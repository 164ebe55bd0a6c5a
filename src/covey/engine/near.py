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

from covey.engine.beginning import Beginning
from covey.engine.draft import Draft
from covey.engine.growth import growth_of, join_at, phi_of, phis_of, u_of
from covey.engine.kernels import (
    DIVERGED,
    DOUBTFUL,
    NEWS,
    STILL,
    WAKING,
    WOKE,
    WORKED,
    digest,
    march,
    pulls,
    risen,
    steps_to_wake,
)
from covey.engine.near_awake import NODES, ROOM, NearAwake, Trio
from covey.engine.settings import Settings
from covey.engine.stored_rows import StoredRows
from covey.engine.switching import Switch
from covey.preprocess import WorkingProblem
from covey.validation import FloatArray

__all__ = ["EXPLAINED", "NearPath"]

# The first distance between nodes, in units of the norm of y; error control takes over from there.
FIRST_DELTA = 0.1

LARGEST_DELTA, SMALLEST_DELTA = 0.25, 1e-4

# Doubts are the size of a correction that is made, not of the error that it leaves.
DOUBT_SHARE = 5.0

# Nothing moves any more when all that could still move before the horizon is this share of the tolerance.
STILL_SHARE = 0.1

# A residual of this squared norm (that of y is 1) is rounding.
EXPLAINED = 1e-12

# A march goes on for at most as long as the time so far, or this many iterations: a stop rule may be waiting.
SHORT = 50

# A rest of at least this share of the time so far ends a piece, so that the stop rule can look ahead.
REST_SHARE = 0.3

# Room for so many models in a draft at first.
DRAFT_ROOM = 64

# No wake-up is expected later than this.
NEVER = 2.0**62

# What `advance` changes, besides the state of the awake groups.
CHANGED = ("t", "asleep", "phi", "switch", "directions", "delta", "g", "pull", "told", "resting")

NOBODY, NO_STOPS, NO_PHI = np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int64), np.empty(0)


class NearPath:
    """The path of a problem restricted to its near groups, run piece by piece with `advance`."""

    def __init__(
        self, problem: WorkingProblem, settings: Settings, begin: Beginning, stops: NDArray[np.int64], tol: float,
        stored: StoredRows,
    ) -> None:  # fmt: skip
        self.settings, self.tol = settings, tol
        N = settings.depth
        self.stops = np.array(stops, dtype=np.int64)
        self.t = begin.time
        self.awake = NearAwake(problem.n_columns)
        # groups join the stepping no later than they are said to have woken up
        self.threshold = phi_of(join_at(settings, tol) ** (1.0 / N), N)
        self.phi = phis_of(begin.log_u, N)
        self.asleep = problem.ranks > 0
        self.switch = Switch(settings, begin.eta, begin.armed)
        self.directions = np.array(begin.v)
        self.delta = FIRST_DELTA
        self.n_fetched = 0
        self.told: frozenset[int] = frozenset()
        self.resting = self.worked = False
        self.draft = Draft(DRAFT_ROOM, ROOM)
        self._take(problem, stored)
        if begin.awake.size:
            self._join(begin.awake, begin.v)
            self._read_correlations()
        self._wake()
        self._record([self.t])

    # ------------------------------------------------------------------ the loop

    def advance(self, horizon: int, joins: int) -> str:
        """Go on to the horizon, or until so many groups have joined, or the switch; how it ended."""
        awake, frozen, joins = self.awake, self.switch.frozen, joins + len(self.awake.which)
        while self.t < horizon and len(awake.which) < joins and self.switch.frozen == frozen:
            # not from the correlations at hand, which are older than a group that has just joined
            if 1.0 - awake.explained() < EXPLAINED:
                return "exhausted"
            expected = self._expected()
            if not awake.which and expected is None:
                return "asleep"
            until = horizon if expected is None else min(horizon, self.t + expected)
            if not awake.which or self.resting:
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

    @property
    def substeps(self) -> int:
        """Steps into which an iteration is divided at present."""
        return self.awake.substeps(self.settings)

    def _expected(self) -> int | None:
        """Iterations until somebody wakes if all correlations stay as they are; None for never."""
        soonest = self._find_steps()
        return int(max(soonest, 1.0)) if soonest < NEVER else None

    def steps_to_wake(self) -> FloatArray:
        """Iterations until each group wakes if all correlations stay as they are."""
        self._find_steps()
        return self._steps.copy()

    def _find_steps(self) -> float:
        N = self.settings.depth
        return float(
            steps_to_wake(self.phi, self.pull, self.rate, self.asleep, self.threshold, N, self.substeps, self._steps)
        )

    def _stand_still(self, horizon: int) -> None:
        """Nothing awake moves: everybody asleep grows at a constant rate, to the horizon or the first to wake."""
        expected = self._expected()
        until = horizon if expected is None else min(horizon, self.t + expected)
        growth = growth_of(self.rate * self.pull, self.settings.depth, self.substeps)
        self.phi += np.where(self.asleep, growth * (until - self.t), 0.0)
        on_the_way = self.stops[(self.stops > self.t) & (self.stops < until)].tolist()
        steps, self.t, self.resting = until - self.t, until, False
        self._record([*on_the_way, until], steps)

    def _window(self, horizon: int, limit: int) -> bool:
        """March to the horizon, or the limit, and bring the sleepers along; False if the awake groups diverged."""
        awake = self.awake
        self.draft.make_room(NODES, awake.room)
        self._base = self.draft.n_records
        before = awake.snapshot()
        count, why = self._march(0, horizon, limit, self.delta, self.switch.tau, self.stops)
        if why == DIVERGED:
            awake.restore(before)
            return False
        self.worked = why == WORKED
        self._read_nodes(0, count)
        done, surest = 0, 0.0
        while done < count:
            done, surest, result = self._digest(done, count, before[2], surest)
            before = self._node(done - 1) if done else before
            if result == DOUBTFUL:
                self.delta = max(self.delta / 2, SMALLEST_DELTA)
                self._return_to(before)
                return True
            if result == WAKING:
                entered_at = awake.entered_at.copy()
                self._return_to(before)
                if self._watch(done, before):
                    return True
                # in vain: back to where the march ended
                awake.restore(self._node(count - 1))
                awake.entered_at[:] = entered_at
                done, before = done + 1, self._node(done)
            if self._switched(float(self._top[done - 1])):
                awake.restore(before)
                return True
        if surest < DOUBT_SHARE * self.tol / 4:
            self.delta = min(self.delta * 1.5, LARGEST_DELTA)
        if why == STILL:
            expected = self._expected()
            if expected is None or expected > REST_SHARE * self.t:
                self.resting = True
            else:
                self._stand_still(horizon)
        return True

    def _watch(self, i: int, before: Trio) -> bool:
        """Step again to node i with those followed exactly that may wake; whether one of them did on the way."""
        waking = np.flatnonzero(self.asleep & (self.phi + self._gain + self._doubt >= self.threshold))
        phi = self.phi[waking]
        until = int(self.draft.times[self._base + i])
        woke = self._march(i, until, until, np.inf, 0.0, NO_STOPS, waking, phi)[1] == WOKE
        if woke:
            self._read_nodes(i, i + 1)
        self._digest(i, i + 1, before[2], 0.0, sure=True)
        self.phi[waking] = phi
        return woke

    def _march(
        self, i: int, horizon: int, limit: int, delta: float, tau: float, stops: NDArray[np.int64],
        watched: NDArray[np.intp] = NOBODY, phi: FloatArray = NO_PHI,
    ) -> tuple[int, int]:  # fmt: skip
        """Step the awake groups; nodes are kept from the i-th on. How many there are, and why it ended."""
        awake, draft, settings, at = self.awake, self.draft, self.settings, self._base + i
        g, origin, total, _ = awake.scratch
        return march(
            awake.K, awake.c, awake.starts, len(awake.which), awake.u, awake.v, awake.w, awake.speeds, awake.entered_at,
            settings.gamma, awake.direction_step, self.switch.eta, settings.depth, awake.curvature, settings.enter,
            self.t, horizon, limit, delta, self.tol * STILL_SHARE, tau, stops,
            draft.times[at:], self._top[i:], awake.nodes_u[i:], awake.nodes_v[i:], draft.models[2 * at :],
            g, origin, total,
            watched, phi, awake.rows, self.c, self.starts, self.rate, self.directions, self._gW, self.threshold,
        )  # fmt: skip

    def _read_nodes(self, first: int, last: int) -> None:
        """Correlations of all near groups at some nodes, and at the means on the way to them."""
        k, base = self.awake.n_columns, self._base
        G = self._G[2 * first : 2 * last]
        np.matmul(self.draft.models[2 * (base + first) : 2 * (base + last), :k], self.awake.rows[:k], out=G)
        np.subtract(self.c, G, out=G)
        self._fresh = True

    def _digest(
        self, first: int, last: int, left: FloatArray, surest: float, sure: bool = False
    ) -> tuple[int, float, int]:
        """Accept nodes as far as the sleepers allow: up to which, the largest doubt about a gain, and why not all."""
        awake, draft, base = self.awake, self.draft, self._base
        most = DOUBT_SHARE * self.tol if self.delta > SMALLEST_DELTA else np.inf
        done, why, surest = digest(
            first, last, self._fresh, sure, self.switch.tau > 0, self.t, left, self._G, self._P, self.starts,
            self.directions, self.switch.frozen, self.rate, self.settings.depth, self.substeps, self.asleep, self.phi,
            self.pull, self.g, self._gain, self._doubt, self.threshold, most, surest,
            draft.times[base:], draft.models[2 * base :], draft.steps[base:], draft.lefts[base:], draft.n_risen[base:],
            draft.n_entered[base:], len(self.told), awake.starts, awake.columns, len(awake.which), awake.entered_at,
        )  # fmt: skip
        self._fresh = False
        if done > first:
            draft.n_joined[base + first : base + done] = len(awake.which)
            draft.n_records = base + done
            self.t = int(draft.times[base + done - 1])
            if why == NEWS:
                self._hear_news()
        return done, surest, why

    def _node(self, i: int) -> Trio:
        """The state of the awake groups at a node."""
        return self.awake.nodes_u[i], self.awake.nodes_v[i], self.draft.models[2 * (self._base + i)]

    def _return_to(self, state: Trio) -> None:
        """Take the awake groups back to the present time."""
        self.awake.restore(state)
        later = self.awake.entered_at[: len(self.awake.which)]
        later[later > self.t] = -1

    # ------------------------------------------------------------------ events

    def _wake(self) -> None:
        """Let every group past the threshold join the awake ones."""
        ready = np.flatnonzero(self.asleep & (self.phi >= self.threshold))
        if ready.size:
            first = np.argsort(-self.phi[ready], kind="stable")
            self._join(ready[first], self.directions if self.switch.frozen else self.g)

    def _join(self, ready: NDArray[np.intp], directions: FloatArray) -> None:
        """Let groups join the awake ones, in this order."""
        N, enter = self.settings.depth, self.settings.enter
        if any(self.stored.lacks(l) for l in ready.tolist()):
            self.n_fetched += self.stored.fetch(ready, self.t, self.steps_to_wake())
        for l in ready.tolist():
            u = u_of(float(self.phi[l]), N)
            # a tie with the threshold is decided in favour of having entered
            entered = u**N >= enter * (1 - 1e-9)
            at = self.t if entered else -1
            self.awake.join(l, u, directions, self.settings, self.starts, self.c, self.stored, at)
            self.asleep[l] = False
            self.draft.joined.append(l)
            if entered:
                self._enter(l, self.t)
        self.draft.make_room(0, self.awake.room)
        self.awake.make_safe(self.t)

    def _hear_news(self) -> None:
        """Groups have passed the norm at which they have woken up: say so, and find safe steps for all of them."""
        at = self.awake.entered_at[: len(self.awake.which)]
        up = np.flatnonzero((at >= 0) & (at <= self.t))
        for a in up[np.argsort(at[up], kind="stable")].tolist():
            self._enter(self.awake.which[a], int(at[a]))
        self.awake.make_safe(self.t)

    def _enter(self, l: int, t: int) -> None:
        """Write into the draft, once, that a group has woken up."""
        if l not in self.told:
            self.told = self.told | {l}
            self.draft.entered.append((l, t))

    def _switched(self, change: float) -> bool:
        """Apply the switch of Algorithm 2 if it is due at this node."""
        if self.switch.tau == 0.0:
            return False
        if self.settings.depth == 2:
            change = max(change, float((self.rate * self.pull)[self.asleep].max(initial=0.0)))
        if not self.switch.due(self.awake.view, change):
            return False
        self.switch.fire(self.awake.view)
        norms = np.repeat(self.pull, self.problem.ranks)
        self.directions = np.divide(self.g, norms, out=np.zeros_like(self.g), where=norms > 0)
        return True

    def _record(self, times: list[int], steps: int = 0) -> None:
        """Write the present model into the draft at some times, the last one `steps` iterations after the last node."""
        awake = self.awake.view
        self.draft.make_room(len(times), self.awake.room)
        g = awake.c - awake.K @ awake.w
        count = risen(g, np.arange(g.size), awake.starts, len(awake.which), awake.w)
        for t in times:
            own = steps if t == times[-1] else 0
            self.draft.add(t, len(awake.which), awake.w, count, len(self.told), own)

    # ------------------------------------------------------------------ going back, and taking in more groups

    def accept(self) -> None:
        """Begin a new draft."""
        self.draft.n_records, self.draft.entered, self.draft.joined = 0, [], []

    def save(self) -> dict[str, Any]:
        """Everything that `advance` changes."""
        kept = {name: copy.copy(getattr(self, name)) for name in CHANGED}
        draft = self.draft.n_records, len(self.draft.entered), len(self.draft.joined)
        return kept | {"groups": self.awake.save(), "draft": draft}

    def load(self, saved: dict[str, Any]) -> None:
        """Undo what was done since the save."""
        for name in CHANGED:
            setattr(self, name, copy.copy(saved[name]))
        self.awake.load(saved["groups"])
        self.draft.n_records, n_entered, n_joined = saved["draft"]
        del self.draft.entered[n_entered:], self.draft.joined[n_joined:]

    def widen(self, more: WorkingProblem, settings: Settings, phi: FloatArray, directions: FloatArray) -> None:
        """Take in more groups, to stand after those known here."""
        which = self.awake.which
        rows = self.problem.cross_gram_rows(which, more) if which else None
        problem = self.problem.join(more)
        self.settings = self.switch.settings = settings
        self.phi = np.concatenate([self.phi, phi])
        self.directions = np.concatenate([self.directions, directions])
        self.asleep = np.concatenate([self.asleep, more.ranks > 0])
        self.awake.widen(problem.n_columns, rows)
        stored = StoredRows(problem)
        stored.add(which, self.awake.rows[: self.awake.n_columns])
        self._take(problem, stored)
        self._read_correlations()

    def _take(self, problem: WorkingProblem, stored: StoredRows) -> None:
        """Make this the problem; copies, for no array of a kernel may be read-only or belong to somebody else."""
        self.problem, self.stored = problem, stored
        L, r = problem.ranks.size, problem.n_columns
        self.starts, self.c = np.array(problem.starts, dtype=np.intp), np.array(problem.correlation, dtype=float)
        self.rate = self.settings.depth * self.settings.gamma * self.settings.speeds
        self._base, self._fresh = 0, False
        self._top: FloatArray = np.empty(NODES)
        self._steps, self._gain, self._doubt = np.empty(L), np.empty(L), np.empty(L)
        self._G: FloatArray = np.empty((2 * NODES, r))
        self._P, self._gW = np.empty((2 * NODES, L)), np.empty(r)
        self.g, self.pull = self.c.copy(), np.empty(L)
        self._find_pulls()

    def _read_correlations(self) -> None:
        """Correlations of all near groups at the present w."""
        k = self.awake.n_columns
        self.g = self.c - self.awake.w[:k] @ self.awake.rows[:k]
        self._find_pulls()

    def _find_pulls(self) -> None:
        pulls(self.g[None, :], 1, self.starts, self.directions, self.switch.frozen, self.pull[None, :])
