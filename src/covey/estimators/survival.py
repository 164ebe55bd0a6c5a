"""Curves of survival: step functions, Kaplan-Meier estimates, concordance, and lower bounds of survival times.

A bound is conformal prediction with weights for censoring. The score of an event is the cumulative hazard of its row at
its time, by the model and baseline of the fold that did not have the row; few rows die while theirs is small. Of a
censored row it is only known that it lived so long, so that an event counts with the inverse probability of being
uncensored just before it: for the rows that were censored by then, too. That is right if censoring does not depend on
the columns of X.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covey.losses.cox import Cox
from covey.losses.risk_sets import EVENT, START, STOP, STRATUM
from covey.search.held_out import HeldOut
from covey.validation import FloatArray

# A weight at risk below this share of all weight is the round-off error of a difference of sums.
ROUNDING = 1e-12


@dataclass(frozen=True)
class StepFunction:
    """A step function, continuous from the right.

    Attributes
    ----------
    x, y : ndarray, shape (n_times,)
        Ascending times, and the value from each time on.
    before : float
        The value before the first time. After the last time the function is constant.

    Examples
    --------
    >>> StepFunction(np.array([1.0, 2.0]), np.array([0.9, 0.5]), before=1.0)([0.5, 1.0, 7.0]).tolist()
    [1.0, 0.9, 0.5]
    """

    x: FloatArray
    y: FloatArray
    before: float

    @property
    def domain(self) -> tuple[float, float]:
        """The first and last time at which the function is known."""
        return 0.0, float(self.x[-1])

    def __call__(self, times: ArrayLike) -> Any:
        """The values at some times."""
        given = np.asarray(times, dtype=float)
        values = np.concatenate([[self.before], self.y])[np.searchsorted(self.x, given, side="right")]
        return values if given.ndim else float(values)

    def __repr__(self) -> str:
        return f"StepFunction({self.x.size} steps up to time {self.x[-1]:g})"


def kaplan_meier(rows: FloatArray, weight: FloatArray, *, of_censoring: bool = False) -> tuple[FloatArray, FloatArray]:
    """The times of events, or of censoring, and the Kaplan-Meier estimate of being without one from each of them on.

    >>> rows = np.array([[-np.inf, t, e, 0.0] for t, e in [(1.0, 1.0), (2.0, 0.0), (3.0, 1.0), (4.0, 0.0)]])
    >>> at, left = kaplan_meier(rows, np.ones(4))
    >>> at.tolist(), left.tolist()
    ([1.0, 3.0], [0.75, 0.375])
    """
    event = rows[:, EVENT] > 0
    counted = (event != of_censoring) & (weight > 0)
    at, position = np.unique(rows[counted, STOP], return_inverse=True)
    mass = np.bincount(position, weights=weight[counted], minlength=at.size)
    # at risk: rows that have entered before the time, minus those that have left before it
    at_risk = _weight_before(at, rows[:, START], weight) - _weight_before(at, rows[:, STOP], weight)
    if of_censoring:  # events come first at the same time: their rows are not at risk of being censored
        leaving = at, rows[event, STOP], weight[event]
        at_risk -= _weight_before(*leaving, side="right") - _weight_before(*leaving)
    left = at_risk - mass
    left[left < ROUNDING * weight.sum()] = 0.0
    return at, np.cumprod(left / (left + mass))


def _weight_before(
    at: FloatArray, points: FloatArray, weight: FloatArray, side: Literal["left", "right"] = "left"
) -> FloatArray:
    """The total weight of the points before each time, or up to it with the side "right"."""
    order = np.argsort(points, kind="stable")
    return np.concatenate([[0.0], np.cumsum(weight[order])])[np.searchsorted(points[order], at, side=side)]


def concordance_index(
    rows: FloatArray, risk: FloatArray, weight: FloatArray, event_weight: FloatArray | None = None
) -> float:
    """The share of comparable pairs in the right order; ties in risk count one half.

    A pair in the same stratum is comparable if one row has its event while the other is at risk and does not have an
    event at that time. This is Harrell's concordance; with event weights it is Uno's.
    `rows` has start, stop, event and stratum; an event weight is that of pairs in which the row has its event first.

    >>> y = np.array([[-np.inf, t, 1.0, 0.0] for t in (1.0, 2.0, 3.0)])
    >>> round(concordance_index(y, np.array([2.0, 3.0, 1.0]), np.ones(3)), 4)
    0.6667
    """
    right = pairs = 0.0
    for stratum in np.unique(rows[:, STRATUM]):
        members = np.flatnonzero(rows[:, STRATUM] == stratum)
        events = members[rows[members, EVENT] > 0]
        scale = weight[events] if event_weight is None else weight[events] * event_weight[events]
        # latest first; at the same time, rows without an event come before the query, and rows with one after it
        sides = [(rows[members, STOP], rows[members, EVENT] * 2.0, 1.0)]
        if np.isfinite(rows[members, START]).any():
            # a row that entered at the time of an event or later was not at risk
            sides.append((rows[members, START], np.zeros(members.size), -1.0))
        for times, place, sign in sides:
            place = np.concatenate([place, np.ones(events.size)])
            order = np.lexsort((place, -np.concatenate([times, rows[events, STOP]])))
            total, lower, upto = _weights_before(order, risk[members], weight[members], risk[events])
            right += sign * float(scale @ (lower + upto) / 2)
            pairs += sign * float(scale @ total)
    if pairs <= 0:
        raise ValueError("No two rows can be compared: there is no event with another row at risk after it.")
    return right / pairs


def _weights_before(
    order: NDArray[np.intp], values: FloatArray, weight: FloatArray, limits: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The weight of the points before each query: all, those of lesser value, and those of no greater value.

    Points have values and weights, queries have limits of values, and `order` has the points and then the queries.
    """
    n, n_points = order.size, values.size
    point = order < n_points
    mass = np.zeros(n)
    mass[point] = weight[order[point]]
    ranks = np.unique(np.concatenate([values, limits]), return_inverse=True)[1][order]
    total, lower, upto = np.cumsum(mass), np.zeros(n), np.zeros(n)
    # in every two neighbouring runs of length 1, 2, 4, ..., points of the first come before queries of the second
    length, place = 1, np.arange(n)
    while length < n:
        second = (place // length) % 2 == 1
        pair = place // (2 * length)
        first, later = point & ~second, ~point & second
        keys = pair[first] * (2 * n) + ranks[first]
        sort = np.argsort(keys, kind="stable")
        keys, sums = keys[sort], np.concatenate([[0.0], np.cumsum(mass[first][sort])])
        begin = sums[np.searchsorted(keys, pair[later] * (2 * n))]
        at = pair[later] * (2 * n) + ranks[later]
        lower[later] += sums[np.searchsorted(keys, at, side="left")] - begin
        upto[later] += sums[np.searchsorted(keys, at, side="right")] - begin
        length *= 2
    out = np.empty((3, n - n_points))
    out[:, order[~point] - n_points] = np.stack([total, lower, upto])[:, ~point]
    return out[0], out[1], out[2]


def cumulated(increments: FloatArray, strata: NDArray[np.intp]) -> FloatArray:
    """Cumulative hazards within each stratum, from those of single events; shape (n_folds, n_events) of both."""
    total = np.cumsum(increments, axis=1)
    first = np.searchsorted(strata, strata)  # the first event of the same stratum
    before = np.where(first > 0, total[:, first - 1], 0.0)
    return np.maximum(total - before, 0.0)


def fold_hazards(
    loss: Cox, y: FloatArray, weight: FloatArray, eta: FloatArray, trained: NDArray[np.bool_], times: FloatArray,
    strata: NDArray[np.intp],
) -> FloatArray:  # fmt: skip
    """Cumulative baseline hazards on the rows that each fold's model was fitted on; shape (n_folds, n_events).

    `times` and `strata` are those of the events of all rows, by stratum and time.
    """
    increments = np.zeros((trained.shape[1], times.size))
    for k, rows in enumerate(trained.T):
        which, found = loss.on(y, np.where(rows, weight, 0.0)).hazards(eta[:, k, 0])
        for code in np.unique(y[which, STRATUM]):
            at, there = np.flatnonzero(strata == code), y[which, STRATUM] == code
            increments[k, at[np.searchsorted(times[at], y[which[there], STOP])]] = found[there]
    return cumulated(increments, strata)


def event_scores(
    hazards: FloatArray, times: FloatArray, strata: NDArray[np.intp], y: FloatArray, eta: FloatArray, rows: FloatArray,
    held_out: NDArray[np.bool_], uncensored: FloatArray,
) -> list[tuple[FloatArray, FloatArray]]:  # fmt: skip
    """The scores of the events of every fold, and their weights, with the chance of being uncensored by then."""
    out: list[tuple[FloatArray, FloatArray]] = []
    for k, at in enumerate(held_out.T):
        events = np.flatnonzero(at & (y[:, EVENT] > 0) & (uncensored > 0))
        scores = np.zeros(events.size)
        for code in np.unique(y[events, STRATUM]):
            here, there = strata == code, y[events, STRATUM] == code
            scores[there] = StepFunction(times[here], hazards[k, here], 0.0)(y[events[there], STOP])
        scores *= np.exp(eta[events, k, 0])
        out.append((scores[:, None], rows[events] / uncensored[events]))
    return out


def survival_bounds(
    held_out: HeldOut, hazards: FloatArray, times: FloatArray, strata: NDArray[np.intp], eta: FloatArray,
    codes: NDArray[np.intp], level: float,
) -> FloatArray:  # fmt: skip
    """The first event time at which more held-out rows have died than the level allows, or the last of all.

    `eta` has the log risks by all fold models, shape (n_rows, n_folds), `codes` the positions of the rows' strata, and
    `level` is the share of rows that shall live at least as long as their bound.
    """
    allowed, risk, out = held_out.n_rows - held_out.needed(level), np.exp(eta), np.empty(len(eta))
    for code in np.unique(codes):
        here, there = strata == code, codes == code
        at = np.concatenate([[0.0], times[here]])
        at_times = np.concatenate([np.zeros((len(hazards), 1)), hazards[:, here]], axis=1)
        first, last = np.zeros(there.sum(), dtype=np.intp), np.full(there.sum(), at.size - 1)
        while (first < last).any():
            middle = (first + last) // 2
            enough = held_out.upto(at_times[:, middle].T * risk[there]) > allowed
            first, last = np.where(enough, first, np.minimum(middle + 1, last)), np.where(enough, middle, last)
        out[there] = at[last]
    return out
