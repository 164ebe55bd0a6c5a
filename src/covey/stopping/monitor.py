"""Monitor: track the error on some rows while a path runs, and end the path once the best model has passed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from covey.designs.scoring import ModelError
from covey.network import Snapshot, Snapshots, StopRule
from covey.validation import FloatArray

__all__ = ["PATIENCE", "Monitor", "earliest_least"]

# The path ends after this many groups have risen without lowering the error. Chosen on small problems of
# `benchmarks/peers.py`, where less patience ended noisy paths too early (docs/decisions/0002).
PATIENCE = 3.0

# If many noise groups wake up together but rise little, it is enough that this many wake up and a third of the patience
# rises, provided that at least as many groups as the patience have lowered the error before.
CROWD, CROWD_SHARE = 12, 1 / 3

# A path may continue for a group up to ten times weaker than any so far, until one such group rises without effect.
LATE_FACTOR, LATE_PATIENCE = 10, 1.0

# With all groups awake no more can rise; by three times the best time the slow directions have settled.
FINAL_FACTOR, FINAL_LEAST = 3, 10

# A relative improvement below the first value does not renew the patience, since on a plateau the error keeps creeping
# down. Neither does one below the second, relative to the first score, since without noise the error tends to zero.
IMPROVEMENT, NEGLIGIBLE = 1e-3, 1e-8

# Scores within this relative tolerance are ties, broken by the earliest time: on a plateau they differ by round-off
# error only. So do mean squares below the second value, relative to the first, because of the response's own precision.
TIE, ROUNDING = 1e-9, 1e-24


# The first time with an error within this share of the least is chosen: on a plateau, groups wake up that change the
# error by less than held-out rows can detect.
PARSIMONY = 3e-3


def earliest_least(scores: FloatArray, unit: float = 0.0) -> int:
    """The index of the first minimal score, up to ties; `unit` is the size of a change that matters."""
    least = float(scores.min())
    return int(np.argmax(scores <= least + TIE * max(abs(least), unit)))


class Monitor(StopRule):
    """Ends a path once its error on some rows, or a score made of it, has not improved for long enough.

    Parameters
    ----------
    error_of : ModelError
        The weighted mean squared error of linear models on the validation rows.
    patience : float
        Counted in groups that have risen (`Snapshot.n_risen`).
    n_groups : int
        The total number of groups.
    score : callable ``(mean_square, snapshot) -> float``, optional
        What to minimise instead of the mean square.

    Attributes
    ----------
    times, errors : list of float
        Every recorded time and its mean square.
    reached : float
        The time up to which models are known.
    best_time : float
        The earliest time with the least score; for an error, the earliest within 0.3% of the least.
    """

    def __init__(
        self,
        error_of: ModelError,
        patience: float,
        n_groups: int,
        score: Callable[[float, Snapshot], float] | None = None,
    ) -> None:
        self.error_of, self.patience, self.n_groups, self.score = error_of, patience, n_groups, score
        self.times: list[float] = []
        self.errors: list[float] = []
        self.scores: list[float] = []
        self._renewed_score, self._renewed_time = np.inf, 0.0
        self._risen, self._woken = 0.0, 0  # when the patience was last renewed
        self._first_wake = 0.0
        self.reached = 0.0

    def stop_at(self, snapshot: Snapshot) -> bool:
        """Record the error; True once the best time lies far enough back."""
        error = float(self.error_of(snapshot.columns, snapshot.coef[None, :], np.array([snapshot.intercept]))[0])
        score = error if self.score is None else self.score(error, snapshot)
        return self._note(error, score, snapshot.time, snapshot.n_woken, snapshot.n_risen)

    def stop_among(self, snapshots: Snapshots) -> int:
        """The index of the first of several models at which to stop, or their number."""
        errors = self.error_of(snapshots.columns, snapshots.coefs, snapshots.intercepts)
        times, woken, risen = snapshots.times.tolist(), snapshots.n_woken.tolist(), snapshots.n_risen.tolist()
        for i, error in enumerate(errors.tolist()):
            score = error if self.score is None else self.score(error, snapshots[i])
            if self._note(error, score, times[i], woken[i], risen[i]):
                return i
        return len(snapshots)

    def _note(self, error: float, score: float, time: float, n_woken: int, n_risen: float) -> bool:
        """Record a model; True once the best time lies far enough back."""
        self.times.append(float(time))
        self.errors.append(error)
        self.scores.append(score)
        if n_woken > 0 and self._first_wake == 0:
            self._first_wake = time
        self.reached = time
        if len(self.times) == 1 or score < self._renewed_score - self._worthwhile:
            self._renewed_score, self._renewed_time = score, time
            self._risen, self._woken = n_risen, n_woken
        return self._given_up(time, n_woken, n_risen)

    @property
    def _worthwhile(self) -> float:
        """The smallest improvement that counts."""
        return max(IMPROVEMENT * abs(self._renewed_score), NEGLIGIBLE * abs(self.scores[0]))

    def _given_up(self, time: float, n_woken: int, n_risen: float) -> bool:
        in_vain = n_risen - self._risen
        since = max(self._renewed_time, self._first_wake)
        crowd = (
            n_woken - self._woken >= CROWD * self.patience / PATIENCE
            and self._risen >= self.patience
            and in_vain >= CROWD_SHARE * self.patience
        )
        late = time > LATE_FACTOR * since and in_vain >= LATE_PATIENCE
        final = n_woken == self.n_groups and time > FINAL_FACTOR * since + FINAL_LEAST
        return bool(in_vain >= self.patience or crowd or late or final)

    @property
    def best_time(self) -> float:
        """The time to choose."""
        scores = np.asarray(self.scores)
        if self.score is not None:
            return self.times[earliest_least(scores)]
        slack = PARSIMONY * scores.min() + ROUNDING * scores[0]
        return self.times[int(np.argmax(scores <= scores.min() + slack))]
