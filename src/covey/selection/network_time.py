"""The time on the network's path that predicts held-out rows best, by one hold-out set or by folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray

import covey
from covey.batched import group_paths
from covey.checkpoint import Checkpoint, fingerprint, kept
from covey.designs import as_design
from covey.designs.scoring import ModelError
from covey.stopping import Choice, PathTask
from covey.stopping.monitor import PATIENCE, Monitor, earliest_least
from covey.validation import FloatArray, positive

__all__ = ["FoldErrors", "choose_by_folds", "choose_by_holdout", "standard_error", "time_grid"]

# Neighbouring times of the grid differ by this factor. A group takes about a third of its wake-up time to grow, so a
# step of 2% puts more than ten points on every transition.
GRID_RATIO = 1.02

# If the least error lies beyond this share of the time that all folds have reached, they may have ended too early.
EDGE = 0.9


class Fold(NamedTuple):
    """A task on the training rows, and the error of models on the held-out rows."""

    task: PathTask
    error_of: ModelError


def choose_by_holdout(task: PathTask, held_or_validation: Any, patience: float = PATIENCE) -> Choice:
    """The time of least squared error on held-out rows: the earliest within 0.3% of the least.

    The path runs on the other rows until a few more groups have grown without improving the error. With held-out rows
    it is then run on all rows up to the chosen time; with validation rows it is kept as it is.

    Parameters
    ----------
    task : PathTask
    held_or_validation : boolean row vector, or (X, y)
        Which rows of the task to hold out, or other rows to score on.
    patience : float
        How many groups may grow without lowering the error before the path is stopped. Counted in groups rather than
        iterations, because the model hardly changes for long times in between.

    Returns
    -------
    Choice
        Its scores have the columns ``time`` and ``mse``.
    """
    patience = positive(patience, "patience")
    refit = not isinstance(held_or_validation, tuple)
    if refit:
        task.design.expect(task.y, task.weight, [held_or_validation])
        fold = _fold(task, held_or_validation)
    else:
        fold = Fold(task, _error_on(task, *held_or_validation))
    monitor = Monitor(fold.error_of, patience, task.groups.n_groups)
    # on a fixed grid, because each engine records at its own times
    path = fold.task.path(stop=monitor, times=time_grid(task.max_iter))
    time = monitor.best_time
    if refit:
        path = task.path(max_iter=max(1, int(time)), step_size=path.step_size)
    return Choice(path, time, pd.DataFrame({"time": monitor.times, "mse": monitor.errors}))


def choose_by_folds(
    task: PathTask,
    masks: Sequence[Any],
    rule: Literal["min", "1se"] = "min",
    patience: float = PATIENCE,
    n_jobs: int | None = None,
    checkpoint: Any = None,
) -> Choice:
    """The time of least mean squared error over folds, or the earliest within one standard error of it.

    All folds use the same step size, so their times are comparable; errors are averaged on a common grid. The path is
    then run on all rows along that grid.

    Parameters
    ----------
    task : PathTask
    masks : sequence of boolean row vectors
        The rows that each fold holds out.
    rule : {"min", "1se"}
    patience : float
        As in `choose_by_holdout`, for each fold.
    n_jobs : int, optional
        Folds in parallel, through joblib.
    checkpoint : path, optional
        A folder that stores finished folds. A run with the same data and settings resumes from them and gives the same
        result as an uninterrupted one.

    Returns
    -------
    Choice
        Its scores have the columns ``time``, ``mse``, ``standard_error`` and one per fold: ``fold_0``, ``fold_1``, ...
    """
    patience = positive(patience, "patience")
    if rule not in ("min", "1se"):
        raise ValueError(f"rule must be 'min' or '1se', not {rule!r}.")
    masks = list(masks)
    _check_masks(task, masks)
    errors = _fold_errors(task, masks, patience, n_jobs, checkpoint)
    last = max(1, int(errors.times[-1]))
    path = task.path(times=errors.times, max_iter=last, step_size=errors.step_size)
    return Choice(path, errors.choose(rule), errors.table())


@dataclass(frozen=True)
class FoldErrors:
    """Held-out squared error of every fold along the common grid.

    Attributes
    ----------
    times : ndarray, shape (n_times,)
    mse : ndarray, shape (n_times, n_folds)
    step_size : float
        The step size of all folds, which makes their times comparable.
    """

    times: NDArray[np.float64]
    mse: FloatArray
    step_size: float

    @property
    def mean(self) -> FloatArray:
        """Mean over the folds."""
        return self.mse.mean(axis=1)

    @property
    def standard_error(self) -> FloatArray:
        """Standard error of the mean over the folds."""
        return standard_error(self.mse)

    def choose(self, rule: Literal["min", "1se"]) -> float:
        """The time that a rule chooses."""
        mean = self.mean
        best = earliest_least(mean)
        if rule == "1se":
            best = int(np.argmax(mean <= mean[best] + self.standard_error[best]))
        return float(self.times[best])

    def table(self) -> pd.DataFrame:
        """One row per time."""
        summary = {"time": self.times, "mse": self.mean, "standard_error": self.standard_error}
        return pd.DataFrame(summary | {f"fold_{k}": self.mse[:, k] for k in range(self.mse.shape[1])})


class FoldRun(NamedTuple):
    """The path of one fold: its recorded times, the errors there, and the last time it reached."""

    times: list[float]
    errors: list[float]
    reached: float


def standard_error(mse: FloatArray) -> FloatArray:
    """Standard error of the mean over the last axis, without overflow for errors as large as 1e300."""
    k = mse.shape[-1]
    unit = np.abs(mse).max()
    if k < 2 or unit == 0:
        return np.zeros(mse.shape[:-1])
    return (mse / unit).std(axis=-1, ddof=1) / np.sqrt(k) * unit


def time_grid(last: int) -> NDArray[np.int64]:
    """Zero, then times a constant factor apart, up to `last`."""
    steps = int(np.ceil(np.log(max(last, 2)) / np.log(GRID_RATIO))) + 1
    return np.unique(np.append(np.round(GRID_RATIO ** np.arange(steps)).clip(0, last), [0, last])).astype(np.int64)


def _fold_errors(task: PathTask, masks: list[Any], patience: float, n_jobs: int | None, checkpoint: Any) -> FoldErrors:
    """Run all folds, and again with twice the patience while the least error lies near the end."""
    task.design.expect(task.y, task.weight, masks)
    step = task.path(max_iter=1).step_size
    grid = time_grid(task.max_iter)
    store = _store(task, masks, patience, checkpoint)
    together = not task.groups.overlapping and task.design.batches(len(masks))
    folds = [_fold(task, held) for held in masks]
    parallel = Parallel(n_jobs=n_jobs, prefer=task.design.parallel)
    # results must be identical, to the last bit, whether earlier runs were computed here or read from a file
    run = partial(_run_fold, grid=grid, step_size=step, afresh=store is not None)
    reached = -1.0
    while True:
        name = f"patience-{patience:g}"
        if together:
            found = kept(store, f"folds-{name}", _run_together, task, masks, folds, grid, step, patience)
        else:
            found = parallel(
                delayed(kept)(store, f"{name}-fold-{k}", run, fold, patience) for k, fold in enumerate(folds)
            )
        errors = _align([FoldRun(*one) for one in found], grid, step)
        last = float(errors.times[-1])
        if errors.choose("min") <= EDGE * last or last <= reached:
            return errors
        reached = last
        patience *= 2


def _fold(task: PathTask, held: Any) -> Fold:
    """Train without the held-out rows, and score on them."""
    return Fold(task.on(~held), task.design.errors(task.y, np.where(held, task.weight, 0.0)))


def _error_on(task: PathTask, X_val: Any, y_val: Any) -> ModelError:
    """The error on validation rows."""
    design = as_design(X_val, name="X_val")
    if design.shape[1] != task.groups.n_columns:
        raise ValueError(f"The validation rows have {design.shape[1]} columns, and X has {task.groups.n_columns}.")
    y_val = design.rows(y_val, name="y_val")
    return design.errors(y_val, np.ones_like(y_val))


def _run_fold(fold: Fold, patience: float, *, grid: NDArray[np.int64], step_size: float, afresh: bool) -> FoldRun:
    """The path of one fold, recorded on the common grid; if `afresh`, caches of earlier runs are cleared first."""
    if afresh:
        fold.task.runner.forget()
    monitor = Monitor(fold.error_of, patience, fold.task.groups.n_groups)
    path = fold.task.path(stop=monitor, times=grid, max_iter=int(grid[-1]), step_size=step_size)
    return _finished(monitor, path.status)


def _run_together(
    task: PathTask, masks: list[Any], folds: list[Fold], grid: NDArray[np.int64], step_size: float, patience: float
) -> list[FoldRun]:
    """The paths of all folds as one batch, on the device of X."""
    monitors = [Monitor(fold.error_of, patience, task.groups.n_groups) for fold in folds]
    settings = {**task.options, "times": grid, "max_iter": int(grid[-1]), "step_size": step_size}
    weight = np.column_stack([np.where(held, 0.0, task.weight) for held in masks])
    paths = group_paths(task.design, task.y, task.groups, sample_weight=weight, stop=monitors, **settings)
    return [_finished(monitor, path.status) for monitor, path in zip(monitors, paths, strict=True)]


def _finished(monitor: Monitor, status: str) -> FoldRun:
    return FoldRun(monitor.times, monitor.errors, monitor.reached if status == "stopped" else np.inf)


def _align(runs: list[FoldRun], grid: NDArray[np.int64], step: float) -> FoldErrors:
    """Cut to the times that every fold has reached; a fold with nothing left to learn keeps its last error."""
    reached = min(run.reached for run in runs)
    last = max(run.reached if np.isfinite(run.reached) else run.times[-1] for run in runs)
    times = grid[grid <= min(reached, last)].astype(float)
    mse = np.empty((times.size, len(runs)))
    for k, run in enumerate(runs):
        mse[:, k] = np.asarray(run.errors)[np.searchsorted(run.times, times, side="right") - 1]
    return FoldErrors(times, mse, step)


def _store(task: PathTask, masks: list[Any], patience: float, checkpoint: Any) -> Checkpoint | None:
    """The store of finished folds for exactly this task."""
    if checkpoint is None:
        return None
    data = fingerprint(task.design, task.y, task.weight)
    settings = dict(task.options) | {"patience": patience}
    return Checkpoint.of(checkpoint, covey.__version__, data, task.groups, settings, masks, holds=_is_run)


def _is_run(value: Any) -> bool:
    """Whether a value from a file is the run of one fold, or a list of runs."""
    if isinstance(value, list) and value and all(isinstance(own, list) and len(own) == 3 for own in value):
        return all(map(_is_run, value))
    if not (isinstance(value, list) and len(value) == 3):
        return False
    times, errors, reached = value
    numbers = all(isinstance(own, list) and all(type(v) in (int, float) for v in own) for own in (times, errors))
    return numbers and len(times) == len(errors) > 0 and type(reached) in (int, float) and times == sorted(times)


def _check_masks(task: PathTask, masks: list[Any]) -> None:
    """Refuse folds without training rows or without held-out rows."""
    for i, held in enumerate(masks):
        for name, rows in (("held-out", held), ("training", ~held)):
            if task.design.total(np.where(rows, task.weight, 0.0)) <= 0:
                raise ValueError(f"Fold {i} has no {name} rows of positive weight; use fewer folds.")
