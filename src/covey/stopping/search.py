"""Search: the plain path, the path cleaned and run on, and denser networks; judged on the same rows.

The paper's path is one model family among a few that cost little once X has been read:

- *Restarts.* The path never lets a group go. So least squares on the groups that woke up, one group dropped after
  another, gives a cleaner set; the network is then run on from there, the kept groups awake at their fitted values and
  all others asleep at the start scale again.
- *Larger start scales.* Where many small groups explain something together, none of them alone ever wakes early. A
  network with a larger start scale is dense from the start. It is tried when the residuals of the best model so far
  on the judging rows go with what one gradient step on all groups would predict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from covey.engine.cleaning import clean, least_squares
from covey.engine.overlap import added_up
from covey.path import Path, PathState
from covey.stopping.base import PathTask
from covey.stopping.monitor import Monitor
from covey.stopping.scorer import PARSIMONY, Scorer
from covey.validation import FloatArray

__all__ = ["Leg", "Trial", "best_leg", "explore", "restart_state", "way_to"]

# Prefixes of the order in which groups woke up, from which cleaning starts, beside the set that was chosen.
PREFIXES = (10, 40)

# Penalties to clean with, where more than a share of the response is noise to the best model so far.
RIDGES, NOISY = (0.0, 0.1, 0.3, 1.0), 0.15

# Denser networks run on columns of unit variance: within correlated groups, orthonormal directions of little variance
# would count as much as the others, which noise fills.
DENSE_SCALING = "column"

# Denser networks are tried when `left_over` exceeds this.
LEFT_OVER = 1.5

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
    def null_error(self) -> float:
        """The error of the intercept alone."""
        nothing, level = np.empty(0, dtype=np.intp), self.task.runner.problem.y_mean
        return float(self.scorer.errors(nothing, np.empty((1, 0)), np.array([level]))[0])


class Kept(NamedTuple):
    """What is kept of an awake set: the groups, and the ridge with which they are fitted."""

    groups: tuple[int, ...]
    ridge: float


@dataclass(frozen=True, eq=False)
class Leg:
    """One run of the network, and how its models were judged.

    Attributes
    ----------
    path : Path
    monitor : Monitor
    start : Kept or None
        What it was restarted from.
    options : dict
        What differs from the settings of the task.
    """

    path: Path
    monitor: Monitor
    start: Kept | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def dense(self) -> bool:
        """Whether all groups rose together."""
        return "init_scale" in self.options

    @property
    def error(self) -> float:
        """The error at the time that it chose."""
        return self.monitor.errors[self.monitor.times.index(self.monitor.best_time)]

    @property
    def time(self) -> float:
        """The time that it chose."""
        return self.monitor.best_time

    @property
    def order(self) -> list[int]:
        """Groups in the order in which they woke up; those kept from before come first."""
        return [l for l, _ in self.path.entered]

    @property
    def awake(self) -> list[int]:
        """The groups of the chosen model."""
        return [l for l, t in self.path.entered if t <= self.time]


def explore(trial: Trial, patience: float) -> list[Leg]:
    """All legs that the task's search asks for, the paper's plain path first."""
    legs = [_run(trial, patience)]
    for _ in range(trial.task.restarts):
        last = legs[-1]
        if last.path.times[-1] >= int(trial.task.options.get("max_iter", 100_000)):
            return legs
        kept = choose_kept(trial, last)
        if kept is None:
            break
        state = restart_state(trial.task, kept, int(last.path.times[-1]), last.path.entered, trial.task.init_scale)
        legs.append(_run(trial, patience, start=kept, state=state))
        if legs[-1].error >= min(leg.error for leg in legs[:-1]):
            break
    scales = [scale for scale in trial.task.dense_scales if scale > trial.task.init_scale]
    if scales and left_over(trial, best_leg(trial, legs)) > LEFT_OVER:
        dense = replace(trial, task=trial.task.scaled(DENSE_SCALING))
        for scale in sorted(scales, reverse=True):
            legs.append(_run(dense, patience, init_scale=scale))
            if legs[-1].error > WORTH_GOING_ON * min(leg.error for leg in legs):
                break
    return legs


def way_to(leg: Leg, legs: Sequence[Leg]) -> list[Leg]:
    """The legs through which one was come to, itself the last."""
    return [leg] if leg.start is None else list(legs[: list(legs).index(leg) + 1])


def left_over(trial: Trial, leg: Leg) -> float:
    """How well one gradient step on all groups goes with what a model leaves of the judging rows, in standard errors.

    Where the model has found all there is, this is a standard normal number; many small groups together show in it
    although none of them does alone.
    """
    problem, scorer = trial.task.runner.problem, trial.scorer
    if not problem.design.reads_columns:
        return -np.inf
    at = leg.path.index(leg.time)
    model, level = leg.path.coefs[[at]], leg.path.intercepts[[at]]
    own = trial.task.adjusted_design
    residual = trial.task.response - own.predict(model.indices, model.data[None, :], level)[:, 0]
    step = problem.to_columns(problem.to_working(problem.design.correlate((problem.q * residual)[None, :]))[0])
    if trial.task.groups.overlapping:
        step = np.bincount(trial.task.groups.members, weights=step, minlength=own.shape[1]).astype(float)
    ahead = scorer.design.multiply(step)
    left = scorer.y - scorer.design.predict(model.indices, model.data[None, :], level)[:, 0]
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
    models = [leg.path.coefs[[leg.path.index(leg.time)]] for leg in legs]
    columns = np.unique(np.concatenate([model.indices for model in models]))
    coefs = np.concatenate([model[:, columns].toarray() for model in models])
    intercepts = np.array([leg.path.intercepts[leg.path.index(leg.time)] for leg in legs])
    return legs[trial.scorer.simplest(columns, coefs, intercepts, (coefs != 0).sum(axis=1))[0]]


def _run(trial: Trial, patience: float, *, start: Kept | None = None, state: Any = None, **options: Any) -> Leg:
    monitor = Monitor(trial.scorer, patience, trial.task.groups.n_groups, together="init_scale" in options)
    given = options if state is None else {**options, "start": state}
    path = trial.task.path(stop=monitor, **given)
    return Leg(path, monitor, start, options)


def prefix_lengths(task: PathTask, order: Sequence[int], n_chosen: int) -> list[int]:
    """How long the prefixes of an order are from which cleaning starts."""
    columns = np.cumsum(task.runner.problem.ranks[np.array(order, dtype=np.intp)])
    most = int(np.searchsorted(columns, MOST_COLUMNS * task.n_rows, side="right"))
    return sorted({min(m, most) for m in (n_chosen, *PREFIXES, len(order)) if min(m, len(order)) == m} - {0})


def choose_kept(trial: Trial, leg: Leg) -> Kept | None:
    """The groups to restart from; None when cleaning would change nothing."""
    lengths = prefix_lengths(trial.task, leg.order, len(leg.awake))
    if not lengths:
        return None
    problem = trial.task.runner.problem
    ridges = RIDGES if leg.error > NOISY * trial.null_error else (0.0,)
    cleaned = clean(problem, leg.order, lengths, ridges)
    columns = cleaned[-1].columns(problem)
    coefs, intercepts, sets = [], [], []
    for nested in cleaned:
        C, level = nested.coefficients(problem)
        coefs.append(np.pad(C, ((0, 0), (0, columns.size - C.shape[1]))))
        intercepts.append(level)
        sets += [Kept(tuple(nested.groups[kept].tolist()), nested.ridge) for kept in nested.kept]
    # a ridge takes degrees of freedom away
    sizes = [float(problem.ranks[list(kept.groups)].sum()) / (1 + kept.ridge) for kept in sets]
    columns, models = in_columns(trial.task, columns, np.concatenate(coefs))
    i, errors = trial.scorer.simplest(columns, models, np.concatenate(intercepts), sizes)
    if set(sets[i].groups) == set(leg.awake) and errors[i] >= leg.error * (1 - PARSIMONY):
        return None
    return sets[i]


def in_columns(task: PathTask, columns: NDArray[np.intp], coefs: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
    """Models on the columns of X, where groups that overlap have copies of them."""
    return added_up(task.groups.members[columns], coefs) if task.groups.overlapping else (columns, coefs)


def restart_state(
    task: PathTask, kept: Kept, time: int, entered: Sequence[tuple[int, float]], init_scale: float
) -> PathState:
    """Some groups awake at their fitted values, all others asleep at the start scale."""
    problem = task.runner.problem
    coef = np.zeros(problem.mean.size)
    w, at = least_squares(problem, kept.groups, kept.ridge), 0
    for l in kept.groups:
        rank = int(problem.ranks[l])
        coef[problem.members(l)] = problem.to_user(l, w[at : at + rank])
        at += rank
    woke = dict(entered)
    return PathState(
        time=time,
        coef=coef,
        awake=np.array(kept.groups, dtype=np.intp),
        log_magnitudes=np.full(problem.ranks.size, np.log(init_scale)),
        entered=tuple((l, woke.get(l, float(time))) for l in kept.groups),
    )
