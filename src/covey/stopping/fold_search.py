"""The search of `covey.stopping.search` with folds as judges: every leg is run in every fold, and chosen by its mean.

What folds can agree on is not a set of groups, since each has its own, but how to get to one: how long the prefix is
from which cleaning starts, with which ridge, and how many groups are kept. Done the same way on all rows it gives the
model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from covey.checkpoint import Checkpoint, kept
from covey.engine import Snapshot
from covey.engine.cleaning import clean
from covey.path import Path
from covey.stopping.base import PathTask
from covey.stopping.fold_errors import FoldErrors, FoldRun, align, as_run, choose_time, standard_error
from covey.stopping.monitor import Monitor
from covey.stopping.scorer import MARGIN, PARSIMONY
from covey.stopping.search import (
    DENSE_SCALING,
    LEFT_OVER,
    NOISY,
    RIDGES,
    WORTH_GOING_ON,
    Kept,
    Leg,
    Trial,
    in_columns,
    left_over,
    prefix_lengths,
    restart_state,
)
from covey.validation import FloatArray

__all__ = ["FoldLeg", "Folds", "best_fold_leg", "explore_folds", "run_on_all_rows"]

# A path on all rows that is run for the order of its groups goes on for at most so many times the folds' time.
LONGER = 3


@dataclass(frozen=True)
class Cut:
    """A cleaning that folds agree on: of the first `length` groups keep `n_kept`, fitted with a ridge, at a time."""

    length: int
    n_kept: int
    ridge: float
    time: int


@dataclass(frozen=True)
class FoldLeg:
    """One leg of the search in all folds.

    Attributes
    ----------
    errors : FoldErrors
    runs : list of FoldRun
    cuts : tuple of Cut
        The cleanings on the way to its start.
    init_scale : float or None
        The start scale, where it is a dense one.
    before : tuple of FoldErrors
        Those of the legs through which it was come to.
    """

    errors: FoldErrors
    runs: list[FoldRun]
    cuts: tuple[Cut, ...] = ()
    init_scale: float | None = None
    before: tuple[FoldErrors, ...] = ()

    @property
    def whole(self) -> FoldErrors:
        """The errors from the beginning of the first leg to the end of this one."""
        parts = [*self.before, self.errors]
        ends = [part.times[0] for part in parts[1:]] + [np.inf]
        used = [part.times < end for part, end in zip(parts, ends, strict=True)]
        times = np.concatenate([part.times[use] for part, use in zip(parts, used, strict=True)])
        mse = np.concatenate([part.mse[use] for part, use in zip(parts, used, strict=True)])
        return FoldErrors(times, mse, self.errors.step_size)

    @property
    def best(self) -> int:
        """The position of the least mean error."""
        return int(np.argmin(self.errors.mean))

    @property
    def n_columns(self) -> float:
        """How many groups its best model has, on average over the folds."""
        time = self.errors.times[self.best]
        return float(np.mean([sum(t <= time for _, t in run.entered) for run in self.runs]))


@dataclass(frozen=True)
class Folds:
    """All folds, and how to run something in each: side by side, and kept once it is done."""

    trials: list[Trial]
    parallel: Parallel
    store: Checkpoint | None = None

    def run(self, name: str, arguments: Sequence[tuple[Any, ...]], **options: Any) -> list[FoldRun]:
        """One leg in every fold."""
        jobs = zip(self.trials, arguments, strict=True)
        # legs before this one may have been run or come from a file: that must not show, not even in the last bit
        leg = partial(run_fold, afresh=self.store is not None, **options)
        found = self.parallel(
            delayed(kept)(self.store, f"{name}-fold-{k}", leg, trial, *own) for k, (trial, own) in enumerate(jobs)
        )
        return [as_run(run) for run in found]

    def scaled(self, standardize: Any) -> Folds:
        """The folds with another scaling of the columns."""
        return replace(self, trials=[replace(t, task=t.task.scaled(standardize)) for t in self.trials])


def explore_folds(folds: Folds, first: FoldLeg, patience: float, grid: NDArray[np.int64]) -> list[FoldLeg]:
    """All legs that the tasks' search asks for, beginning with the plain path's."""
    trials, parallel = folds.trials, folds.parallel
    task = trials[0].task
    legs = [first]
    for i in range(task.restarts):
        last = legs[-1]
        begin = int(last.errors.times[-1])
        if begin >= int(grid[-1]):
            return legs
        cut, sets = _agree(trials, last, begin, parallel)
        if cut is None:
            break
        starts = [(one, begin, run.entered) for one, run in zip(sets, last.runs, strict=True)]
        later = np.unique(np.minimum(begin + grid, grid[-1]))
        own = [(patience, later, first.errors.step_size, *start) for start in starts]
        runs = folds.run(f"restart-{i}", own)
        errors = align(runs, later, first.errors.step_size)
        legs.append(FoldLeg(errors, runs, (*last.cuts, cut), before=(*last.before, last.errors)))
        if legs[-1].errors.mean.min() >= min(leg.errors.mean.min() for leg in legs[:-1]):
            break
    scales = [scale for scale in task.dense_scales if scale > task.init_scale]
    if scales and _left_over(trials, best_fold_leg(legs), parallel) > LEFT_OVER:
        dense = folds.scaled(DENSE_SCALING)
        for scale in sorted(scales, reverse=True):
            step = dense.trials[0].task.path(max_iter=1, init_scale=scale).step_size
            runs = dense.run(f"dense-{scale:g}", [(patience, grid, step)] * len(trials), init_scale=scale)
            legs.append(FoldLeg(align(runs, grid, step), runs, init_scale=scale))
            if legs[-1].errors.mean.min() > WORTH_GOING_ON * min(leg.errors.mean.min() for leg in legs):
                break
    return legs


def best_fold_leg(legs: Sequence[FoldLeg], rule: str = "min") -> FoldLeg:
    """The leg of least mean error; of those that the folds cannot tell from it, the one with the fewest groups.

    With the rule "1se", the one with the fewest groups within a standard error of the best.
    """
    curves = np.stack([leg.errors.mse[leg.best] for leg in legs])
    sizes = [leg.n_columns for leg in legs]
    if rule == "min":
        return legs[_simplest(curves, sizes)]
    means = curves.mean(axis=1)
    best = int(np.argmin(means))
    close = np.flatnonzero(means <= means[best] + standard_error(curves)[best])
    return legs[min(close.tolist(), key=lambda i: (sizes[i], means[i]))]


def run_fold(
    trial: Trial,
    patience: float,
    grid: NDArray[np.int64],
    step_size: float,
    start: Kept | None = None,
    begin: int = 0,
    entered: Sequence[tuple[int, float]] = (),
    *,
    afresh: bool = False,
    **options: Any,
) -> FoldRun:
    """One leg in one fold, recorded on the common grid; `afresh`, with nothing that the legs before have read of X."""
    if afresh:
        trial.task.runner.forget()
    monitor = Monitor(trial.scorer, patience, trial.task.groups.n_groups, together="init_scale" in options)
    if start is not None:
        options["start"] = restart_state(trial.task, start, begin, entered, trial.task.init_scale)
    path = trial.task.path(stop=monitor, times=grid, max_iter=int(grid[-1]), step_size=step_size, **options)
    reached = monitor.reached if path.status == "stopped" else np.inf
    return FoldRun(monitor.times, monitor.errors, reached, path.entered)


def _agree(trials: Sequence[Trial], leg: FoldLeg, begin: int, parallel: Parallel) -> tuple[Cut | None, list[Kept]]:
    """The cleaning with the least mean error, and what it keeps in each fold; None when it would change nothing."""
    time = choose_time(leg.errors, "min")
    awake = [sum(t <= time for _, t in run.entered) for run in leg.runs]
    orders = [[l for l, _ in run.entered] for run in leg.runs]
    n_chosen = int(np.median(awake))
    lengths = [prefix_lengths(trial.task, order, n_chosen) for trial, order in zip(trials, orders, strict=True)]
    common = sorted(set.intersection(*map(set, lengths)) | {min(max(own, default=0) for own in lengths)} - {0})
    common = [m for m in common if 0 < m <= min(map(len, orders))]
    if not common:
        return None, []
    noisy = leg.errors.mean.min() > NOISY * np.mean([trial.null_error for trial in trials])
    ridges = RIDGES if noisy else (0.0,)
    results = parallel(
        delayed(_clean_fold)(trial, order, common, ridges) for trial, order in zip(trials, orders, strict=True)
    )
    curves = np.stack([errors for errors, _, _ in results], axis=1)
    i = _simplest(curves, np.mean([sizes for _, sizes, _ in results], axis=0))
    ways = [(m, m - dropped, ridge) for m in common for ridge in ridges for dropped in range(m + 1)]
    length, n_kept, ridge = ways[i]
    if n_kept == n_chosen and curves[i].mean() >= leg.errors.mean.min() * (1 - PARSIMONY):
        return None, []
    return Cut(length, n_kept, ridge, begin), [sets[i] for _, _, sets in results]


def _clean_fold(
    trial: Trial, order: list[int], lengths: list[int], ridges: Sequence[float]
) -> tuple[FloatArray, FloatArray, list[Kept]]:
    """Errors, sizes and sets of every way to clean, in one fold."""
    problem = trial.task.runner.problem
    errors, sizes, sets = [], [], []
    for nested in clean(problem, order, lengths, ridges):
        coefs, intercepts = nested.coefficients(problem)
        columns, models = in_columns(trial.task, nested.columns(problem), coefs)
        errors.append(trial.scorer.errors(columns, models, intercepts))
        for left in nested.kept:
            sets.append(Kept(tuple(nested.groups[left].tolist()), nested.ridge))
            sizes.append(float(problem.ranks[nested.groups[left]].sum()) / (1 + nested.ridge))
    return np.concatenate(errors), np.array(sizes), sets


def _simplest(curves: FloatArray, sizes: Any) -> int:
    """The smallest of some candidates that the folds cannot tell from the best; `curves` has one row each."""
    means = curves.mean(axis=1)
    best = int(np.argmin(means))
    gaps = curves - curves[best]
    unit = float(np.abs(gaps).max()) or 1.0
    k = curves.shape[1]
    doubt = (gaps / unit).std(axis=1, ddof=1) / np.sqrt(k) * unit if k > 1 else np.zeros(means.size)
    close = np.flatnonzero(means <= means[best] * (1 + PARSIMONY) + MARGIN * doubt)
    return min(close.tolist(), key=lambda i: (sizes[i], means[i]))


def _left_over(trials: Sequence[Trial], leg: FoldLeg, parallel: Parallel) -> float:
    """The mean over folds of what is left over, in standard errors."""
    time = choose_time(leg.errors, "min")
    return float(np.mean(parallel(delayed(_left_in_fold)(trial, leg, k, time) for k, trial in enumerate(trials))))


def _left_in_fold(trial: Trial, leg: FoldLeg, k: int, time: float) -> float:
    """What a fold's model at the chosen time leaves; it is fitted again by least squares on its groups."""
    groups = [l for l, t in leg.runs[k].entered if t <= time]
    state = restart_state(trial.task, Kept(tuple(groups), 0.0), 0, (), trial.task.init_scale)
    path = trial.task.path(start=state, max_iter=1, times=[0])
    monitor = Monitor(trial.scorer, 1.0, trial.task.groups.n_groups)
    monitor.times, monitor.errors, monitor.scores = [0.0], [0.0], [0.0]
    return left_over(trial, Leg(path, monitor))


def run_on_all_rows(task: PathTask, leg: FoldLeg) -> Path:
    """The leg as the folds agreed on it, on all rows."""
    step, times = leg.errors.step_size, leg.errors.times
    last = max(1, int(times[-1]))
    if leg.init_scale is not None:
        dense = task.scaled(DENSE_SCALING)
        return dense.path(times=times, max_iter=last, step_size=step, init_scale=leg.init_scale)
    start: Any = task.options.get("start")
    way: list[Path] = []
    for cut in leg.cuts:

        def enough(snapshot: Snapshot, cut: Cut = cut) -> bool:
            return snapshot.n_woken >= cut.length

        ahead = task.path(stop=enough, start=start, step_size=step, max_iter=max(LONGER * cut.time, cut.time + 1))
        way.append(ahead)
        order = [l for l, _ in ahead.entered]
        length = min(cut.length, len(order), max(prefix_lengths(task, order, len(order)), default=0))
        nested = clean(task.runner.problem, order, [length], [cut.ridge])[0]
        left = nested.groups[nested.kept[length - min(cut.n_kept, length)]]
        begin = max(cut.time, 1)
        start = restart_state(task, Kept(tuple(left.tolist()), cut.ridge), begin, ahead.entered, task.init_scale)
    last = max(last, (leg.cuts[-1].time if leg.cuts else 0) + 1)
    way.append(task.path(start=start, times=times, max_iter=last, step_size=step))
    return reduce(lambda earlier, later: later.after(earlier), way)
