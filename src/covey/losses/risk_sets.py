"""Risk sets: the partial likelihood of survival times on given rows.

At every event time the rows at risk are those with ``start < time <= stop`` in the same stratum. Let ``r_i = weight_i
exp(eta_i)``, S the sum of r over the rows at risk, and D the sum over the d tied events. The loss at this time is

    sum over k = 0 ... d - 1 of  mean weight * log(S - f_k D)   minus   sum over the tied events of weight * eta,

with ``f_k = k / d`` for Efron's treatment of ties and 0 for Breslow's. Rows are sorted once, latest first, so that
every sum over risk sets is a cumulative sum; with left truncation, the sum over rows that enter later is subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from covey.losses.base import LossOnRows
from covey.validation import FloatArray

__all__ = ["START", "STOP", "EVENT", "STRATUM", "RiskSets", "Segments"]  # noqa: RUF022

# Columns of the response.
START, STOP, EVENT, STRATUM = range(4)

# If subtracting the rows that enter later leaves less than this share of a sum, the difference is summed directly.
CANCELLED = 1e-6

# The exponential of this is close to the largest float64.
LARGEST = 700.0

# Exponentials of numbers further apart than this do not fit into the range of float64.
WIDEST = 600.0


@dataclass
class _At:
    """Quantities that the total and all derivatives at a predictor share.

    Attributes
    ----------
    eta : ndarray
        The predictor.
    logs, risk, steps : ndarray
        The logarithms of every row's r, of S at every time, and of ``S - f D`` for every step, one per event.
    expected : ndarray or None
        Every row's expected number of events times its weight, once it is needed.
    """

    eta: FloatArray
    logs: FloatArray
    risk: FloatArray
    steps: FloatArray
    expected: FloatArray | None = None


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
        self._last: _At | None = None
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
        values = self._by_event(self._at(eta).steps)
        values[self._rows[self._deaths]] -= _like(self._weight[self._deaths], eta_of_events) * eta_of_events
        return values

    def total(self, eta: FloatArray) -> float | FloatArray:
        """Minus the log partial likelihood."""
        eta_of_events = np.asarray(eta, dtype=float)[self._rows[self._deaths]]
        total = self._step_weight @ self._at(eta).steps - self._weight[self._deaths] @ eta_of_events
        return float(total) if np.ndim(total) == 0 else total

    def deviance(self, eta: FloatArray) -> float | FloatArray:
        """Twice the excess of the total over `saturated`."""
        return 2 * (self.total(eta) - self.saturated)

    def score(self, eta: FloatArray) -> FloatArray:
        """Martingale residuals times weights: observed minus expected events."""
        score = -self._hazard(self._at(eta))
        score[self._deaths] += _like(self._weight[self._deaths], score)
        return self._scattered(score)

    def curvature(self, eta: FloatArray, bounding: bool = False) -> FloatArray:
        """The diagonal of the Hessian, not negative; or expected events, a bound that is additive in repeated rows."""
        at = self._at(eta)
        hazard = self._hazard(at)
        return self._scattered(hazard if bounding else np.maximum(hazard - self._hazard(at, 2), 0.0))

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
        return self._scattered(self._hazard(at) * along - np.exp(at.logs - self._level(at)) * changes)

    def gram(self, eta: FloatArray, A: FloatArray, bounding: bool = False) -> FloatArray:
        """``A' H A``: rows weighted by their expected events, minus the means over the risk sets."""
        at = self._at(eta)
        columns = A[self._rows]
        B = columns * np.sqrt(self._hazard(at))[:, None]
        M = self._means(at, columns) * np.sqrt(self._step_weight)[:, None]
        return np.asarray(B.T @ B - M.T @ M)

    def score_by_row(self, eta: FloatArray, A: FloatArray) -> FloatArray:
        """Score residuals (Lin and Wei, 1989): what each row adds to minus the gradient in the coefficients of A.

        They are compared with the means over risk sets, so that rows are nearly independent: products of columns and
        martingale residuals have the same sum, but depend on each other.
        """
        events = np.zeros((len(self._rows), 1))
        events[self._deaths, 0] = self._weight[self._deaths]
        means = self._by_event(self._means(self._at(eta), A[self._rows]))
        moved = np.stack([self.curvature_product(eta, column) for column in A.T], axis=1)
        return np.asarray(A * self._scattered(events) - means - moved)

    def hazards(self, eta: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
        """Breslow's estimate: the weight of events divided by the sum of risks, at each event time.

        Returns
        -------
        rows : ndarray of int, shape (n_times,)
            For each time, a row of the response with its event then; ordered by stratum, latest first.
        increments : ndarray, shape (n_times,)
        """
        return self._rows[self._deaths[self._first]], self._tied * np.exp(-self._at(eta).risk)

    def _at(self, eta: FloatArray) -> _At:
        """The shared quantities, kept for one predictor: Newton's method needs total, score and Hessian there."""
        eta, last = np.asarray(eta, dtype=float), self._last
        if last is not None and last.eta.shape == eta.shape and (last.eta == eta).all():
            return last
        logs = eta[self._rows] + self._log_weight.reshape(-1, *[1] * (eta.ndim - 1))
        risk = self._segments.cumulative(logs, logs=True)[self._at_risk]
        if self._truncated:
            risk = self._without_later(risk, logs)
        steps = risk[self._time]
        if self._has_ties:
            tied = np.logaddexp.reduceat(logs[self._deaths], self._first, axis=0)
            share = np.minimum(np.exp(tied - risk), 1.0)[self._time]
            steps = steps + np.log1p(-_like(self._share, share) * share)
        at = _At(eta.copy(), logs, risk, steps)
        if eta.ndim == 1:
            self._last = at
        return at

    def _without_later(self, risk: FloatArray, logs: FloatArray) -> FloatArray:
        """The log of the sum of r over the rows at risk at each time, without those that enter later."""
        entered = self._segments.cumulative(logs[self._entry], logs=True)
        later = np.concatenate([entered, np.full_like(entered[:1], -np.inf)])[self._entered]
        left = -np.expm1(np.minimum(later - risk, 0.0))
        with np.errstate(divide="ignore"):
            log_sums = risk + np.log(left)
        for t in np.flatnonzero((left < CANCELLED).reshape(len(left), -1).any(axis=1)):
            near = slice(*self._reach[t])
            there = (self._stops[near] <= self._times[t]) & (self._starts[near] > self._times[t])
            log_sums[t] = np.logaddexp.reduce(logs[near][there], axis=0)
        return np.asarray(log_sums)

    def _hazard(self, at: _At, power: int = 1) -> FloatArray:
        """For every row, the weighted sum of ``(r / (S - f D)) ** power`` over the steps at which it is at risk.

        For the steps of a row's event, ``r`` counts with the share ``1 - f`` that is left of it. The first power is the
        row's expected number of events times its weight, which is kept.
        """
        if power == 1 and at.expected is not None:
            return at.expected
        steps = _like(np.log(self._step_weight), at.steps) - power * at.steps
        at_times = np.logaddexp.reduceat(steps, self._first, axis=0)
        sums = self._time_segments.cumulative(at_times, logs=True, reverse=True)
        sums = np.concatenate([sums, np.full_like(sums[:1], -np.inf)])
        log_sums = sums[self._until]
        if self._truncated:
            gone, here = sums[self._gone], self._gone != self._until
            left = np.zeros_like(log_sums)
            left[here] = -np.expm1(np.minimum(gone[here] - log_sums[here], 0.0))
            with np.errstate(divide="ignore"):
                log_sums = log_sums + np.log(left)
            for row in np.flatnonzero(here & (left < CANCELLED).reshape(len(left), -1).any(axis=1)):
                log_sums[row] = np.logaddexp.reduce(at_times[self._until[row] : self._gone[row]], axis=0)
        hazard = np.exp(power * at.logs + log_sums)
        if self._has_ties:
            with np.errstate(divide="ignore"):
                tied = _like(np.log(self._share if power == 1 else 1 - (1 - self._share) ** power), steps) + steps
            over_ties = np.logaddexp.reduceat(tied, self._first, axis=0)[self._time]
            hazard[self._deaths] -= np.exp(power * at.logs[self._deaths] + over_ties)
        if power == 1:
            hazard = at.expected = np.maximum(hazard, 0.0)
        return hazard

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


class Segments:
    """Cumulative sums that restart in every segment of the first axis, as sums over risk sets do in every stratum.

    Segments of similar length are laid side by side in one padded table, so that a thousand strata of a few rows each
    take as many numpy calls as one stratum of a thousand rows.

    Parameters
    ----------
    lengths : ndarray of int
        All positive.
    """

    def __init__(self, lengths: NDArray[np.intp]) -> None:
        self.n = int(lengths.sum())
        self.single = lengths.size == 1
        # the position of each entry of a table; n beyond the end of a segment
        self._tables: list[NDArray[np.intp] | None] = [None] if self.single else []
        begins, powers = np.cumsum(lengths) - lengths, np.frexp(lengths)[1]
        for power in () if self.single else np.unique(powers):
            members = np.flatnonzero(powers == power)
            steps = np.arange(lengths[members].max())
            table = begins[members, None] + steps
            self._tables.append(np.where(steps < lengths[members, None], table, self.n))

    def cumulative(self, values: FloatArray, *, logs: bool = False, reverse: bool = False) -> FloatArray:
        """Cumulative sums within each segment; from the end if `reverse`.

        With `logs`, values and results are logarithms, whose exponentials may lie far outside the range of float64.
        """
        turn = slice(None, None, -1 if reverse else 1)
        if not self.single:
            values = np.concatenate([values, np.full((1, *values.shape[1:]), -np.inf if logs else 0.0)])
        out = np.empty_like(values)
        for table in self._tables:
            part = values[table][:, turn]
            if not logs:
                sums = np.cumsum(part, axis=1)
            else:
                largest = part.max(axis=1, keepdims=True)
                finite = np.where(np.isfinite(part), part, largest)
                if (largest - finite.min(axis=1, keepdims=True)).max(initial=0.0) > WIDEST:
                    sums = np.logaddexp.accumulate(part, axis=1)
                else:
                    with np.errstate(divide="ignore"):  # sums may start with zeros
                        sums = largest + np.log(np.cumsum(np.exp(part - largest), axis=1))
            out[table] = sums[:, turn]
        return out[: self.n]
