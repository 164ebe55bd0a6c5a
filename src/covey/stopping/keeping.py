"""What is kept of the groups that a leg has found: cleaned sets, judged, and how to go on from one.

Cleaning is `covey.engine.cleaning`: from a prefix of the order in which groups woke up, one group is dropped after
another, and every set on the way is a candidate. The judging rows choose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from covey.engine.cleaning import Nested, clean, least_squares
from covey.engine.overlap import added_up
from covey.path import PathState
from covey.preprocess import WorkingProblem, spans
from covey.stopping.base import PathTask
from covey.stopping.legs import NOISY, Cleaned, Kept, Leg, Trial
from covey.stopping.scorer import PARSIMONY
from covey.validation import FloatArray

__all__ = [
    "MOST_COLUMNS",
    "RIDGES",
    "Cleaning",
    "choose_kept",
    "in_columns",
    "kept_coefficients",
    "kept_fit",
    "nth",
    "overtaking",
    "prefix_lengths",
    "restart_state",
]

# Prefixes of the order in which groups woke up, from which cleaning starts, beside the set that was chosen.
PREFIXES = (10, 40)

# Penalties to clean with, where noise is strong.
RIDGES = (0.0, 0.1, 0.3, 1.0)

# Least squares on more columns than this share of the rows says little.
MOST_COLUMNS = 0.6

# A path is cut short when what cleaning makes of it has less than this share of its least error.
OVERTAKEN = 0.8


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


def prefix_lengths(task: PathTask, order: Sequence[int], n_chosen: int) -> list[int]:
    """How long the prefixes of an order are from which cleaning starts."""
    columns = np.cumsum(task.runner.problem.ranks[np.array(order, dtype=np.intp)])
    most = int(np.searchsorted(columns, MOST_COLUMNS * task.n_rows, side="right"))
    return sorted({min(m, most) for m in (n_chosen, *PREFIXES, len(order)) if min(m, len(order)) == m} - {0})


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
