"""K-fold cross-validation on a common time grid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from joblib import Parallel
from numpy.typing import NDArray

import covey
from covey.batched import group_paths
from covey.checkpoint import Checkpoint, fingerprint, kept
from covey.stopping.base import Choice, PathTask, Stopping
from covey.stopping.fold_averaging import average_folds, least_squares_on_path
from covey.stopping.fold_errors import FoldRun, align, as_run, choose_time, time_grid
from covey.stopping.fold_refit import run_on_all_rows
from covey.stopping.fold_search import FoldLeg, Folds, FoldsFound, best_fold_leg, explore_folds
from covey.stopping.legs import Trial
from covey.stopping.monitor import PATIENCE, Monitor
from covey.validation import positive

__all__ = ["CrossValidation"]

# A least error among the last times of the grid may be the grid's doing.
EDGE = 0.9


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
    checkpoint : path, optional
        A folder in which finished folds are kept: a run with the same data and settings goes on from them, and gives
        what an undisturbed one would have given.
    """

    cv: Any = 5
    rule: Literal["min", "1se"] = "min"
    patience: float = PATIENCE
    n_jobs: int | None = None
    cv_groups: Any = None
    verbose: int = 0
    checkpoint: Any = None

    def choose(self, task: PathTask) -> Choice:
        """Cross-validate, then run the best leg on all rows."""
        return self.refit(task, self.search(task))

    def best(self, found: FoldsFound) -> FoldLeg:
        """The leg that the rule prefers."""
        return best_fold_leg(found.legs, self.rule)

    def refit(self, task: PathTask, found: FoldsFound) -> Choice:
        """The best leg on all rows along the same grid, and the rule's time on it; the average too, where it is due."""
        leg = self.best(found)
        errors = leg.whole
        scores = pd.DataFrame({"time": errors.times, "mse": errors.mean, "standard_error": errors.standard_error})
        path, time = run_on_all_rows(task, leg), choose_time(leg.errors, self.rule)
        mean = None
        # who asks for the simplest model within an error bar does not want another one
        if task.average and self.rule == "min":
            if found.noisy:
                mean = average_folds(task, found)
            elif found.whole is not None:
                mean = least_squares_on_path(task, path, time, found.whole)
        return Choice(path, time, scores, mean)

    def search(self, task: PathTask) -> FoldsFound:
        """Every leg in every fold."""
        patience = positive(self.patience, "patience")
        if self.rule not in ("min", "1se"):
            raise ValueError(f"rule must be 'min' or '1se', not {self.rule!r}.")
        masks = list(self._masks(task))
        task.design.expect(task.y, task.weight, masks)
        step = task.path(max_iter=1).step_size  # which the folds share
        grid = time_grid(int(task.options["max_iter"]))
        store = self._store(task, masks)
        parallel = Parallel(n_jobs=self.n_jobs, verbose=self.verbose, prefer=task.design.parallel)
        folds = Folds([_trial(task, held) for held in masks], parallel, store)
        reached = -1.0
        while True:
            name = f"patience-{patience:g}"
            if task.n_factors == 0 and not task.groups.overlapping and task.design.batches(len(masks)):
                found = kept(store, f"folds-{name}", _run_folds, task, masks, grid, step, patience)
                runs = [as_run(run) for run in found]
            else:
                runs = folds.run(name, [(patience, grid, step)] * len(masks))
            first = FoldLeg(align(runs, grid, step), runs)
            legs = explore_folds(folds, name, first, self.patience, grid)
            last = float(first.errors.times[-1])
            # where another leg is better, it does not matter how the plain path would go on
            at_edge = choose_time(first.errors, "min") > EDGE * last and best_fold_leg(legs.legs) is first
            if not at_edge or last <= reached:
                return legs
            reached = last
            patience *= 2

    def _store(self, task: PathTask, masks: list[NDArray[np.bool_]]) -> Checkpoint | None:
        """Where finished folds of this very task are kept."""
        if self.checkpoint is None:
            return None
        data = fingerprint(task.design, task.y, task.weight)
        search = {
            "factors": task.n_factors,
            "restarts": task.restarts,
            "average": task.average,
            "patience": self.patience,
        }
        settings = dict(task.options) | search
        return Checkpoint.of(self.checkpoint, covey.__version__, data, task.groups, settings, masks)

    def _masks(self, task: PathTask) -> Iterator[Any]:
        for i, held in enumerate(task.design.folds(self.cv, task.y, self.cv_groups)):
            for name, part in (("held-out", held), ("training", ~held)):
                if task.on(part).n_effective <= 0:
                    raise ValueError(f"Fold {i} has no {name} rows of positive weight; use fewer folds.")
            yield held


def _trial(task: PathTask, held: Any) -> Trial:
    """Learn without the held-out rows, judge by them."""
    training = task.on(~held)
    return Trial(training, training.scorer(task.design, task.y, np.where(held, task.weight, 0.0)))


def _run_folds(
    task: PathTask, masks: list[NDArray[np.bool_]], grid: NDArray[np.int64], step_size: float, patience: float
) -> list[FoldRun]:
    """All folds as one batch, on the device of X; factors would differ between them."""
    monitors = [
        Monitor(task.scorer(task.design, task.y, np.where(held, task.weight, 0.0)), patience, task.groups.n_groups)
        for held in masks
    ]
    settings = {**task.options, "times": grid, "max_iter": int(grid[-1]), "step_size": step_size}
    weight = np.column_stack([np.where(held, 0.0, task.weight) for held in masks])
    paths = group_paths(task.design, task.y, task.groups, sample_weight=weight, stop=monitors, **settings)
    return [
        FoldRun(
            monitor.times, monitor.errors, monitor.reached if path.status == "stopped" else np.inf, path.entered, []
        )
        for monitor, path in zip(monitors, paths, strict=True)
    ]
