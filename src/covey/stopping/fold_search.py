"""The search of `covey.stopping.search` with folds as judges: every leg is run in every fold, and chosen by its mean.

What folds can agree on is not a set of groups, since each has its own, but how to get to one: how long the prefix is
from which cleaning starts, with which ridge, and how many groups are kept. Done the same way on all rows it gives the
model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from covey.checkpoint import Checkpoint, kept
from covey.engine.cleaning import Nested, clean
from covey.stopping.averaging import clean_whole, judge_sharpened
from covey.stopping.fold_errors import FoldErrors, FoldRun, align, as_run, choose_time, standard_error
from covey.stopping.keeping import (
    MOST_COLUMNS,
    RIDGES,
    in_columns,
    kept_fit,
    nth,
    overtaking,
    prefix_lengths,
    restart_state,
)
from covey.stopping.legs import NOISY, Kept, Trial
from covey.stopping.monitor import Monitor
from covey.stopping.scorer import MARGIN, PARSIMONY
from covey.stopping.search import DENSE_SCALING, WORTH_ANOTHER, WORTH_GOING_ON, cheap_average, enough_left, left_over
from covey.validation import FloatArray

__all__ = [
    "Cut",
    "FoldCleaned",
    "FoldLeg",
    "Folds",
    "FoldsFound",
    "best_fold_leg",
    "explore_folds",
]


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
    starts : tuple of Kept
        What it was restarted from, fold by fold.
    """

    errors: FoldErrors
    runs: list[FoldRun]
    cuts: tuple[Cut, ...] = ()
    init_scale: float | None = None
    before: tuple[FoldErrors, ...] = ()
    starts: tuple[Kept, ...] = ()

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
    def error(self) -> float:
        """The least mean error."""
        return float(self.errors.mean.min())

    @property
    def n_columns(self) -> float:
        """How many groups its best model has, on average over the folds."""
        time = self.errors.times[self.best]
        return float(np.mean([sum(t <= time for _, t in run.entered) for run in self.runs]))


@dataclass(frozen=True)
class FoldCleaned:
    """The best way, over the folds, to clean a leg with one prefix and one ridge."""

    leg: FoldLeg
    cut: Cut
    error: float


@dataclass(frozen=True)
class FoldsFound:
    """What a search over folds has found.

    Attributes
    ----------
    legs : list of FoldLeg
        The plain path's first.
    cleaned : list of FoldCleaned
    noisy : bool
        Whether noise is strong.
    whole : float or None
        The mean error of least squares on the groups of the best leg with common factors left in X, where noise is
        weak, factors were taken out, and the folds cannot tell this from the best.
    """

    legs: list[FoldLeg]
    cleaned: list[FoldCleaned]
    noisy: bool
    whole: float | None = None


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


def explore_folds(folds: Folds, name: str, first: FoldLeg, patience: float, grid: NDArray[np.int64]) -> FoldsFound:
    """Run all legs that the tasks' search asks for after the plain path's, called `name`."""
    trials, parallel = folds.trials, folds.parallel
    task = trials[0].task
    legs = [first]
    cleaned: list[FoldCleaned] = []
    left = task.restarts
    while left > 0:
        last = legs[-1]
        begin = int(last.errors.times[-1])
        if begin >= int(grid[-1]):
            # cut short by the limit on iterations: what is noise cannot be told
            return FoldsFound(legs, cleaned, noisy=False)
        cut, sets, ways = _agree(trials, last, begin, parallel)
        cleaned += ways
        if cut is None:
            break
        starts = [(one, begin, run.entered) for one, run in zip(sets, last.runs, strict=True)]
        later = np.unique(np.minimum(begin + grid, grid[-1]))
        own = [(patience, later, first.errors.step_size, *start) for start in starts]
        runs = folds.run(f"{name}-restart-{len(legs) - 1}", own)
        errors = align(runs, later, first.errors.step_size)
        legs.append(FoldLeg(errors, runs, (*last.cuts, cut), before=(*last.before, last.errors), starts=tuple(sets)))
        # where paths were cut short for it they go on rather than start again
        left -= not any(run.overtaken for run in last.runs)
        if legs[-1].error >= WORTH_ANOTHER * min(leg.error for leg in legs[:-1]):
            break
    legs += _denser(folds, legs, patience, grid)
    noisy = _noisy(trials, legs)
    return FoldsFound(legs, cleaned, noisy, None if noisy else _factors_left_in(folds, best_fold_leg(legs)))


def _noisy(trials: Sequence[Trial], legs: Sequence[FoldLeg]) -> bool:
    """Whether more than a share of the response is noise to the best model."""
    return min(leg.error for leg in legs) > NOISY * float(np.mean([trial.null_error for trial in trials]))


def _denser(folds: Folds, legs: Sequence[FoldLeg], patience: float, grid: NDArray[np.int64]) -> list[FoldLeg]:
    """Networks with larger start scales, where they promise something."""
    trials = folds.trials
    task = trials[0].task
    scales = [scale for scale in task.dense_scales if scale > task.init_scale]
    if not scales:
        return []
    wanted = cheap_average(task, _noisy(trials, legs))
    if not wanted and _left_over(trials, best_fold_leg(legs), folds.parallel) <= enough_left(task):
        return []
    dense, tried = folds.scaled(DENSE_SCALING), []
    for scale in sorted(scales, reverse=True):
        step = dense.trials[0].task.path(max_iter=1, init_scale=scale).step_size
        runs = dense.run(f"dense-{scale:g}", [(patience, grid, step)] * len(trials), init_scale=scale)
        tried.append(FoldLeg(align(runs, grid, step), runs, init_scale=scale))
        if tried[-1].error > WORTH_GOING_ON * min(leg.error for leg in (*legs, *tried)):
            break
    return tried


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
    together = "init_scale" in options
    # under strong noise folds that are cut short at different times agree on too little
    overtakes = None if together else overtaking(trial, noisy=False)
    n_clean = 0 if start is None else len(start.groups)
    monitor = Monitor(
        trial.scorer, patience, trial.task.groups.n_groups, together=together, overtakes=overtakes, n_clean=n_clean
    )
    if start is not None:
        options["start"] = restart_state(trial.task, start, begin, entered)
    path = trial.task.path(stop=monitor, times=grid, max_iter=int(grid[-1]), step_size=step_size, **options)
    reached = monitor.reached if path.status == "stopped" else np.inf
    sharpened = judge_sharpened(trial, path, monitor.best_time)[1] if monitor.together and trial.task.average else []
    return FoldRun(monitor.times, monitor.errors, reached, path.entered, sharpened, monitor.overtaken)


def _agree(
    trials: Sequence[Trial], leg: FoldLeg, begin: int, parallel: Parallel
) -> tuple[Cut | None, list[Kept], list[FoldCleaned]]:
    """The cleaning to go on from, what it keeps in each fold, and the best cleaning for each prefix and ridge.

    No cleaning where it would change nothing.
    """
    time = choose_time(leg.errors, "min")
    awake = [sum(t <= time for _, t in run.entered) for run in leg.runs]
    orders = [[l for l, _ in run.entered] for run in leg.runs]
    n_chosen = int(np.median(awake))
    lengths = [prefix_lengths(trial.task, order, n_chosen) for trial, order in zip(trials, orders, strict=True)]
    common = sorted(set.intersection(*map(set, lengths)) | {min(max(own, default=0) for own in lengths)} - {0})
    common = [m for m in common if 0 < m <= min(map(len, orders))]
    if not common:
        return None, [], []
    ridges = RIDGES if _noisy(trials, [leg]) else (0.0,)
    results = parallel(
        delayed(_clean_fold)(trial, order, common, ridges) for trial, order in zip(trials, orders, strict=True)
    )
    curves = np.stack([errors for errors, _, _ in results], axis=1)
    i = _simplest(curves, np.mean([sizes for _, sizes, _ in results], axis=0))
    ways = [Cut(m, m - dropped, ridge, begin) for m in common for ridge in ridges for dropped in range(m + 1)]
    means = curves.mean(axis=1)
    cleaned = []
    for m in common:
        for ridge in ridges:
            own = [k for k, cut in enumerate(ways) if (cut.length, cut.ridge) == (m, ridge)]
            best = min(own, key=lambda k: means[k])
            cleaned.append(FoldCleaned(leg, ways[best], float(means[best])))
    kept = [nth(own, i) for _, _, own in results]
    same = ways[i].n_kept == n_chosen and means[i] >= leg.error * (1 - PARSIMONY)
    # from where it has started it would go the same way again
    again = [one.key for one in kept] == [one.key for one in leg.starts]
    return (None if same or again else ways[i]), kept, cleaned


def _clean_fold(
    trial: Trial, order: list[int], lengths: list[int], ridges: Sequence[float]
) -> tuple[FloatArray, FloatArray, list[Nested]]:
    """Errors and sizes of all sets of every way to clean, in one fold; and the sets."""
    problem = trial.task.runner.problem
    cleaned = clean(problem, order, lengths, ridges)
    errors = []
    for nested in cleaned:
        coefs, intercepts = nested.coefficients(problem)
        columns, models = in_columns(trial.task, nested.columns(problem), coefs)
        errors.append(trial.scorer.errors(columns, models, intercepts))
    return np.concatenate(errors), np.concatenate([nested.freedom(problem) for nested in cleaned]), cleaned


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
    groups = tuple(l for l, t in leg.runs[k].entered if t <= time)
    columns, coef, level = kept_fit(trial.task.runner.problem, Kept(groups, 0.0))
    columns, coefs = in_columns(trial.task, columns, coef[None, :])
    return left_over(trial, columns, coefs[0], level)


def _factors_left_in(folds: Folds, leg: FoldLeg) -> float | None:
    """The mean error of least squares on a leg's groups with factors left in, where it cannot be told from its own."""
    task = folds.trials[0].task
    if not task.average or task.adjustment is None or leg.init_scale is not None:
        return None
    time = choose_time(leg.errors, "min")
    found = folds.parallel(delayed(_whole_in_fold)(trial, leg, k, time) for k, trial in enumerate(folds.trials))
    curves = np.stack([np.array(found), leg.errors.mse[leg.best]])
    if not np.isfinite(curves).all():
        return None
    return float(curves[0].mean()) if _simplest(curves, [0, 1]) == 0 else None


def _whole_in_fold(trial: Trial, leg: FoldLeg, k: int, time: float) -> float:
    """In one fold."""
    whole, groups = trial.whole, [l for l, t in leg.runs[k].entered if t <= time]
    columns = int(trial.task.runner.problem.ranks[groups].sum())
    if whole is None or not 0 < columns <= MOST_COLUMNS * trial.task.n_rows:
        return np.inf
    return clean_whole(whole, Kept(tuple(groups), 0.0)).error
