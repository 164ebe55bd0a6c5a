"""Risk sets: the partial likelihood of survival times on given rows.

At every event time the rows at risk are those with ``start < time <= stop`` in the same stratum. Let ``r_i = weight_i
exp(eta_i)``, S the sum of r over the rows at risk, and D the sum over the d tied events. The loss at this time is

    sum over k = 0 ... d - 1 of  mean weight * log(S - f_k D)   minus   sum over the tied events of weight * eta,

with ``f_k = k / d`` for Efron's treatment of ties and 0 for Breslow's. Rows are sorted once, latest first, so that
every sum over risk sets is a cumulative sum; with left truncation, the sum over rows that enter later is subtracted.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from covey.losses.on_rows import LossOnRows
from covey.losses.segments import Segments
from covey.validation import FloatArray

__all__ = ["START", "STOP", "EVENT", "STRATUM", "RiskSets"]  # noqa: RUF022

# Columns of the response.
START, STOP, EVENT, STRATUM = range(4)

# If subtracting the rows that enter later leaves less than this share of a sum, the difference is summed directly.
CANCELLED = 1e-6

# The exponential of this is close to the largest float64.
LARGEST = 700.0


class _At(NamedTuple):
    """Quantities that all derivatives at a predictor share.

    The logarithms of every row's r (``logs``) and of ``S - f D`` for every step, one per event (``steps``), and every
    row's expected number of events times its weight.
    """

    logs: FloatArray
    steps: FloatArray
    expected: FloatArray


class RiskSets(LossOnRows):
    """The partial likelihood on rows of positive weight.

    Parameters
    ----------
    y : ndarray, shape (n_rows, 4)
        Start (minus infinity for rows at risk from the beginning), stop, 1 for an event and 0 for censoring, and the
        stratum.
    weight : ndarray, shape (n_rows,)
    efron : bool
        Whether ties are treated by Efron's method rather than Breslow's.
    """

    def __init__(self, y: FloatArray, weight: FloatArray, efron: bool) -> None:
        self.n_rows = len(y)
        self._last: tuple[FloatArray, _At] | None = None
        # rows of strata without events are in no risk set
        used = np.flatnonzero(weight > 0)
        used = used[np.isin(y[used, STRATUM], y[used[y[used, EVENT] > 0], STRATUM])]
        self._rows = used[np.lexsort((-y[used, STOP], y[used, STRATUM]))]
        start, stop, event, stratum = y[self._rows].T
        self._weight = np.asarray(weight, dtype=float)[self._rows]
        self._log_weight = np.log(self._weight)
        self._stratum = np.unique(stratum, return_inverse=True)[1]
        self._begins, n_of = np.unique(self._stratum, return_index=True, return_counts=True)[1:]
        self._segments = Segments(n_of)
        # a rank of times that increases from stratum to stratum, and decreases with time within each
        ranks = np.unique(np.concatenate([stop, start]), return_inverse=True)[1].reshape(2, -1)
        stops, starts = (self._stratum + 1) * (2 * stop.size) - ranks

        self._deaths = np.flatnonzero(event > 0)
        times, self._first, self._time, n_tied = np.unique(
            stops[self._deaths], return_index=True, return_inverse=True, return_counts=True
        )
        self._tied: FloatArray = np.bincount(self._time, weights=self._weight[self._deaths]) * 1.0
        self._step_weight = (self._tied / n_tied)[self._time]
        self._share = (np.arange(self._deaths.size) - self._first[self._time]) / n_tied[self._time] * float(efron)
        self._has_ties = bool(self._share.any())
        # the last row at risk at each time
        self._at_risk = np.searchsorted(stops, times, side="right") - 1
        of_time = self._stratum[self._deaths[self._first]]
        self._time_segments = Segments(np.bincount(of_time))
        # the last time at which each row is at risk, and the last time before it entered; `times.size` if there is none
        ends = np.cumsum(np.bincount(of_time))[self._stratum]
        self._until = _before(np.searchsorted(times, stops, side="left"), ends, times.size)
        self._truncated = bool(np.isfinite(start).any())
        if self._truncated:
            self._gone = _before(np.searchsorted(times, starts, side="left"), ends, times.size)
            # sorted by time of entry, rows lie in the same segments
            self._entry = np.argsort(starts, kind="stable")
            last = np.searchsorted(starts[self._entry], times, side="right") - 1
            self._entered = np.where(last >= self._begins[of_time], last, -1)
            self._starts, self._stops, self._times = starts, stops, times
            self._reach = np.stack([self._begins, self._begins + n_of], axis=1)[of_time]

    @property
    def n_events(self) -> int:
        """The number of events among rows of positive weight."""
        return self._deaths.size

    @cached_property
    def saturated(self) -> float:
        """The total of the saturated model, in which every event was certain to be next."""
        return float(self.saturated_values.sum())

    @cached_property
    def saturated_values(self) -> FloatArray:
        """The same, event by event; shape (n_rows,)."""
        return self._by_event(np.log(self._tied[self._time] * (1 - self._share)))

    def values(self, eta: FloatArray) -> FloatArray:
        """The contribution of each event to the total, shared equally among ties; zero for other rows."""
        eta_of_events = np.asarray(eta, dtype=float)[self._rows[self._deaths]]
        values = self._by_event(self._log_steps(eta)[1])
        values[self._rows[self._deaths]] -= _like(self._weight[self._deaths], eta_of_events) * eta_of_events
        return values

    def total(self, eta: FloatArray) -> Any:
        """Minus the log partial likelihood."""
        steps = self._log_steps(eta)[1]
        eta_of_events = np.asarray(eta, dtype=float)[self._rows[self._deaths]]
        total = self._step_weight @ steps - self._weight[self._deaths] @ eta_of_events
        return float(total) if np.ndim(total) == 0 else total

    def deviance(self, eta: FloatArray) -> Any:
        """Twice the excess of the total over `saturated`."""
        return 2 * (self.total(eta) - self.saturated)

    def score(self, eta: FloatArray) -> FloatArray:
        """Martingale residuals times weights: observed minus expected events."""
        score = -self._at(eta).expected
        score[self._deaths] += _like(self._weight[self._deaths], score)
        return self._scattered(score)

    def curvature(self, eta: FloatArray, bounding: bool = False) -> FloatArray:
        """The diagonal of the Hessian, not negative."""
        at = self._at(eta)
        steps = np.log(self._step_weight) - 2 * at.steps
        squares = np.exp(2 * at.logs + self._log_hazard(steps))
        if self._has_ties:
            twice = 2 * self._share - self._share**2
            squares[self._deaths] -= np.exp(2 * at.logs[self._deaths] + self._over_ties(steps, twice))
        return self._scattered(np.maximum(at.expected - squares, 0.0))

    def curvature_product(self, eta: FloatArray, direction: FloatArray) -> FloatArray:
        """The Hessian times a direction."""
        at = self._at(eta)
        along = np.asarray(direction, dtype=float)[self._rows]
        means = self._means(at, along[:, None])[:, 0]
        # changes of the risk sets, scaled so that exponentials do not overflow
        hazards = self._step_weight * means * np.exp(np.minimum(self._level(at)[self._deaths] - at.steps, LARGEST))
        at_times = np.add.reduceat(hazards, self._first)
        sums = np.append(self._time_segments.cumulative(at_times, reverse=True), 0.0)
        changes = sums[self._until] - (sums[self._gone] if self._truncated else 0.0)
        changes[self._deaths] -= np.add.reduceat(hazards * self._share, self._first)[self._time]
        return self._scattered(at.expected * along - np.exp(at.logs - self._level(at)) * changes)

    def gram(self, eta: FloatArray, A: FloatArray, bounding: bool = False) -> FloatArray:
        """``A' H A``: rows weighted by their expected events, minus the means over the risk sets."""
        at = self._at(eta)
        columns = A[self._rows]
        B = columns * np.sqrt(at.expected)[:, None]
        M = self._means(at, columns) * np.sqrt(self._step_weight)[:, None]
        return np.asarray(B.T @ B - M.T @ M)

    def hazards(self, eta: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
        """Breslow's estimate: the weight of events divided by the sum of risks, at each event time.

        Returns
        -------
        rows : ndarray of int, shape (n_times,)
            For each time, a row of the response with its event then; ordered by stratum, latest first.
        increments : ndarray, shape (n_times,)
        """
        logs = self._log_risk(np.asarray(eta, dtype=float)[self._rows] + self._log_weight)
        return self._rows[self._deaths[self._first]], self._tied * np.exp(-logs)

    def _at(self, eta: FloatArray) -> _At:
        """The shared quantities at a predictor, cached because a Newton step needs the score and the Hessian there."""
        if self._last is None or self._last[0].shape != np.shape(eta) or not (self._last[0] == eta).all():
            logs, steps = self._log_steps(eta)
            self._last = np.array(eta, dtype=float), _At(logs, steps, self._expected(logs, steps))
        return self._last[1]

    def _log_steps(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The first two parts of `_At`."""
        given = np.asarray(eta, dtype=float)[self._rows]
        logs = given + _like(self._log_weight, given)
        risk = self._log_risk(logs)
        steps = risk[self._time]
        if self._has_ties:
            tied = np.logaddexp.reduceat(logs[self._deaths], self._first, axis=0)
            share = np.minimum(np.exp(tied - risk), 1.0)[self._time]
            steps = steps + np.log1p(-_like(self._share, share) * share)
        return logs, steps

    def _log_risk(self, logs: FloatArray) -> FloatArray:
        """The log of the sum of r over the rows at risk at each time."""
        risk = self._segments.log_cumulative(logs)[self._at_risk]
        if not self._truncated:
            return risk
        entered = self._segments.log_cumulative(logs[self._entry])
        later = np.concatenate([entered, np.full_like(entered[:1], -np.inf)])[self._entered]
        left = -np.expm1(np.minimum(later - risk, 0.0))
        with np.errstate(divide="ignore"):
            log_sums = risk + np.log(left)
        for t in np.flatnonzero((left < CANCELLED).reshape(len(left), -1).any(axis=1)):
            near = slice(*self._reach[t])
            there = (self._stops[near] <= self._times[t]) & (self._starts[near] > self._times[t])
            log_sums[t] = np.logaddexp.reduce(logs[near][there], axis=0)
        return np.asarray(log_sums)

    def _expected(self, logs: FloatArray, log_steps: FloatArray) -> FloatArray:
        """The last part of `_At`."""
        steps = _like(np.log(self._step_weight), log_steps) - log_steps
        expected = np.exp(logs + self._log_hazard(steps))
        if self._has_ties:
            expected[self._deaths] -= np.exp(logs[self._deaths] + self._over_ties(steps, self._share))
        return np.maximum(expected, 0.0)

    def _log_hazard(self, steps: FloatArray) -> FloatArray:
        """The log of the sum of the steps' exponentials over the times at which each row is at risk."""
        at_times = np.logaddexp.reduceat(steps, self._first, axis=0)
        sums = self._time_segments.log_cumulative(at_times, reverse=True)
        sums = np.concatenate([sums, np.full_like(sums[:1], -np.inf)])
        log_sums = sums[self._until]
        if not self._truncated:
            return np.asarray(log_sums)
        gone, here = sums[self._gone], self._gone != self._until
        left = np.zeros_like(log_sums)
        left[here] = -np.expm1(np.minimum(gone[here] - log_sums[here], 0.0))
        with np.errstate(divide="ignore"):
            log_sums = log_sums + np.log(left)
        for row in np.flatnonzero(here & (left < CANCELLED).reshape(len(left), -1).any(axis=1)):
            log_sums[row] = np.logaddexp.reduce(at_times[self._until[row] : self._gone[row]], axis=0)
        return np.asarray(log_sums)

    def _over_ties(self, steps: FloatArray, factor: FloatArray) -> FloatArray:
        """The log of the sum of the steps' exponentials times a factor over those tied with each event."""
        with np.errstate(divide="ignore"):
            logs = _like(np.log(factor), steps) + steps
        return np.asarray(np.logaddexp.reduceat(logs, self._first, axis=0)[self._time])

    def _level(self, at: _At) -> FloatArray:
        """The largest log r of each row's stratum: exponentials of differences from it cannot overflow."""
        return np.asarray(np.maximum.reduceat(at.logs, self._begins)[self._stratum])

    def _means(self, at: _At, columns: FloatArray) -> FloatArray:
        """Means of columns over the rows at risk at every step; shape (n_events, n_columns)."""
        level = self._level(at)
        weighted = columns * np.exp(at.logs - level)[:, None]
        sums = self._segments.cumulative(weighted)[self._at_risk]
        if self._truncated:
            entered = self._segments.cumulative(weighted[self._entry])
            sums = sums - np.concatenate([entered, np.zeros_like(entered[:1])])[self._entered]
        sums_of_steps = sums[self._time]
        if self._has_ties:
            tied = np.add.reduceat(weighted[self._deaths], self._first, axis=0)
            sums_of_steps = sums_of_steps - self._share[:, None] * tied[self._time]
        return np.asarray(sums_of_steps * np.exp(np.minimum(level[self._deaths] - at.steps, LARGEST))[:, None])

    def _by_event(self, steps: FloatArray) -> FloatArray:
        """Distribute weighted values per step over the rows with events."""
        sums = np.add.reduceat(_like(self._step_weight, steps) * steps, self._first, axis=0)[self._time]
        values = np.zeros((len(self._rows), *steps.shape[1:]))
        values[self._deaths] = sums * _like(self._weight[self._deaths] / self._tied[self._time], steps)
        return self._scattered(values)

    def _scattered(self, values: FloatArray) -> FloatArray:
        out = np.zeros((self.n_rows, *values.shape[1:]))
        out[self._rows] = values
        return out


def _before(place: NDArray[np.intp], end: NDArray[np.intp], none: int) -> NDArray[np.intp]:
    """The place if it lies before the end, else `none`."""
    return np.where(place < end, place, none)


def _like(values: FloatArray, other: FloatArray) -> FloatArray:
    """Values with axes added, to broadcast along the first axis of another array."""
    return values.reshape(-1, *[1] * (other.ndim - 1))
