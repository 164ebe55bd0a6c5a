"""Lower bounds of survival times: conformal prediction with weights for censoring.

The score of an event is the cumulative hazard of its row at its time, by the model and baseline of the fold that did
not have the row; few rows die while theirs is small. Of a censored row it is only known that it lived so long, so that
an event counts with the inverse probability of being uncensored just before it: for the rows that were censored by
then, too. That is right if censoring does not depend on the columns of X.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covey.estimators.steps import StepFunction
from covey.losses import Cox
from covey.losses.risk_sets import EVENT, STOP, STRATUM
from covey.search.held_out import HeldOut
from covey.validation import FloatArray

__all__ = ["Baselines", "survival_bounds"]


@dataclass(frozen=True)
class Baselines:
    """The baseline hazards of the folds' models, at the events of the baseline of all rows."""

    # The time of each event and the position of its stratum, by stratum and time; shape (n_events,)
    times: FloatArray
    strata: NDArray[np.intp]
    hazards: FloatArray  # cumulative within each stratum; shape (n_folds, n_events)

    @classmethod
    def of(cls, increments: FloatArray, times: FloatArray, strata: NDArray[np.intp]) -> Baselines:
        """Baselines from the hazards of single events; shape (n_folds, n_events)."""
        total = np.cumsum(increments, axis=1)
        first = np.searchsorted(strata, strata)  # the first event of the same stratum
        before = np.where(first > 0, total[:, first - 1], 0.0)
        return cls(times, strata, np.maximum(total - before, 0.0))

    @classmethod
    def without_folds(
        cls, loss: Cox, y: FloatArray, weight: FloatArray, eta: FloatArray, trained: NDArray[np.bool_],
        times: FloatArray, strata: NDArray[np.intp],
    ) -> Baselines:  # fmt: skip
        """Breslow's estimates on the rows that each fold's model was fitted on."""
        increments = np.zeros((trained.shape[1], times.size))
        for k, rows in enumerate(trained.T):
            which, found = loss.on(y, np.where(rows, weight, 0.0)).hazards(eta[:, k, 0])
            for code in np.unique(y[which, STRATUM]):
                at, there = np.flatnonzero(strata == code), y[which, STRATUM] == code
                increments[k, at[np.searchsorted(times[at], y[which[there], STOP])]] = found[there]
        return cls.of(increments, times, strata)

    def scores(
        self, y: FloatArray, eta: FloatArray, rows: FloatArray, held_out: NDArray[np.bool_], uncensored: FloatArray
    ) -> list[tuple[FloatArray, FloatArray]]:
        """The scores of the events of every fold, and their weights, with the chance of being uncensored by then."""
        out: list[tuple[FloatArray, FloatArray]] = []
        for k, at in enumerate(held_out.T):
            events = np.flatnonzero(at & (y[:, EVENT] > 0) & (uncensored > 0))
            scores = np.zeros(events.size)
            for code in np.unique(y[events, STRATUM]):
                here, there = self.strata == code, y[events, STRATUM] == code
                hazard = StepFunction(self.times[here], self.hazards[k, here], 0.0)
                scores[there] = hazard(y[events[there], STOP])
            scores *= np.exp(eta[events, k, 0])
            out.append((scores[:, None], rows[events] / uncensored[events]))
        return out


def survival_bounds(
    held_out: HeldOut, baselines: Baselines, eta: FloatArray, codes: NDArray[np.intp], level: float
) -> FloatArray:
    """The first event time at which more held-out rows have died than the level allows, or the last of all.

    `eta` has the log risks by all fold models, shape (n_rows, n_folds), `codes` the positions of the rows' strata, and
    `level` is the share of rows that shall live at least as long as their bound.
    """
    allowed, risk, out = held_out.n_rows - held_out.needed(level), np.exp(eta), np.empty(len(eta))
    for code in np.unique(codes):
        here, there = baselines.strata == code, codes == code
        times = np.concatenate([[0.0], baselines.times[here]])
        hazards = np.concatenate([np.zeros((len(baselines.hazards), 1)), baselines.hazards[:, here]], axis=1)
        first, last = np.zeros(there.sum(), dtype=np.intp), np.full(there.sum(), times.size - 1)
        while (first < last).any():
            middle = (first + last) // 2
            enough = held_out.upto(hazards[:, middle].T * risk[there]) > allowed
            first, last = np.where(enough, first, np.minimum(middle + 1, last)), np.where(enough, middle, last)
        out[there] = times[last]
    return out
