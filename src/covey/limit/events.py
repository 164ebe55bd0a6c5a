"""The path in the limit of small starts: a list of events in closed form.

As the network's start scale goes to zero, its path becomes a sequence of events. Let ``g_l`` be minus the gradient of
the loss on group l at the current model, and ``c_l`` the weight of the group.

- A sleeping group accumulates ``s_l``, the integral of ``norm(g_l) / c_l`` over time, and wakes when it reaches 1.
- The awake groups move to the minimiser of the loss on them at once, and stay there until the next event.

The next group to wake is the one with the least ``(1 - s_l) c_l / norm(g_l)``. There is no step size, no start scale
and nothing to iterate (docs/theory.md has the derivation).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.validation import FloatArray

__all__ = ["EventPath", "Objective"]

# Rates below this share of the initial ones are round-off error: nothing is left to explain.
EXHAUSTED = 1e-7

# Waiting times that differ by less than this are a tie, and the group listed first wins: round-off error must not
# decide the order. TIE is relative; DIGITS is the precision of the sums, and of the rates relative to the initial ones.
TIE, DIGITS = 1e-10, 1e-12


class Objective(ABC):
    """A loss on some rows, at its minimiser on the awake groups.

    Attributes
    ----------
    n_groups : int
        The number of groups, awake and sleeping.
    separated : sequence of bool
        Whether the minimum lies at infinity, for each model so far; empty if the loss always has a finite minimum.
    """

    n_groups: int
    separated: Sequence[bool] = ()

    @abstractmethod
    def gradient_norms(self) -> FloatArray:
        """The norm of the gradient on each group at the current model; shape (n_groups,)."""

    @abstractmethod
    def refit(self, group: int) -> None:
        """Add a group and move to the minimiser on all awake groups."""

    @abstractmethod
    def truncate(self, n_awake: int) -> None:
        """Go back to the minimiser on the first `n_awake` groups that joined."""

    @abstractmethod
    def widen(self, rows: Any) -> None:
        """Continue with a table that has more groups, appended to the present ones."""

    @abstractmethod
    def models(self, first: int, intercept: bool) -> tuple[FloatArray, FloatArray]:
        """The minimisers on the first m groups that joined, for every m >= first, without extra columns.

        Returns
        -------
        W, levels : ndarray, shape (n_models, n_outputs, k) and (n_models, n_outputs)
            Columns of the groups in the order in which they joined.
        """

    def refit_all(self, groups: Sequence[int]) -> None:
        """Add groups one after another."""
        for group in groups:
            self.refit(group)


class EventPath:
    """The events of a path: which group woke, when and how fast.

    Parameters
    ----------
    objective : Objective
    weights : ndarray, shape (n_groups,)
        ``c_l``.
    positions : ndarray of int, shape (n_groups,)
        The position of each group among all groups; decides ties.
    awake : iterable of int
        Groups that are awake from the start.

    Attributes
    ----------
    groups : list of int
        The awake groups, in the order in which they woke up.
    times : list of float
        When each woke up; zero for groups that were awake from the start.
    speeds : list of float
        The rate of each group when it woke up; zero for groups that were awake from the start.
    sums : ndarray, shape (n_groups,)
        ``s_l``: what each group has accumulated so far.
    """

    def __init__(
        self, objective: Objective, weights: FloatArray, positions: NDArray[np.intp], awake: Iterable[int] = ()
    ) -> None:
        self.objective, self.weights, self.positions = objective, weights, positions
        self.groups = [int(group) for group in awake]
        self.times = [0.0] * len(self.groups)
        self.speeds = [0.0] * len(self.groups)
        self.time = 0.0
        self.sums: FloatArray = np.zeros(objective.n_groups)
        self.asleep = np.ones(objective.n_groups, dtype=bool)
        self.asleep[self.groups] = False
        # the rate at the model without groups, even if some are awake from the start
        self.first_rate = float(self.rates().max(initial=0.0))
        self._before: list[FloatArray] = [self.sums] * len(self.groups)
        objective.refit_all(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def rates(self) -> FloatArray:
        """``norm(g_l) / c_l`` of every group at the current model."""
        return self.objective.gradient_norms() / self.weights

    def advance(self) -> bool:
        """Go to the next event; False if nothing is left to explain."""
        rate = self.rates()
        rate[~self.asleep] = 0.0
        live = rate > EXHAUSTED * self.first_rate
        if not live.any():
            return False
        wait = np.empty(rate.size)
        wait.fill(np.inf)
        np.divide(np.maximum(1.0 - self.sums, 0.0), rate, out=wait, where=live)
        first = int(wait.argmin())
        least = float(wait[first])
        slack = TIE * least + DIGITS * (1 + least * self.first_rate) / float(rate[first])
        close = (wait <= least + slack).nonzero()[0]
        group = int(close[np.argmin(self.positions[close])]) if close.size > 1 else int(close[0])
        self._wake(group, self.time + float(wait[group]), float(rate[group]), self.sums + wait[group] * rate)
        return True

    def widen(self, weights: FloatArray, positions: NDArray[np.intp], added: FloatArray) -> None:
        """Append sleeping groups that have accumulated `added`; the objective has them already."""
        self.weights, self.positions = weights, positions
        self.asleep = np.concatenate([self.asleep, np.ones(added.size, dtype=bool)])
        self._before = [np.concatenate([own, added]) for own in self._before]
        self.sums = np.concatenate([self.sums, added])

    def truncate(self, n_events: int) -> None:
        """Go back to just after the first `n_events` events; groups awake from the start count as events."""
        for group in self.groups[n_events:]:
            self.asleep[group] = True
        if n_events < len(self.groups):
            self.sums = self._before[n_events]
        del self.groups[n_events:], self.times[n_events:], self.speeds[n_events:], self._before[n_events:]
        self.time = self.times[-1] if self.times else 0.0
        self.objective.truncate(n_events)

    def close(self) -> None:
        """Release the objective: no event follows."""
        del self.objective

    def _wake(self, group: int, time: float, speed: float, sums: FloatArray) -> None:
        self.objective.refit(group)
        self._before.append(self.sums)
        self.sums = sums
        self.groups.append(group)
        self.times.append(time)
        self.speeds.append(speed)
        self.time = time
        self.asleep[group] = False
