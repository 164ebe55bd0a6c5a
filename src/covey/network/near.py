"""The near groups: those that may wake up before the others are checked again.

A sleeping group does not affect the residual, and its growth only accumulates. The loop is therefore: march the awake
groups in their own small Gram block to the time at which the next one should wake up, setting nodes; compute the
correlations of all near groups at the nodes (one product with the Gram rows); accumulate the sleeping groups' growth;
and if one of them may cross the threshold, return to the previous node and step again while tracking it exactly.

One pass of the loop is three kernels: `decide` what comes next, `march`, and `digest` the nodes. They share the arrays
allocated here, and a record with the state of the path.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.network.awake import unit
from covey.network.beginning import Beginning
from covey.network.draft import Draft
from covey.network.growth import growth_of, join_at, phi_of, phis_of, u_of
from covey.network.kernels import (
    ASLEEP,
    DIVERGED,
    DONE,
    DOUBTFUL,
    EIGENVALUE_MARGIN,
    EXHAUSTED,
    EXPLAINED,
    LARGEST_STABLE,
    NEAR,
    NEVER,
    NEWS,
    NO_ROOM,
    NO_ROWS,
    NODE,
    NODES,
    RESTING,
    RUNNING,
    STAND,
    WAKING,
    WOKE,
    decide,
    digest,
    march,
    pulls,
    risen,
)
from covey.network.near_awake import AwakeView, NearAwake
from covey.network.settings import Settings
from covey.network.stored_rows import StoredRows
from covey.network.switching import Switch
from covey.preprocess import WorkingProblem
from covey.validation import FloatArray

__all__ = ["EXPLAINED", "NearPath"]

# The first distance between nodes, in units of the norm of y; error control takes over from there.
FIRST_DELTA = 0.1

# Initial capacity of a draft, in models.
DRAFT_ROOM = 64

ENDS = {RUNNING: "running", RESTING: "resting", ASLEEP: "asleep", EXHAUSTED: "exhausted"}


class NearPath:
    """The path of a problem restricted to its near groups, run piece by piece with `advance`.

    Attributes
    ----------
    now : record of `NEAR`
        Settings as numbers, and the state of the path.
    awake, draft
        The groups that are stepped, and the draft since the last check.
    phi, pull, rate, steps_to_wake : ndarray, shape (n_groups,)
        For every sleeping group: its accumulated growth, the pull of the residual (``v'g``), its growth per unit of
        pull, and the iterations until it wakes up at the current correlations. These are rows of one array, as are the
        next three.
    c, g, directions : ndarray, shape (r,)
        Correlations at w = 0 and at the last node, and the frozen directions of sleeping groups after the switch.
    asleep : ndarray of bool, shape (n_groups,)
    """

    def __init__(
        self, problem: WorkingProblem, settings: Settings, begin: Beginning, stops: NDArray[np.int64], tol: float,
        stored: StoredRows,
    ) -> None:  # fmt: skip
        N = settings.depth
        self.stops = np.array(stops, dtype=np.int64)
        self.awake = NearAwake(problem.n_columns)
        self.draft = Draft(DRAFT_ROOM, self.awake.room, problem.ranks.size)
        self.n_fetched = 0
        self._now = np.zeros(1, dtype=NEAR)
        self.now = now = self._now[0]
        now["N"], now["gamma"], now["enter"], now["tau"] = N, settings.gamma, settings.enter, settings.tau
        now["tol"], now["delta"], now["direction_step"] = tol, FIRST_DELTA, 1.0
        # groups start to be stepped no later than they are recorded as awake
        now["threshold"] = phi_of(join_at(settings, tol) ** (1.0 / N), N)
        now["t"], now["eta"] = begin.time, begin.eta
        self.switch = Switch(settings, begin.eta, begin.armed)
        self._take(problem, settings, stored)
        self.phi[:], self.directions[:] = phis_of(begin.log_u, N), begin.v
        self.asleep[:] = problem.ranks > 0
        self._read_correlations()
        if begin.awake.size:
            # groups join in the direction of their correlations, but these already have directions
            self._next(self.t, 0)
            self._provide(begin.awake)
            self.g[:] = begin.v
            self._join(begin.awake)
            self._read_correlations()
        self._decide(self.t, 0)
        self._record([self.t])

    # ------------------------------------------------------------------ the loop

    def advance(self, horizon: int, joins: int) -> str:
        """Run to the horizon, until this many groups have joined, or to the switch; returns how it ended."""
        most = int(self.now["n_awake"]) + joins
        frozen = self.switch.frozen
        while (why := self._decide(horizon, most)) not in ENDS:
            if why == STAND:
                self._stand_still()
            elif not self._window():
                return "diverged"
            if self.switch.frozen and not frozen:
                horizon = self.t
        return ENDS[why]

    def _decide(self, horizon: int, most_awake: int) -> int:
        """What comes next, or how the path ended; groups past the threshold join here."""
        while True:
            why = self._next(horizon, most_awake)
            ready = self._ready[: self.now["n_ready"]]
            if why in (NO_ROWS, NO_ROOM):
                self._provide(ready)
            elif why == NEWS:
                self._join(ready)
            else:
                return why

    def _next(self, horizon: int, most_awake: int) -> int:
        awake, draft = self.awake, self.draft
        return int(
            decide(
                self.now, horizon, most_awake, self.stops, awake.of_awake, awake.places, awake.K, self._of_groups,
                self._flags, self.starts, self.stored.starts, self._ready, draft.filled, draft.n_risen.size,
            )
        )  # fmt: skip

    def _provide(self, joining: NDArray[Any]) -> None:
        """Read the Gram rows of groups about to join, and make room for them and for new records."""
        if (self.stored.starts[joining] < 0).any():
            self.n_fetched += self.stored.fetch(joining, self.t, self.steps_to_wake.copy())
        self.awake.make_room(self.n_columns + int(self.problem.ranks[joining].sum()))
        self.draft.make_room(int(self.now["lacking"]), self.awake.room)

    def _join(self, joining: NDArray[Any]) -> None:
        """Record which groups have woken up, and let others join the awake ones, in this order."""
        now, awake, N, t, enter = self.now, self.awake, self.settings.depth, self.t, self.settings.enter
        n_awake = int(now["n_awake"])
        if now["news"]:
            at, which = awake.entered_at[:n_awake], awake.which[:n_awake]
            new = np.flatnonzero((at >= 0) & (at <= t) & ~self._told[which])
            new = new[np.argsort(at[new], kind="stable")]
            self._enter(which[new].tolist(), at[new].tolist())
            self._make_safe(n_awake, t)
            now["news"] = False
        if joining.size == 0:
            return
        toward, entered = self.directions if self.switch.frozen else self.g, []
        for l in joining.tolist():
            first, last = int(self.starts[l]), int(self.starts[l + 1])
            u, v = u_of(float(self.phi[l]), N), unit(toward[first:last])
            size = u**N
            # a tie with the threshold counts as entered
            up = size >= enter * (1 - 1e-9)
            awake.join(
                n_awake, l, u, v, size * v, float(self.settings.speeds[l]), self.c[first:last], first,
                self.stored.rows_of(l), t if up else -1,
            )  # fmt: skip
            n_awake += 1
            if up:
                entered.append(l)
        self.asleep[joining] = False
        self.draft.join(joining)
        now["n_awake"] = n_awake
        self._enter(entered, [t] * len(entered))
        self._make_safe(n_awake, t)

    def _enter(self, groups: list[int], times: list[int]) -> None:
        """Record in the draft that groups have woken up."""
        if groups:
            self._told[groups] = True
            self.now["n_told"] += len(groups)
            self.draft.enter(groups, times)

    def _make_safe(self, n_awake: int, t: int) -> None:
        """Find steps that cannot oscillate in the Gram block of the groups that have entered.

        Groups that joined but have not entered do not count, so that engines in which groups join earlier take the same
        steps.
        """
        largest = self.awake.largest_curvature(n_awake, t)
        if largest >= 0:
            curvature = EIGENVALUE_MARGIN * largest
            self.now["curvature"] = curvature
            self.now["direction_step"] = 1.0 if curvature < LARGEST_STABLE else 1.0 / curvature

    def _window(self) -> bool:
        """March and advance the sleeping groups; False if the awake groups diverged."""
        now, awake, draft, G = self.now, self.awake, self.draft, self._G
        W = awake.ways(self.n_columns)
        result = WAKING
        while result not in (DONE, DOUBTFUL):
            known = int(now["last"])
            if result == WAKING:
                end = march(
                    now, self.stops, awake.state, awake.of_awake, awake.places, awake.K, awake.rows, awake.nodes, W,
                    awake.times, awake.top, self._of_groups, self._of_columns, self.starts, self._ready,
                )  # fmt: skip
                if end == DIVERGED:
                    awake.state[:] = awake.nodes[0]
                    return False
                if end == WOKE or now["n_watched"] == 0:
                    known = int(now["done"])
                else:
                    # return to a known node
                    awake.entered_at[:] = awake.entered_before
            first, last = 2 * known + 2, 2 * int(now["last"]) + 2
            np.matmul(W[first:last], awake.rows[: W.shape[1]], out=G[first:last])
            np.subtract(self.c, G[first:last], out=G[first:last])
            result = digest(
                now, first, awake.places, W, awake.times, self._of_groups, self._flags, self._of_columns, self.starts,
                G, self._P, self._ready, draft.filled, draft.numbers, draft.n_risen, draft.models, draft.lefts,
            )  # fmt: skip
            done = int(now["done"])
            awake.state[:] = awake.nodes[done]
            if done:
                self.g[:] = G[2 * done]
            if result == NODE and self._switched():
                return True
            if result in (WAKING, DOUBTFUL):
                self._forget_later()
        return True

    def _forget_later(self) -> None:
        """Undo wake-ups after the current time."""
        at = self.awake.entered_at
        self.awake.entered_before[:] = at
        at[at > self.now["t"]] = -1

    def _stand_still(self) -> None:
        """While no awake group moves, let every sleeping group grow at a constant rate."""
        now, t, until = self.now, self.t, int(self.now["until"])
        growth = growth_of(self.rate * self.pull, self.settings.depth, self.substeps)
        self.phi += np.where(self.asleep, growth * (until - t), 0.0)
        on_the_way = self.stops[(self.stops > t) & (self.stops < until)].tolist()
        now["t"], now["still"], now["resting"] = until, False, False
        self._record([*on_the_way, until], until - t)

    def _switched(self) -> bool:
        """Make the switch of Algorithm 2 if it is due; sleeping groups then keep their current directions."""
        now, awake = self.now, self.view
        change = float(self.awake.top[now["done"]])
        if self.settings.depth == 2:
            change = max(change, float((self.rate * self.pull)[self.asleep].max(initial=0.0)))
        if not self.switch.due(awake, change):
            return False
        self.switch.fire(awake)
        now["eta"], now["still"] = self.switch.eta, False
        self._forget_later()
        norms = np.repeat(self.pull, self.problem.ranks)
        self.directions[:] = np.divide(self.g, norms, out=np.zeros_like(self.g), where=norms > 0)
        return True

    # ------------------------------------------------------------------ where the path stands

    @property
    def t(self) -> int:
        """The time."""
        return int(self.now["t"])

    @property
    def view(self) -> AwakeView:
        """The awake groups."""
        return self.awake.view(int(self.now["n_awake"]))

    @property
    def n_columns(self) -> int:
        """The number of columns of the awake groups."""
        return int(self.awake.starts[self.now["n_awake"]])

    @property
    def can_grow(self) -> bool:
        """Whether any group is awake, or would wake up at the current correlations."""
        return bool(self.now["n_awake"] > 0 or self.now["expected"] < NEVER)

    @property
    def substeps(self) -> int:
        """The current number of substeps per iteration."""
        return int(self.now["substeps"])

    def _record(self, times: list[int], steps: int = 0) -> None:
        """Record the current model in the draft at some times, the last one `steps` iterations after the last node."""
        awake = self.view
        g = awake.c - awake.K @ awake.w
        count = risen(g, np.arange(g.size), awake.starts, len(awake.which), awake.w)
        for t in times:
            self.draft.add(t, awake.w, count, int(self.now["n_told"]), steps if t == times[-1] else 0)

    # ------------------------------------------------------------------ going back, and taking in more groups

    def accept(self) -> None:
        """Start a new draft."""
        self.draft.filled[:] = 0

    def save(self) -> tuple[Any, ...]:
        """Everything that `advance` changes."""
        own = self._now, self._of_groups, self._of_columns, self._flags, self.draft.filled
        return *(array.copy() for array in own), copy.copy(self.switch), self.awake.save()

    def load(self, saved: tuple[Any, ...]) -> None:
        """Restore a saved state."""
        own = self._now, self._of_groups, self._of_columns, self._flags, self.draft.filled
        *arrays, switch, awake = saved
        for array, before in zip(own, arrays, strict=True):
            array[:] = before
        self.switch = copy.copy(switch)
        self.awake.load(awake)

    def widen(self, more: WorkingProblem, settings: Settings, phi: FloatArray, directions: FloatArray) -> None:
        """Append more near groups."""
        which = self.view.which
        rows = self.problem.cross_gram_rows(which, more) if which else np.empty((0, more.n_columns))
        problem = self.problem.join(more)
        self.awake.widen(problem.n_columns, rows)
        self.draft.widen(problem.ranks.size)
        stored = StoredRows(problem)
        stored.add(which, self.awake.rows[: self.n_columns])
        phi, directions = np.concatenate([self.phi, phi]), np.concatenate([self.directions, directions])
        flags = np.concatenate([self._flags, [more.ranks > 0, np.zeros(more.ranks.size, dtype=bool)]], axis=1)
        self._take(problem, settings, stored)
        self.phi[:], self.directions[:], self._flags[:] = phi, directions, flags
        self._read_correlations()
        self._decide(self.t, 0)

    def _take(self, problem: WorkingProblem, settings: Settings, stored: StoredRows) -> None:
        """Set the problem; arrays are copied, because kernels need them writable and unshared."""
        self.problem, self.settings, self.stored = problem, settings, stored
        self.switch.settings = settings
        L, r = problem.ranks.size, problem.n_columns
        self.starts = np.array(problem.starts, dtype=np.int64)
        # besides those above: speeds, steps to wake, gains with their doubts, and the phi of watched groups
        self._of_groups = np.zeros((8, L))
        self.phi, self.pull, self.rate, speeds, self.steps_to_wake, *_ = self._of_groups
        self.rate[:], speeds[:] = settings.depth * settings.gamma * settings.speeds, settings.speeds
        self._of_columns = np.zeros((3, r))
        self.c, self.g, self.directions = self._of_columns
        self.c[:] = problem.correlation
        # groups that are asleep, and groups recorded in the draft as awake
        self._flags = np.zeros((2, L), dtype=bool)
        self.asleep, self._told = self._flags
        self._G, self._P = np.empty((2 * NODES + 2, r)), np.empty((2 * NODES + 2, L))
        self._ready = np.empty(L, dtype=np.int64)

    def _read_correlations(self) -> None:
        """Compute the correlations of all near groups at the current w."""
        k = self.n_columns
        np.subtract(self.c, self.awake.w[:k] @ self.awake.rows[:k], out=self.g)
        pulls(self.g[None, :], 1, self.starts, self.directions, self.switch.frozen, self.pull[None, :])
