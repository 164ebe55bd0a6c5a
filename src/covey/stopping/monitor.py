"""Monitor: follow the error on some rows while a path runs, and end it when the best is behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covey.engine import Snapshot
from covey.validation import FloatArray

__all__ = ["IMPROVEMENT", "PATIENCE", "Monitor"]

# Groups that rise without lowering the error before a path is given up.
PATIENCE = 3.0

# A longer path may be right about a group ten times weaker than any so far; after one such group rose in vain, not.
LATE_FACTOR, LATE_PATIENCE = 10, 1.0

# With every group awake there is nobody to count; three times the best time sees the slow directions settle.
FINAL_FACTOR = 3

# An improvement below this share is none: errors creep down for ever as the last directions settle. Nor is one below
# the second share of the first score: without noise the error falls towards zero for ever.
IMPROVEMENT, NEGLIGIBLE = 1e-5, 1e-8


class Monitor:
    """A stop rule for `group_path`: the weighted mean squared error on some rows of X, or a score made of it.

    Parameters
    ----------
    X, y, weight
        Rows of weight zero are not looked at.
    patience : float
        In groups that have risen (`Snapshot.n_risen`).
    n_groups : int
        The number of groups in all.
    score : callable ``(mean_square, snapshot) -> float``, optional
        What to minimise instead of the mean square.

    Attributes
    ----------
    times, errors : list of float
        Every recorded time and its mean square.
    best_time, best_score : float
        The earliest time of the least score.
    """

    def __init__(
        self,
        X: Any,
        y: FloatArray,
        weight: FloatArray,
        patience: float,
        n_groups: int,
        score: Callable[[float, Snapshot], float] | None = None,
    ) -> None:
        self.rows = np.flatnonzero(weight > 0)
        self.X = X
        self.share = weight[self.rows] / weight[self.rows].sum()
        # squares of a response of 1e200 overflow, so errors are taken in this unit
        self.unit = float(np.abs(y[self.rows]).max()) or 1.0
        self.y = y[self.rows] / self.unit
        self.patience = patience
        self.n_groups = n_groups
        self.score = score
        self.times: list[float] = []
        self.errors: list[float] = []
        self.best_time, self.best_score = 0.0, np.inf
        self._first_score = 0.0
        self._risen_at_best = 0.0
        self._first_wake = 0.0
        self._block = np.empty((self.rows.size, 16))
        self._width = 0

    def __call__(self, snapshot: Snapshot) -> bool:
        """Note the error; True once the best time lies far enough back."""
        self._fetch(snapshot.columns)
        fitted = self._block[:, : self._width] @ (snapshot.coef / self.unit) + snapshot.intercept / self.unit
        error = float(self.share @ (self.y - fitted) ** 2) * self.unit**2
        self.times.append(float(snapshot.time))
        self.errors.append(error)
        score = error if self.score is None else self.score(error, snapshot)
        if len(self.times) == 1:
            self.best_time, self.best_score, self._first_score = float(snapshot.time), score, score
        elif score < self.best_score - max(IMPROVEMENT * abs(self.best_score), NEGLIGIBLE * abs(self._first_score)):
            self.best_time, self.best_score = float(snapshot.time), score
            self._risen_at_best = snapshot.n_risen
        if snapshot.n_woken > 0 and self._first_wake == 0:
            self._first_wake = snapshot.time
        since = max(self.best_time, self._first_wake)
        in_vain = snapshot.n_risen - self._risen_at_best
        late = snapshot.time > LATE_FACTOR * since and in_vain >= LATE_PATIENCE
        final = snapshot.n_woken == self.n_groups and snapshot.time > FINAL_FACTOR * since
        return in_vain >= self.patience or late or final

    def _fetch(self, columns: NDArray[np.intp]) -> None:
        """Read the columns of groups that have woken up since; earlier ones never move."""
        new = columns[self._width :]
        if new.size == 0:
            return
        if columns.size > self._block.shape[1]:
            wider = np.empty((self.rows.size, max(columns.size, 2 * self._block.shape[1])))
            wider[:, : self._width] = self._block[:, : self._width]
            self._block = wider
        self._block[:, self._width : columns.size] = self.X[np.ix_(self.rows, new)]
        self._width = columns.size

    def scores(self) -> pd.DataFrame:
        """The error at each time that was looked at."""
        return pd.DataFrame({"time": self.times, "mse": self.errors})
