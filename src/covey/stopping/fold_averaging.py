"""Averages with folds as judges: each part of the mean is fitted on all rows as the folds agreed on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covey.path import Path
from covey.stopping.averaging import PENALTIES, WHOLE, chosen, kept_model, mean_of, model_on, sharpen
from covey.stopping.base import Average, PathTask
from covey.stopping.fold_errors import choose_time
from covey.stopping.fold_refit import cut_on_all_rows, run_on_all_rows
from covey.stopping.fold_search import FoldCleaned, FoldLeg, FoldsFound
from covey.stopping.legs import Kept

__all__ = ["average_folds", "least_squares_on_path"]


@dataclass(frozen=True)
class FoldSharpened:
    """A dense leg's model, reweighted with a penalty."""

    leg: FoldLeg
    penalty: float
    error: float


def average_folds(task: PathTask, found: FoldsFound) -> Average | None:
    """The mean of all that was found, each fitted on all rows as the folds agreed on it; None where it is but one."""
    sharpened = [
        FoldSharpened(leg, penalty, float(np.mean(errors)))
        for leg in found.legs
        for penalty, *errors in zip(PENALTIES, *(run.sharpened for run in leg.runs), strict=False)
    ]
    # several prefixes may come to the same groups in every fold, which would count as often
    cleaned = {(part.cut.n_kept, part.cut.ridge, part.error): part for part in found.cleaned}
    parts: list[FoldLeg | FoldCleaned | FoldSharpened] = [*found.legs, *cleaned.values(), *sharpened]
    if len(parts) == 1:
        return None
    used = chosen(parts, task.n_rows)
    paths: dict[int, Path] = {}

    def path_of(leg: FoldLeg) -> Path:
        if id(leg) not in paths:
            paths[id(leg)] = run_on_all_rows(task, leg)
        return paths[id(leg)]

    models = []
    for weight, part in used:
        if isinstance(part, FoldCleaned):
            kept = cut_on_all_rows(task, part.leg, part.cut)
            model, name = kept_model(task, kept), kept.name
        elif isinstance(part, FoldSharpened):
            time = choose_time(part.leg.errors, "min")
            model = sharpen(task, path_of(part.leg), time, [part.penalty])[0]
            name = f"network from {part.leg.init_scale:g}, reweighted with {part.penalty:g}"
        else:
            model = model_on(path_of(part), choose_time(part.errors, "min"))
            kind = "" if part.init_scale is None else f" from {part.init_scale:g}"
            name = f"network{kind}" + (" from kept groups" if part.cuts else "")
        models.append((name, part.error, weight, model))
    return mean_of(task, models)


def least_squares_on_path(task: PathTask, path: Path, time: float, error: float) -> Average:
    """Least squares on the groups that are awake at some time, with common factors left in X."""
    kept = Kept(tuple(l for l, t in path.entered if t <= time), 0.0)
    return mean_of(task, [(kept.name + WHOLE, error, 1.0, kept_model(task.whole, kept))])
