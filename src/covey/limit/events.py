"""The path in the limit of small starts: a list of events in closed form.

As the start scale of the network goes to zero its path becomes a sequence of events. With ``g_l`` minus the gradient of
the loss on group l at the present model and ``c_l`` the weight of the group,

- a sleeping group adds up ``norm(g_l) / c_l`` over time, starting at 0, and wakes when its sum reaches 1;
- the awake groups are at the minimiser of the loss on them, at once, and stay there until the next event.

So the next event is that of least ``(1 - s_l) c_l / norm(g_l)``: there is no step size, no start scale and nothing to
iterate (docs/theory.md derives it).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.validation import FloatArray

__all__ = ["EventPath", "Objective"]

# Rates below this share of the first ones are rounding: nothing is left to explain.
EXHAUSTED = 1e-7

# Waiting times this close are a tie, which the group that stands first wins: rounding must not decide the order. What a
# group has added up is known to so many digits of one, and rates to so many of the first ones.
TIE, DIGITS = 1e-10, 1e-12


class Objective(ABC):
    """A loss on some rows, at its minimiser on the awake groups.

    Attributes
    ----------
    n_groups : int
        Awake and sleeping ones together.
    separated : sequence of bool
        Whether the minimum of each model so far lies at infinity; empty for a loss of which none does.
    """

    n_groups: int
    separated: Sequence[bool] = ()

    @abstractmethod
    def gradient_norms(self) -> FloatArray:
        """The norm of each group of the gradient at the present model; shape (n_groups,)."""

    @abstractmethod
    def refit(self, group: int) -> None:
        """Let a group join, and go to the minimiser on all that are awake."""

    @abstractmethod
    def truncate(self, n_awake: int) -> None:
        """Go back to the minimiser on the first so many groups that joined."""

    @abstractmethod
    def widen(self, rows: Any) -> None:
        """Go on with the table of more groups, which come after those there were."""

    @abstractmethod
    def models(self, first: int, intercept: bool) -> tuple[FloatArray, FloatArray]:
        """The minimisers on the first m groups that joined, for every m from the first on, without extra columns.

        Returns
        -------
        W, levels : ndarray, shape (n_models, n_outputs, k) and (n_models, n_outputs)
            Columns of the groups in the order in which they joined.
        """

    def refit_all(self, groups: Sequence[int]) -> None:
        """Let groups join one after another."""
        for group in groups:
            self.refit(group)


class EventPath:
    """Groups that wake one after another.

    Parameters
    ----------
    objective : Objective
    weights : ndarray, shape (n_groups,)
        ``c_l``.
    positions : ndarray of int, shape (n_groups,)
        Where each group stands among all groups; decides ties.
    awake : iterable of int
        Groups that are awake from the start.

    Attributes
    ----------
    groups : list of int
        The awake groups, in the order in which they woke up.
    times : list of float
        When; zero for those that were awake from the start.
    speeds : list of float
        What each group added up per time when it woke; zero for those that were awake from the start.
    sums : ndarray, shape (n_groups,)
        ``s_l``: what each group has added up so far.
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
        # of the model without any group, however many are awake from the start
        self.first_rate = float(self.rates().max(initial=0.0))
        self._before: list[FloatArray] = [self.sums] * len(self.groups)
        objective.refit_all(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def rates(self) -> FloatArray:
        """``norm(g_l) / c_l`` of every group at the present model."""
        return self.objective.gradient_norms() / self.weights

    def advance(self) -> bool:
        """Go to the next event; False where nothing is left to explain."""
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
        """Go on with more groups, asleep, that have added up so much; the objective has them already."""
        self.weights, self.positions = weights, positions
        self.asleep = np.concatenate([self.asleep, np.ones(added.size, dtype=bool)])
        self._before = [np.concatenate([own, added]) for own in self._before]
        self.sums = np.concatenate([self.sums, added])

    def truncate(self, n_events: int) -> None:
        """Go back to just after the first so many events, those awake from the start included."""
        for group in self.groups[n_events:]:
            self.asleep[group] = True
        if n_events < len(self.groups):
            self.sums = self._before[n_events]
        del self.groups[n_events:], self.times[n_events:], self.speeds[n_events:], self._before[n_events:]
        self.time = self.times[-1] if self.times else 0.0
        self.objective.truncate(n_events)

    def close(self) -> None:
        """Let go of the objective: no event follows."""
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
