"""K-fold cross-validation on a common time grid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray

from covey.path import Path
from covey.stopping.base import Choice, PathTask, Stopping
from covey.stopping.monitor import PATIENCE, Monitor
from covey.validation import FloatArray, positive

__all__ = ["CrossValidation", "FoldErrors", "choose_time", "standard_error"]

# Neighbouring times of the grid differ by this factor. A group takes about a third of its wake-up time to grow, so
# a step of 2% shows every transition in more than ten points.
GRID_RATIO = 1.02

# A least error among the last times of the grid may be the grid's doing.
EDGE = 0.9


@dataclass(frozen=True)
class FoldErrors:
    """Held-out squared error of every fold along the common grid.

    Attributes
    ----------
    times : ndarray, shape (n_times,)
    mse : ndarray, shape (n_times, n_folds)
    step_size : float
        The step shared by the folds, which makes their times comparable.
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


def standard_error(mse: FloatArray) -> FloatArray:
    """Standard error of the mean over the last axis, whatever its units (errors of 1e300 have no square)."""
    k = mse.shape[-1]
    unit = np.abs(mse).max()
    if k < 2 or unit == 0:
        return np.zeros(mse.shape[:-1])
    return (mse / unit).std(axis=-1, ddof=1) / np.sqrt(k) * unit


@dataclass(frozen=True)
class CrossValidation(Stopping):
    """The time of least mean error over K folds, or the earliest within one standard error of it.

    Parameters
    ----------
    cv : int, splitter or iterable of (train, test)
        Anything that scikit-learn takes; grouped and time-series splits included.
    rule : {"min", "1se"}
    patience : float
        As in `HoldOut`, for each fold.
    n_jobs : int, optional
        Folds in parallel, through joblib.
    cv_groups : array, optional
        Labels of the rows for grouped splitters.
    """

    cv: Any = 5
    rule: Literal["min", "1se"] = "min"
    patience: float = PATIENCE
    n_jobs: int | None = None
    cv_groups: Any = None
    verbose: int = 0

    def choose(self, task: PathTask) -> Choice:
        """Cross-validate, then run the path on all rows."""
        return self.refit(task, self.errors(task))

    def refit(self, task: PathTask, errors: FoldErrors) -> Choice:
        """The path on all rows along the same grid, and the rule's time on it."""
        time = choose_time(errors, self.rule)
        path = task.path(times=errors.times, max_iter=max(1, int(errors.times[-1])), step_size=errors.step_size)
        scores = pd.DataFrame({"time": errors.times, "mse": errors.mean, "standard_error": errors.standard_error})
        return Choice(path, time, scores)

    def errors(self, task: PathTask) -> FoldErrors:
        """The held-out error of every fold on the common grid."""
        patience = positive(self.patience, "patience")
        if self.rule not in ("min", "1se"):
            raise ValueError(f"rule must be 'min' or '1se', not {self.rule!r}.")
        masks = list(self._masks(task))
        task.design.expect(task.y, task.weight, masks)
        start = task.path(max_iter=1)  # for the step that the folds share
        grid = time_grid(int(task.options["max_iter"]))
        reached = -1.0
        while True:
            runs = Parallel(n_jobs=self.n_jobs, verbose=self.verbose, prefer=task.design.parallel)(
                delayed(_run_fold)(task, held, grid, start.step_size, patience) for held in masks
            )
            errors = _align(runs, grid, start.step_size)
            at_edge = choose_time(errors, "min") > EDGE * errors.times[-1]
            if not at_edge or errors.times[-1] <= reached:
                return errors
            reached = float(errors.times[-1])
            patience *= 2

    def _masks(self, task: PathTask) -> Iterator[Any]:
        for i, held in enumerate(task.design.folds(self.cv, task.y, self.cv_groups)):
            for name, part in (("held-out", held), ("training", ~held)):
                if task.on(part).n_effective <= 0:
                    raise ValueError(f"Fold {i} has no {name} rows of positive weight; use fewer folds.")
            yield held


def time_grid(last: int) -> NDArray[np.int64]:
    """0 and then times a constant factor apart, up to `last`."""
    steps = int(np.ceil(np.log(max(last, 2)) / np.log(GRID_RATIO))) + 1
    return np.unique(np.append(np.round(GRID_RATIO ** np.arange(steps)).clip(0, last), [0, last])).astype(np.int64)


def _run_fold(
    task: PathTask, held: Any, grid: NDArray[np.int64], step_size: float, patience: float
) -> tuple[list[float], list[float], float]:
    training = task.on(~held)
    monitor = Monitor(
        training.scorer(task.design, task.y, np.where(held, task.weight, 0.0)), patience, task.groups.n_groups
    )
    path: Path = training.path(stop=monitor, times=grid, max_iter=int(grid[-1]), step_size=step_size)
    return monitor.times, monitor.errors, monitor.reached if path.status == "stopped" else np.inf


def _align(runs: list[tuple[list[float], list[float], float]], grid: NDArray[np.int64], step: float) -> FoldErrors:
    """Cut to the times up to which every fold is known; one that had nothing left to learn keeps its last error."""
    reached = min(until for _, _, until in runs)
    last = max(until if np.isfinite(until) else times[-1] for times, _, until in runs)
    times = grid[grid <= min(reached, last)].astype(float)
    mse = np.empty((times.size, len(runs)))
    for k, (at, errors, _) in enumerate(runs):
        mse[:, k] = np.asarray(errors)[np.searchsorted(at, times, side="right") - 1]
    return FoldErrors(times, mse, step)


def choose_time(errors: FoldErrors, rule: Literal["min", "1se"]) -> float:
    """The time that a rule chooses."""
    mean = errors.mean
    best = int(np.argmin(mean))
    if rule == "1se":
        best = int(np.argmax(mean <= mean[best] + errors.standard_error[best]))
    return float(errors.times[best])
