"""ValidationStop: follow the error on held-out rows while the path runs, and end it when the best is behind."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from covey.designs import as_design
from covey.engine.recorder import Snapshot
from covey.validation import FloatArray, as_response, as_sample_weight, positive

__all__ = ["ValidationStop"]

# Groups that rise without lowering the best error, before the path is given up. With three, the choice was that of
# paths run to their end on every problem of the benchmark; with one and a half, noisy ones were given up before the
# last true groups had risen.
PATIENCE = 3.0

# The time chosen is the first one whose error is within this share of the least: on a plateau groups wake that
# change the error by less than the validation rows can tell.
PARSIMONY = 3e-3

# An improvement below this share of the best error does not renew the patience: on a plateau the error goes on
# falling in the last digits for ever.
LEAST_IMPROVEMENT = 1e-3


class ValidationStop:
    """A stop rule for `group_path`: mean squared error on held-out rows, with patience counted in groups.

    The error stands still for long times between wake-ups, so patience in iterations stops too early. Here it is
    counted in groups that have risen (`Snapshot.n_risen`) since the error last fell.

    Parameters
    ----------
    X, y : the held-out rows
        Only the columns of groups that have woken up are ever read.
    sample_weight : array-like or None
    patience : float
        Groups that may rise without an improvement; infinity never stops.

    Attributes
    ----------
    times, errors : list
        Every recorded time and its error.
    best_time : int
        The first recorded time whose error is within 0.3% of the least.
    best_error : float
        The least error.
    """

    def __init__(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, *, patience: float = PATIENCE
    ) -> None:
        self.design = as_design(X, name="the held-out X")
        n = self.design.shape[0]
        self.y = as_response(y, n, name="the held-out y")
        self.q = as_sample_weight(sample_weight, n)
        self.patience = np.inf if patience == np.inf else positive(patience, "patience")
        self.times: list[int] = []
        self.errors: list[float] = []
        self.best_error = np.inf
        self._renewed_at = 0.0
        self._columns: FloatArray = np.empty((n, 0), order="F")
        # squares of a response of 1e200 overflow
        largest = float(np.abs(self.y).max())
        self._unit = largest if largest > 0 else 1.0

    def __call__(self, snapshot: Snapshot) -> bool:
        """Whether the best is behind."""
        known = self._columns.shape[1]
        if snapshot.columns.size > known:
            new = self.design.take(snapshot.columns[known:])
            self._columns = np.concatenate([self._columns, new], axis=1)
        residual = (self.y - self._columns[:, : snapshot.coef.size] @ snapshot.coef - snapshot.intercept) / self._unit
        error = float(self.q @ (residual * residual)) * self._unit**2
        self.times.append(snapshot.time)
        self.errors.append(error)
        if not error >= self.best_error * (1 - LEAST_IMPROVEMENT):
            self._renewed_at = snapshot.n_risen
        self.best_error = min(self.best_error, error)
        return snapshot.n_risen - self._renewed_at >= self.patience

    @property
    def best_time(self) -> int:
        """The first recorded time whose error is within 0.3% of the least."""
        good = np.asarray(self.errors) <= self.best_error * (1 + PARSIMONY)
        return self.times[int(np.argmax(good))]
