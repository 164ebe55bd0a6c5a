"""Search: the plain path, the path cleaned and run on, and denser networks; judged on the same rows.

The paper's path is one model family among a few that cost little once X has been read:

- *Restarts.* The path never lets a group go. So least squares on the groups that woke up, one group dropped after
  another, gives a cleaner set; the network is then run on from there, the kept groups awake at their fitted values and
  all others asleep at the start scale again.
- *Larger start scales.* Where many small groups explain something together, none of them alone ever wakes early. A
  network with a larger start scale is dense from the start. It is tried when the residuals of the best model so far
  on the judging rows go with what one gradient step on all groups would predict; and where noise is strong, if what is
  found is averaged (`covey.stopping.averaging`).
- *Settling.* Where noise is weak, the model is taken as it would be in the end: least squares on its groups. On the way
  there the same groups give many models, among which the judging rows would choose by luck.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from covey.engine.cleaning import Nested, clean, least_squares
from covey.engine.overlap import added_up
from covey.path import Path, PathState
from covey.preprocess import WorkingProblem, spans
from covey.stopping.base import PathTask, made_once
from covey.stopping.monitor import Monitor
from covey.stopping.scorer import PARSIMONY, Scorer
from covey.validation import FloatArray

__all__ = ["Cleaned", "Found", "Leg", "Trial", "best_leg", "explore", "overtaking", "restart_state", "way_to"]

# Prefixes of the order in which groups woke up, from which cleaning starts, beside the set that was chosen.
PREFIXES = (10, 40)

# Another restart, if there is one left, when the last brought the error down to this share.
WORTH_ANOTHER = 0.98

# A path is cut short when what cleaning makes of it has less than this share of its least error.
OVERTAKEN = 0.8

# Penalties to clean with, where noise is strong: where more than a share of the response is noise to the best model.
RIDGES, NOISY = (0.0, 0.1, 0.3, 1.0), 0.15

# Denser networks run on columns as they are, but for one number a group: within correlated groups, orthonormal
# directions of little variance would count as much as the others, which noise fills; and so would columns that hardly
# vary.
DENSE_SCALING = "block"

# Denser networks are tried when `left_over` exceeds the first of these, which happens by chance once in fifteen times;
# where X has more entries than `FEW_ENTRIES`, and they cost more than all the rest, the second.
LEFT_OVER, LEFT_OVER_MUCH = 1.5, 3.0

# ... or where noise is strong and X has no more entries than this, so that they cost little; to be averaged.
FEW_ENTRIES = 1e6

# ... the densest first, which takes the fewest iterations; and the next only if that one comes this close to the best.
WORTH_GOING_ON = 1.25

# Least squares on more columns than this share of the rows says little.
MOST_COLUMNS = 0.6


@dataclass(frozen=True)
class Trial:
    """Rows to learn from, and rows that judge."""

    task: PathTask
    scorer: Scorer

    @property
    def whole(self) -> Trial | None:
        """The same with common factors left in, where they were taken out."""
        return None if self.scorer.whole is None else Trial(self.task.whole, self.scorer.whole())

    @made_once
    def null_error(self) -> float:
        """The error of the intercept alone, with common factors left in."""
        scorer = self.scorer if self.scorer.whole is None else self.scorer.whole()
        level = self.task.design.standard(self.task.y, self.task.design.weights(self.task.weight), centre=True)[1]
        return float(scorer.errors(np.empty(0, dtype=np.intp), np.empty((1, 0)), np.array([level]))[0])


class Kept(NamedTuple):
    """What is kept of an awake set: the groups, and the ridge with which they are fitted."""

    groups: tuple[int, ...]
    ridge: float

    @property
    def key(self) -> tuple[frozenset[int], float]:
        """The same for the same groups in any order."""
        return frozenset(self.groups), self.ridge

    @property
    def name(self) -> str:
        """How it is fitted."""
        return f"ridge {self.ridge:g} on kept groups" if self.ridge else "least squares on kept groups"


@dataclass(frozen=True)
class Cleaned:
    """Least squares, or a ridge, on what cleaning kept: the best set of one way to clean, as it was judged.

    Attributes
    ----------
    kept : Kept
    columns : ndarray of int
    coef : ndarray
        Coefficients of these columns.
    intercept, error : float
    whole : bool
        Whether common factors were left in X, where there are any.
    """

    kept: Kept
    columns: NDArray[np.intp]
    coef: FloatArray
    intercept: float
    error: float
    whole: bool = False


@dataclass(frozen=True, eq=False)
class Leg:
    """One run of the network, and how its models were judged.

    Attributes
    ----------
    path : Path
    monitor : Monitor
    start : Kept or None
        What it was restarted from.
    before : Leg or None
        The leg that was cleaned for it.
    options : dict
        What differs from the settings of the task.
    at_start : bool
        Whether to take the model that it was restarted from, and not the one that the judging rows chose.
    """

    path: Path
    monitor: Monitor
    start: Kept | None = None
    before: Leg | None = None
    options: dict[str, Any] = field(default_factory=dict)
    at_start: bool = False

    @property
    def dense(self) -> bool:
        """Whether all groups rose together."""
        return "init_scale" in self.options

    @property
    def error(self) -> float:
        """The error at the time that it chose."""
        return self.monitor.errors[self.monitor.times.index(self.time)]

    @property
    def time(self) -> float:
        """The time that it chose."""
        return float(self.path.times[0]) if self.at_start else self.monitor.best_time

    @property
    def model(self) -> tuple[NDArray[np.intp], FloatArray, float]:
        """The model that it chose: columns, their coefficients, and the intercept."""
        return self.path.stored(self.path.index(self.time))

    @property
    def settled(self) -> bool:
        """Whether the chosen model is least squares on its groups."""
        return self.start is not None and self.time == self.path.times[0]

    @property
    def order(self) -> list[int]:
        """Groups in the order in which they woke up; those kept from before come first."""
        return [l for l, _ in self.path.entered]

    @property
    def awake(self) -> list[int]:
        """The groups of the chosen model."""
        return [l for l, t in self.path.entered if t <= self.time]


@dataclass(frozen=True)
class Found:
    """What a search has found.

    Attributes
    ----------
    legs : list of Leg
        The paper's plain path first.
    cleaned : list of Cleaned
    noisy : bool
        Whether noise is strong.
    best : Leg
        The leg whose chosen model is best.
    """

    legs: list[Leg]
    cleaned: list[Cleaned]
    noisy: bool
    best: Leg


def explore(trial: Trial, patience: float) -> Found:
    """Run all legs that the task's search asks for."""
    task = trial.task
    legs = [_run(trial, patience)]
    cleanings: dict[Leg, Cleaning] = {}
    left = task.restarts
    while left > 0:
        last = legs[-1]
        if _cut_short(task, last):
            # what is noise cannot be told
            return Found(legs, _ways(cleanings), False, best_leg(trial, legs))
        cleanings[last] = cleaning = choose_kept(trial, last)
        if cleaning.kept is None or not cleaning.changes:
            break
        legs.append(_restart(trial, patience, last, cleaning.kept))
        # a path that was cut short for it goes on rather than starts again
        left -= not last.monitor.overtaken
        if legs[-1].error >= WORTH_ANOTHER * min(leg.error for leg in legs[:-1]):
            break
    best, noisy = best_leg(trial, legs), is_noisy(trial, legs)
    if task.restarts and not noisy:
        cleaning = cleanings[best] if best in cleanings else choose_kept(trial, best)
        settled = _settle(trial, patience, best, cleaning.kept or Kept(tuple(best.awake), 0.0))
        legs += settled
        best = best_leg(trial, legs) if settled else best
    denser = _denser(trial, patience, legs, best, noisy)
    legs += denser
    best = best_leg(trial, legs) if denser else best
    return Found(legs, _ways(cleanings), is_noisy(trial, legs), best)


def _ways(cleanings: Mapping[Leg, Cleaning]) -> list[Cleaned]:
    return [way for cleaning in cleanings.values() for way in cleaning.ways]


def _cut_short(task: PathTask, leg: Leg) -> bool:
    """Whether the limit on iterations ended a leg."""
    return bool(leg.path.times[-1] >= int(task.options.get("max_iter", 100_000)))


def is_noisy(trial: Trial, legs: Sequence[Leg]) -> bool:
    """Whether more than a share of the response is noise to the best model."""
    return min(leg.error for leg in legs) > NOISY * trial.null_error


def _settle(trial: Trial, patience: float, leg: Leg, kept: Kept) -> list[Leg]:
    """What is kept of a leg's model as it would be in the end; none where there are too many columns to say."""
    problem = trial.task.runner.problem
    columns = int(problem.ranks[list(kept.groups)].sum())
    again = leg.settled and set(kept.groups) == set(leg.awake)
    if again or _cut_short(trial.task, leg) or not 0 < columns <= MOST_COLUMNS * trial.task.n_rows:
        return []
    if leg.start is not None and leg.start.key == kept.key:
        return [replace(leg, at_start=True)]
    return [_restart(trial, patience, leg, kept, rest=True)]


def _denser(trial: Trial, patience: float, legs: Sequence[Leg], best: Leg, noisy: bool) -> list[Leg]:
    """Networks with larger start scales, where they promise something."""
    task = trial.task
    scales = [scale for scale in task.dense_scales if scale > task.init_scale]
    if not scales:
        return []
    if not cheap_average(task, noisy) and left_over(trial, *best.model) <= enough_left(task):
        return []
    dense = replace(trial, task=task.scaled(DENSE_SCALING))
    tried: list[Leg] = []
    for scale in sorted(scales, reverse=True):
        tried.append(_run(dense, patience, init_scale=scale))
        if tried[-1].error > WORTH_GOING_ON * min(leg.error for leg in (*legs, *tried)):
            break
    return tried


def cheap_average(task: PathTask, noisy: bool) -> bool:
    """Whether denser networks are wanted in any case, to be averaged with the others."""
    return noisy and task.average and task.design.reads_columns and _is_small(task)


def enough_left(task: PathTask) -> float:
    """How much `left_over` there must be for denser networks to be worth their time."""
    return LEFT_OVER if _is_small(task) else LEFT_OVER_MUCH


def _is_small(task: PathTask) -> bool:
    n, p = task.design.shape
    return n * p <= FEW_ENTRIES


def way_to(leg: Leg) -> list[Leg]:
    """The legs through which one was come to, itself the last."""
    return [leg] if leg.before is None else [*way_to(leg.before), leg]


def left_over(trial: Trial, columns: NDArray[np.intp], coef: FloatArray, intercept: float) -> float:
    """How well one gradient step on all groups goes with what a model leaves of the judging rows, in standard errors.

    The model is one of X less what factors explain. Where it has found all there is, this is a standard normal number;
    many small groups together show in it although none of them does alone.
    """
    problem, scorer = trial.task.runner.problem, trial.scorer
    if not problem.design.reads_columns:
        return -np.inf
    own, level = trial.task.adjusted_design, np.array([intercept])
    residual = trial.task.response - own.predict(columns, coef[None, :], level)[:, 0]
    step = problem.to_columns(problem.to_working(problem.design.correlate((problem.q * residual)[None, :]))[0])
    if trial.task.groups.overlapping:
        step = np.bincount(trial.task.groups.members, weights=step, minlength=own.shape[1]).astype(float)
    ahead = scorer.design.multiply(step)
    left = scorer.y - scorer.design.predict(columns, coef[None, :], level)[:, 0]
    h = scorer.weight / scorer.weight.sum()
    ahead = _unit(ahead - h @ ahead)
    left = _unit(left)
    size = float((h @ left**2) * (h @ ahead**2))
    return float(h @ (left * ahead)) / np.sqrt(size) * np.sqrt(scorer.n_rows) if size > 0 else -np.inf


def _unit(x: FloatArray) -> FloatArray:
    """A vector whose squares are numbers, whatever its units."""
    return x / (float(np.abs(x).max()) or 1.0)


def best_leg(trial: Trial, legs: Sequence[Leg]) -> Leg:
    """The leg whose chosen model is best; where rows cannot tell, the one with the fewest columns."""
    if len(legs) == 1:
        return legs[0]
    models = [leg.model for leg in legs]
    columns, place = np.unique(np.concatenate([own for own, _, _ in models]), return_inverse=True)
    which = np.repeat(np.arange(len(legs)), [own.size for own, _, _ in models])
    coefs = np.zeros((len(legs), columns.size))
    coefs[which, place] = np.concatenate([coef for _, coef, _ in models])
    intercepts = np.array([level for _, _, level in models])
    # of two on the same columns the one that has settled
    sizes = [(int(np.count_nonzero(row)), not leg.settled) for row, leg in zip(coefs, legs, strict=True)]
    return legs[trial.scorer.simplest(columns, coefs, intercepts, sizes)[0]]


def _monitor(trial: Trial, patience: float, **options: Any) -> Monitor:
    return Monitor(trial.scorer, patience, trial.task.groups.n_groups, **options)


def overtaking(trial: Trial, noisy: bool = True) -> Callable[[NDArray[np.intp], float], bool] | None:
    """Whether columns, cleaned, are better than an error by far, for a path to be cut short; None without restarts.

    `noisy` says whether that may be so where noise is strong to the cleaned model.
    """
    task = trial.task
    if not task.restarts or task.groups.overlapping:
        return None

    def overtakes(columns: NDArray[np.intp], error: float) -> bool:
        problem, labels = task.runner.problem, task.groups.labels[columns]
        order = labels[np.append(True, np.diff(labels) != 0)]
        if problem.ranks[order].sum() > MOST_COLUMNS * task.n_rows:
            return False
        nested = clean(problem, order.tolist(), [order.size])[0]
        least = float(trial.scorer.errors(nested.columns(problem), *nested.coefficients(problem)).min())
        return least < OVERTAKEN * error and (noisy or least <= NOISY * trial.null_error)

    return overtakes


def _run(trial: Trial, patience: float, **options: Any) -> Leg:
    together = "init_scale" in options
    monitor = _monitor(trial, patience, together=together, overtakes=None if together else overtaking(trial))
    return Leg(trial.task.path(stop=monitor, **options), monitor, options=options)


def _restart(trial: Trial, patience: float, leg: Leg, kept: Kept, **settings: Any) -> Leg:
    """Run on from what was kept of a leg."""
    monitor = _monitor(trial, patience, overtakes=overtaking(trial), n_clean=len(kept.groups))
    state = restart_state(trial.task, kept, int(leg.path.times[-1]), leg.path.entered)
    return Leg(trial.task.path(stop=monitor, start=state, **settings), monitor, kept, leg)


def prefix_lengths(task: PathTask, order: Sequence[int], n_chosen: int) -> list[int]:
    """How long the prefixes of an order are from which cleaning starts."""
    columns = np.cumsum(task.runner.problem.ranks[np.array(order, dtype=np.intp)])
    most = int(np.searchsorted(columns, MOST_COLUMNS * task.n_rows, side="right"))
    return sorted({min(m, most) for m in (n_chosen, *PREFIXES, len(order)) if min(m, len(order)) == m} - {0})


class Cleaning(NamedTuple):
    """What cleaning makes of a leg: what to keep, whether that changes anything, and the best of each way to clean."""

    kept: Kept | None
    changes: bool
    ways: list[Cleaned]


def choose_kept(trial: Trial, leg: Leg) -> Cleaning:
    """Clean what a leg has found."""
    lengths = prefix_lengths(trial.task, leg.order, len(leg.awake))
    if not lengths:
        return Cleaning(None, False, [])
    problem, noisy = trial.task.runner.problem, leg.error > NOISY * trial.null_error
    if leg.start is not None and len(leg.path) == 1 and not noisy:
        # it has stayed where it was restarted
        return Cleaning(leg.start, False, [])
    ridges = RIDGES if noisy else (0.0,)
    if leg.monitor.overtaken:
        # by least squares on what is left of all that it has
        lengths, ridges = lengths[-1:], (0.0,)
    cleaned = clean(problem, leg.order, lengths, ridges)
    columns = cleaned[-1].columns(problem)
    fits = [nested.coefficients(problem) for nested in cleaned]
    ends = np.cumsum([len(nested) for nested in cleaned])
    coefs = np.zeros((int(ends[-1]), columns.size))
    for (C, _), end in zip(fits, ends.tolist(), strict=True):
        coefs[end - C.shape[0] : end, : C.shape[1]] = C
    levels = np.concatenate([level for _, level in fits])
    sizes = np.concatenate([nested.freedom(problem) for nested in cleaned])
    columns, models = in_columns(trial.task, columns, coefs)
    i, errors = trial.scorer.simplest(columns, models, levels, sizes)
    best = [int(np.argmin(part)) + end - part.size for part, end in zip(np.split(errors, ends[:-1]), ends, strict=True)]
    ways = [Cleaned(nth(cleaned, k), columns, models[k], float(levels[k]), float(errors[k])) for k in best]
    kept = nth(cleaned, i)
    same = set(kept.groups) == set(leg.awake) and errors[i] >= leg.error * (1 - PARSIMONY)
    # from where it has started it would go the same way again
    again = leg.start is not None and kept.key == leg.start.key
    return Cleaning(kept, not (same or again), ways)


def nth(cleaned: Sequence[Nested], i: int) -> Kept:
    """The i-th set of several cleanings, one after another."""
    for nested in cleaned:
        if i < len(nested):
            return Kept(nested.left(i), nested.ridge)
        i -= len(nested)
    raise IndexError(i)


def in_columns(task: PathTask, columns: NDArray[np.intp], coefs: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
    """Models on the columns of X, where groups that overlap have copies of them."""
    return added_up(task.groups.members[columns], coefs) if task.groups.overlapping else (columns, coefs)


def restart_state(task: PathTask, kept: Kept, time: int, entered: Sequence[tuple[int, float]]) -> PathState:
    """Some groups awake at their fitted values, all others asleep at the start scale."""
    problem = task.runner.problem
    woke = dict(entered)
    return PathState(
        time=time,
        coef=kept_coefficients(problem, kept),
        awake=np.array(kept.groups, dtype=np.intp),
        log_magnitudes=np.full(problem.ranks.size, np.log(task.init_scale)),
        entered=tuple((l, woke.get(l, float(time))) for l in kept.groups),
    )


def kept_coefficients(problem: WorkingProblem, kept: Kept) -> FloatArray:
    """Coefficients of the problem's columns, on the user's scale."""
    columns, values, _ = kept_fit(problem, kept)
    coef = np.zeros(problem.mean.size)
    coef[columns] = values
    return coef


def kept_fit(problem: WorkingProblem, kept: Kept) -> tuple[NDArray[np.intp], FloatArray, float]:
    """The problem's columns of the kept groups, their coefficients, and the intercept, on the user's scale."""
    which = np.array(kept.groups, dtype=np.intp)
    coefs, levels = problem.models_to_user(which, least_squares(problem, kept.groups, kept.ridge)[None, :])
    return problem.layout.members[spans(problem.layout.starts, which)], coefs[0], float(levels[0])
