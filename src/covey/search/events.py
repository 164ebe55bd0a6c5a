"""The path in the limit of small starts: a list of events in closed form.

As the network's start scale goes to zero, its path becomes a sequence of events. Let ``g_l`` be minus the gradient of
the loss on group l at the current model, and ``c_l`` the weight of the group.

- A sleeping group accumulates ``s_l``, the integral of ``norm(g_l) / c_l`` over time, and wakes when it reaches 1. If
  it has parents (an interaction has its variables), those that sleep wake with it, just before it.
- The awake groups move to the minimiser of the loss on them at once, and stay there until the next event.

The next group to wake is the one with the least ``(1 - s_l) c_l / norm(g_l)``. There is no step size, no start scale
and nothing to iterate (docs/theory.md has the derivation).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from covey.search.active import ActiveSet
from covey.validation import FloatArray

__all__ = ["EXHAUSTED", "TIE", "EventPath"]

# Rates below this share of the initial ones are round-off error: nothing is left to explain.
EXHAUSTED = 1e-7

# Waiting times that differ by less than this are a tie, and the group listed first wins: round-off error must not
# decide the order. TIE is relative; DIGITS is the precision of the sums, and of the rates relative to the initial ones.
TIE, DIGITS = 1e-10, 1e-12


class EventPath:
    """The events of one path: which group woke, when and how fast.

    Parameters
    ----------
    active : ActiveSet
        With the groups that are awake from the start.
    weights : ndarray, shape (n_groups,)
        ``c_l``.
    positions : ndarray of int, shape (n_groups,)
        The position of each near group among all groups; decides ties.
    first_norms : ndarray, shape (n_groups,)
        ``norm(g_l)`` at the model without groups.
    racing : ndarray of bool, shape (n_groups,)
        The groups that may wake by themselves; others only as parents.

    Attributes
    ----------
    times, speeds : list of float
        When each awake group woke up, and its rate then; zero for groups that were awake from the start.
    sums : ndarray, shape (n_groups,)
        ``s_l``: what each group has accumulated so far.
    first_rate : float
        The largest rate at the model without groups, even if some are awake from the start.
    """

    def __init__(
        self,
        active: ActiveSet,
        weights: FloatArray,
        positions: NDArray[np.intp],
        first_norms: FloatArray,
        racing: NDArray[np.bool_],
    ) -> None:
        self.active, self.weights, self.positions, self.racing = active, weights, positions, racing
        self.first_rate = float((first_norms / weights).max(initial=0.0))
        self.sums: FloatArray = np.zeros(weights.size)
        self.asleep = np.ones(weights.size, dtype=bool)
        self.asleep[active.groups] = False
        self.times = [0.0] * len(active.groups)
        self.speeds = [0.0] * len(active.groups)
        self._before: list[FloatArray] = [self.sums] * len(active.groups)

    def __len__(self) -> int:
        return len(self.times)

    @property
    def groups(self) -> list[int]:
        """The awake groups, in the order in which they woke up."""
        return self.active.groups

    def next_groups(self, norms: FloatArray, parents: Callable[[int], list[int]]) -> list[int]:
        """The group that wakes next, given ``norm(g_l)`` at the present model, after those of its parents that sleep.

        The path is then after that event: the caller refits the awake groups. Empty if nothing is left to explain.
        """
        rate = np.where(self.asleep & self.racing, norms / self.weights, 0.0)
        live = rate > EXHAUSTED * self.first_rate
        if not live.any():
            return []
        wait = np.full(rate.size, np.inf)
        np.divide(np.maximum(1.0 - self.sums, 0.0), rate, out=wait, where=live)
        first = int(wait.argmin())
        least = float(wait[first])
        slack = TIE * least + DIGITS * (1 + least * self.first_rate) / float(rate[first])
        close = (wait <= least + slack).nonzero()[0]
        group = int(close[np.argmin(self.positions[close])]) if close.size > 1 else first
        before, self.sums = self.sums, self.sums + wait[group] * rate
        now = (self.times[-1] if self.times else 0.0) + float(wait[group])
        # a model may end between two parents: the one that would have woken sooner comes first, whatever their order
        brought = [l for l in parents(group) if self.asleep[l]]
        woken = [*sorted(brought, key=lambda l: (len(parents(l)), wait[l])), group]
        for l in woken:
            self._before.append(before)
            self.times.append(now)
            self.speeds.append(float(rate[l]))
            self.asleep[l] = False
            before = self.sums  # a path that ends between a parent and its child is at the time of both
        return woken

    def widen(
        self, weights: FloatArray, positions: NDArray[np.intp], added: FloatArray, racing: NDArray[np.bool_]
    ) -> None:
        """Append sleeping groups that have accumulated `added`."""
        self.weights, self.positions = weights, positions
        self.racing = np.concatenate([self.racing, racing])
        self.asleep = np.concatenate([self.asleep, np.ones(added.size, dtype=bool)])
        self._before = [np.concatenate([sums, added]) for sums in self._before]
        self.sums = np.concatenate([self.sums, added])

    def truncate(self, n_events: int) -> None:
        """Go back to just after the first `n_events` events; groups awake from the start count as events."""
        self.asleep[self.groups[n_events:]] = True
        if n_events < len(self):
            self.sums = self._before[n_events]
        del self.times[n_events:], self.speeds[n_events:], self._before[n_events:]
        self.active.truncate(n_events)
