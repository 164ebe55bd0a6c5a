"""Concordance: how often the row with the higher predicted risk has its event first."""

from __future__ import annotations

from typing import Literal

import numpy as np

from covey.losses.risk_sets import EVENT, START, STOP, STRATUM
from covey.validation import FloatArray

__all__ = ["concordance_index", "kaplan_meier"]

# A weight at risk below this share of all weight is the round-off error of a difference of sums.
ROUNDING = 1e-12


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
            before = _Before(times, place, rows[events, STOP], np.ones(events.size))
            total, lower, upto = before.weights(risk[members], weight[members], risk[events])
            right += sign * float(scale @ (lower + upto) / 2)
            pairs += sign * float(scale @ total)
    if pairs <= 0:
        raise ValueError("No two rows can be compared: there is no event with another row at risk after it.")
    return right / pairs


class _Before:
    """Points and queries in one order: latest first, then by place."""

    def __init__(self, points: FloatArray, place: FloatArray, queries: FloatArray, query_place: FloatArray) -> None:
        self.n_points = points.size
        keys = np.concatenate([points, queries]), np.concatenate([place, query_place])
        self.order = np.lexsort((keys[1], -keys[0]))

    def weights(
        self, values: FloatArray, weight: FloatArray, limits: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The weight of the points before each query: all, those of lesser value, and those of no greater value."""
        n, n_points = self.order.size, self.n_points
        point = self.order < n_points
        mass = np.zeros(n)
        mass[point] = weight[self.order[point]]
        ranks = np.unique(np.concatenate([values, limits]), return_inverse=True)[1][self.order]
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
        out[:, self.order[~point] - n_points] = np.stack([total, lower, upto])[:, ~point]
        return out[0], out[1], out[2]


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
