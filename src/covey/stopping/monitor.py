"""Monitor: follow the error on some rows while a path runs, and end it when the best is behind."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from covey.network import Move, Prospects, Snapshot, Snapshots
from covey.stopping.scorer import PARSIMONY, Scorer
from covey.validation import FloatArray

__all__ = ["PATIENCE", "Monitor", "earliest_least"]

# Groups that rise without lowering the error before a path is given up. Chosen on small problems of
# `benchmarks/peers.py`, where shorter patience gave noisy ones up too early (docs/decisions/0002).
PATIENCE = 3.0

# Where noise groups wake in crowds, each of them a little, it is enough that this many wake and a third of the patience
# rises; but not before as many groups as the patience have risen to advantage.
CROWD, CROWD_SHARE = 12, 1 / 3

# A longer path may be right about a group ten times weaker than any so far; after one such group rose in vain, not.
LATE_FACTOR, LATE_PATIENCE = 10, 1.0

# With every group awake there is nobody to count; three times the best time sees the slow directions settle.
FINAL_FACTOR, FINAL_LEAST = 3, 10

# Where all groups rise together the error falls and rises once.
TOGETHER_FACTOR = 1.5

# An improvement below the first share does not renew the patience: on a plateau the error creeps down for ever. Nor
# does one below the second share of the first score: without noise the error falls towards zero for ever.
IMPROVEMENT, NEGLIGIBLE = 1e-3, 1e-8

# Scores that agree to so many digits are a tie, which the earliest time wins: on a plateau the rest is rounding. Of a
# mean square, so is everything below this share of the first: the response itself has no more digits.
TIE, ROUNDING = 1e-9, 1e-24


def earliest_least(scores: FloatArray, unit: float = 0.0) -> int:
    """The first position of the least score, up to ties; `unit` is the size of a change that matters."""
    least = float(scores.min())
    return int(np.argmax(scores <= least + TIE * max(abs(least), unit)))


# A group next in line is worth waiting for when it lowers the error by so many standard errors of the difference.
DOUBT = 1.5

# What cleaning would make of the model is looked at when this many groups are awake, and then so many times more.
FIRST_LOOK, NEXT_LOOK = 6, 1.25

_STAY = Move(np.empty(0, dtype=np.intp), np.empty(0), 0.0)


class Monitor:
    """A stop rule for `group_path`: the weighted mean squared error on some rows of X, or a score made of it.

    Parameters
    ----------
    scorer : Scorer
    patience : float
        In groups that have risen (`Snapshot.n_risen`).
    n_groups : int
        The number of groups in all.
    score : callable ``(mean_square, snapshot) -> float``, optional
        What to minimise instead of the mean square.
    together : bool
        Whether all groups rise together, from a large start scale: patience is then counted in time.
    overtakes : callable ``(columns, error) -> bool``, optional
        Whether the model of some columns, in the order in which they woke up, is better by far than an error once it
        has been cleaned.
    n_clean : int
        With how many groups, cleaned already, the path begins.

    Attributes
    ----------
    times, errors : list of float
        Every recorded time and its mean square.
    reached : float
        The time up to which the model is known.
    best_time : float
        The earliest time of the least score; of an error, the earliest within 0.3% of the least.
    overtaken : bool
        Whether the path was ended because its model cleaned is better by far.
    """

    def __init__(
        self,
        scorer: Scorer,
        patience: float,
        n_groups: int,
        score: Callable[[float, Snapshot], float] | None = None,
        together: bool = False,
        overtakes: Callable[[NDArray[np.intp], float], bool] | None = None,
        n_clean: int = 0,
    ) -> None:
        self.error_of, self._n_rows = scorer.errors, scorer.n_rows
        self.patience = patience
        self.n_groups = n_groups
        self.score, self.together, self.overtakes = score, together, overtakes
        self.overtaken, self._next_look = False, max(FIRST_LOOK, int(np.ceil(NEXT_LOOK * n_clean)))
        self.times: list[float] = []
        self.errors: list[float] = []
        self.scores: list[float] = []
        self._renewed_score, self._renewed_time = np.inf, 0.0
        self._risen, self._woken = 0.0, 0  # when the patience was last renewed
        self._first_wake = 0.0
        self.reached = 0.0
        self._best: tuple[int, float] | None = None  # for how many scores, and the time chosen

    def __call__(self, snapshot: Snapshot) -> bool:
        """Note the error; True once the best time lies far enough back."""
        error = float(self.error_of(snapshot.columns, snapshot.coef[None, :], np.array([snapshot.intercept]))[0])
        score = error if self.score is None else self.score(error, snapshot)
        return self._note(error, score, snapshot.time, snapshot.n_woken, snapshot.n_risen)

    def stop_among(self, snapshots: Snapshots) -> int:
        """The position of the first of several models at which the best time lies far enough back, or their number."""
        errors = self.error_of(snapshots.columns, snapshots.coefs, snapshots.intercepts)
        times, woken, risen = snapshots.times.tolist(), snapshots.n_woken.tolist(), snapshots.n_risen.tolist()
        for i, error in enumerate(errors.tolist()):
            score = error if self.score is None else self.score(error, snapshots[i])
            if self._note(error, score, times[i], woken[i], risen[i]):
                return i
        return len(snapshots)

    def _note(self, error: float, score: float, time: float, n_woken: int, n_risen: float) -> bool:
        """Note a model; True once the best time lies far enough back."""
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
        """The least improvement that counts as one."""
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
        everyone = self.together or n_woken == self.n_groups
        factor = TOGETHER_FACTOR if self.together else FINAL_FACTOR
        final = everyone and time > factor * since + FINAL_LEAST
        if self.together:
            return final and n_woken > 0
        return bool(in_vain >= self.patience or crowd or late or final)

    def look_ahead(self, prospects: Prospects) -> bool:
        """True when nothing that lies ahead promises to lower the error, or when cleaning would do much more for it.

        A group next in line promises something when its own least squares lowers the error by more than `DOUBT`
        standard errors, and all of them do when they lower it together; and so does one that stands out on the rows
        that are learnt from, of which there are more. Only with the usual patience or less: who asks for more wants to
        see for himself.
        """
        if self.score is not None or self.patience > PATIENCE:
            return False
        if self._is_overtaken(prospects.now):
            self.overtaken = True
            return True
        if prospects.stands_out:
            return False
        ahead = prospects.next
        together = Move(
            np.concatenate([np.empty(0, dtype=np.intp), *(move.columns for move in ahead)]),
            np.concatenate([np.empty(0), *(move.coef for move in ahead)]),
            sum(move.intercept for move in ahead),
        )
        back = [Move(move.columns, -move.coef, -move.intercept) for move in ahead]
        errors = self._errors_after(prospects.now, [_STAY, *prospects.settling, together, *ahead, *back])
        self.reached = prospects.until
        k = len(ahead)
        first, rest, forth, back_again = np.split(errors, [1, errors.size - 2 * k, errors.size - k])
        target = self._renewed_score - self._worthwhile
        # the squared length of a step, from the errors on both sides of it
        squares = np.maximum((forth + back_again) / 2 - first, 0.0)
        doubt = DOUBT * 2 * np.sqrt(max(self._renewed_score, 0.0)) * np.sqrt(squares / self._n_rows)
        return not (bool((rest < target).any()) or bool((forth < np.minimum(target, first - doubt)).any()))

    def _is_overtaken(self, now: Snapshot) -> bool:
        """Whether the present model cleaned is better by far than any so far; looked at now and then."""
        if self.overtakes is None or now.n_woken < self._next_look:
            return False
        self._next_look = int(np.ceil(NEXT_LOOK * now.n_woken))
        return self.overtakes(now.columns, min(self.errors))

    def _errors_after(self, now: Snapshot, moves: list[Move]) -> FloatArray:
        """The error of the present model after each of some moves."""
        named = np.concatenate([now.columns, *(move.columns for move in moves)])
        columns, first, own = np.unique(named, return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        columns, at = columns[order], place[own][now.columns.size :]
        coefs = np.zeros((len(moves), columns.size))
        coefs[:, : now.columns.size] = now.coef
        which = np.repeat(np.arange(len(moves)), [move.columns.size for move in moves])
        # overlapping groups may move a column twice
        np.add.at(coefs, (which, at), np.concatenate([move.coef for move in moves]))
        return self.error_of(columns, coefs, np.array([now.intercept + move.intercept for move in moves]))

    @property
    def best_time(self) -> float:
        """The time to choose."""
        if self._best is None or self._best[0] != len(self.scores):
            self._best = len(self.scores), self._choose()
        return self._best[1]

    def _choose(self) -> float:
        scores = np.asarray(self.scores)
        if self.score is not None:
            return self.times[earliest_least(scores)]
        slack = PARSIMONY * scores.min() + ROUNDING * scores[0]
        return self.times[int(np.argmax(scores <= scores.min() + slack))]
