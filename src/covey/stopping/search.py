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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.stopping.base import PathTask
from covey.stopping.keeping import MOST_COLUMNS, Cleaning, choose_kept, overtaking, restart_state
from covey.stopping.legs import NOISY, Cleaned, Kept, Leg, Trial
from covey.stopping.monitor import Monitor
from covey.validation import FloatArray

__all__ = [
    "DENSE_SCALING",
    "WORTH_ANOTHER",
    "WORTH_GOING_ON",
    "Found",
    "best_leg",
    "cheap_average",
    "enough_left",
    "explore",
    "left_over",
]

# Another restart, if there is one left, when the last brought the error down to this share.
WORTH_ANOTHER = 0.98

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


def _run(trial: Trial, patience: float, **options: Any) -> Leg:
    together = "init_scale" in options
    monitor = _monitor(trial, patience, together=together, overtakes=None if together else overtaking(trial))
    return Leg(trial.task.path(stop=monitor, **options), monitor, options=options)


def _restart(trial: Trial, patience: float, leg: Leg, kept: Kept, **settings: Any) -> Leg:
    """Run on from what was kept of a leg."""
    monitor = _monitor(trial, patience, overtakes=overtaking(trial), n_clean=len(kept.groups))
    state = restart_state(trial.task, kept, int(leg.path.times[-1]), leg.path.entered)
    return Leg(trial.task.path(stop=monitor, start=state, **settings), monitor, kept, leg)
