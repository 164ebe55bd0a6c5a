"""Averaging: where noise is strong, the mean of the models that the judging rows can hardly tell apart.

Where much of the response is noise, the judging rows choose one of many models as much by luck as by merit. The mean of
all, each weighted by the exponential of its error, is hardly worse than the best of them and mostly better
(docs/decisions/0016). It is a linear model like any of them. Where noise is weak one model is clearly best, and taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import pandas as pd

from covey.engine.reweighting import Reweighting
from covey.path import Path
from covey.preprocess import WorkingProblem
from covey.stopping.base import Average, PathTask
from covey.stopping.search import DENSE_SCALING, Cleaned, Found, Kept, Leg, Trial, kept_coefficients
from covey.validation import FloatArray

__all__ = [
    "PENALTIES",
    "Model",
    "Part",
    "Sharpened",
    "average",
    "chosen",
    "judge_sharpened",
    "kept_model",
    "mean_of",
    "model_on",
    "parts_of",
    "sharpen",
    "weigh",
]

# A model whose squared error is larger by this many noise variances in all, over the rows, counts e times less. With
# Gaussian noise the average is then within its bounds for any set of models.
TEMPERATURE = 4.0

# Models that count less than this are left out: each has to be fitted again on all rows.
LEAST_WEIGHT = 0.01

# Penalties of the reweighted ridge regressions that sharpen a dense network, and how often they are reweighted.
PENALTIES, ROUNDS = (0.01, 0.03, 0.1, 0.3), 4


# Coefficients of the columns of X, less what factors explain, and the intercept.
Model = tuple[FloatArray, float]


@dataclass(frozen=True)
class Sharpened:
    """A dense leg's model, reweighted with a penalty: as it was judged."""

    leg: Leg
    penalty: float
    model: Model
    error: float


Part = Leg | Cleaned | Sharpened
Judged = TypeVar("Judged", bound="HasError")


class HasError(Protocol):
    """Something that was judged."""

    @property
    def error(self) -> float:
        """The mean squared error on the judging rows."""
        ...


def weigh(errors: Sequence[float], n_rows: float) -> FloatArray:
    """Exponential weights, adding up to one; zero below `LEAST_WEIGHT`."""
    found = np.asarray(errors, dtype=float)
    excess = (found / found.min() - 1.0) * n_rows / TEMPERATURE
    weights = np.exp(-excess)
    weights /= weights.sum()
    # the best one always counts
    weights[(weights < LEAST_WEIGHT) & (weights < weights.max())] = 0.0
    return weights / weights.sum()


def parts_of(trial: Trial, found: Found) -> list[Part]:
    """All models of a search that are worth averaging."""
    sharpened = [part for leg in found.legs if leg.dense for part in _sharpenings(trial, leg)]
    # several ways to clean may keep the same groups, which would count as often
    known = {_key(leg.start) for leg in found.legs if leg.settled and leg.start is not None}
    cleaned = {_key(part.kept): part for part in found.cleaned if _key(part.kept) not in known}
    return [*found.legs, *cleaned.values(), *sharpened]


def _key(kept: Kept) -> tuple[frozenset[int], float]:
    return frozenset(kept.groups), kept.ridge


def _sharpenings(trial: Trial, leg: Leg) -> list[Part]:
    models, errors = judge_sharpened(trial, leg.path, leg.time)
    return [Sharpened(leg, *found) for found in zip(PENALTIES, models, errors, strict=False)]


def judge_sharpened(trial: Trial, path: Path, time: float) -> tuple[list[Model], list[float]]:
    """A dense network's model at some time, sharpened with all penalties, and the errors; none where too dear."""
    models = sharpen(trial.task, path, time, PENALTIES)
    if not models:
        return [], []
    columns = np.arange(trial.task.groups.n_columns)
    coefs, levels = np.array([coef for coef, _ in models]), np.array([level for _, level in models])
    return models, trial.scorer.errors(columns, coefs, levels).tolist()


def sharpen(task: PathTask, path: Path, time: float, penalties: Sequence[float]) -> list[Model]:
    """The models, one for each penalty, that a dense network's model at some time becomes; none where too dear."""
    problem = task.scaled(DENSE_SCALING).runner.problem
    if not Reweighting.affordable(problem):
        return []
    assert path.strengths is not None
    norms = path.strengths[[path.index(time)]].toarray().ravel() / problem.y_scale
    start = Reweighting(problem, norms)
    found = [problem.to_columns(start.fit(penalty, ROUNDS)) * problem.y_scale for penalty in penalties]
    return [(_in_design(task, coef), _level(problem, coef)) for coef in found]


def _in_design(task: PathTask, coef: FloatArray) -> FloatArray:
    """Coefficients of the columns of X, where groups that overlap have copies of them."""
    groups = task.groups
    return np.bincount(groups.members, coef, groups.n_columns).astype(float) if groups.overlapping else coef


def _level(problem: WorkingProblem, coef: FloatArray) -> float:
    """The intercept that goes with coefficients of the problem's columns."""
    return problem.y_mean - float(coef[problem.layout.members] @ problem.mean)


def average(
    task: PathTask, parts: Sequence[Part], n_rows: float, again: Callable[[Leg], Path] | None = None
) -> Average | None:
    """The mean of some models; None where there is but one.

    Parameters
    ----------
    task : PathTask
        The rows to fit on.
    parts : sequence of Leg, Cleaned or Sharpened
    n_rows : float
        The number of rows that judged them.
    again : callable, optional
        Runs a leg on the rows of the task, where these are others than those that the parts were fitted on.
    """
    if len(parts) == 1:
        return None
    used = chosen(parts, n_rows)
    models = [_model(task, part) for _, part in used] if again is None else _fit_again(task, used, again)
    return mean_of(task, [(_name(part), part.error, w, m) for (w, part), m in zip(used, models, strict=True)])


def chosen(parts: Sequence[Judged], n_rows: float) -> list[tuple[float, Judged]]:
    """The parts that count, each with its weight, the heaviest first."""
    weights = weigh([part.error for part in parts], n_rows)
    return [(float(weights[i]), parts[i]) for i in np.argsort(-weights, kind="stable") if weights[i] > 0]


def mean_of(task: PathTask, models: Sequence[tuple[str, float, float, Model]]) -> Average:
    """The mean of models, each with its name, its error and its weight before it."""
    coef, intercept, rows = np.zeros(task.groups.n_columns), 0.0, []
    for name, error, weight, (own, level) in models:
        coef += weight * own
        intercept += weight * level
        rows.append((name, int(np.count_nonzero(task.groups.norms(own))), error, weight))
    return Average(coef, float(intercept), pd.DataFrame(rows, columns=["model", "groups", "mse", "weight"]))


def _model(task: PathTask, part: Part) -> Model:
    """The model as it was judged."""
    if isinstance(part, Sharpened):
        return part.model
    if isinstance(part, Leg):
        return model_on(part.path, part.time)
    coef = np.zeros(task.groups.n_columns)
    coef[part.columns] = part.coef
    return coef, part.intercept


def _fit_again(task: PathTask, used: Sequence[tuple[float, Part]], again: Callable[[Leg], Path]) -> list[Model]:
    """The models fitted on the rows of a task."""
    legs = {part.leg if isinstance(part, Sharpened) else part for _, part in used if not isinstance(part, Cleaned)}
    paths = {leg: again(leg) for leg in legs}
    sharpened: dict[tuple[Leg, float], Model] = {}
    for leg in legs:
        penalties = [part.penalty for _, part in used if isinstance(part, Sharpened) and part.leg is leg]
        models = sharpen(task, paths[leg], leg.time, penalties) if penalties else []
        sharpened.update({(leg, p): model for p, model in zip(penalties, models, strict=True)})
    out = []
    for _, part in used:
        if isinstance(part, Cleaned):
            out.append(kept_model(task, part.kept))
        elif isinstance(part, Sharpened):
            out.append(sharpened[part.leg, part.penalty])
        else:
            out.append(model_on(paths[part], part.time))
    return out


def kept_model(task: PathTask, kept: Kept) -> Model:
    """Least squares, or a ridge, on some groups."""
    problem = task.runner.problem
    coef = kept_coefficients(problem, kept)
    return _in_design(task, coef), _level(problem, coef)


def model_on(path: Path, time: float) -> Model:
    """The model of a path at some time."""
    at = path.index(time)
    return path.coefs[[at]].toarray().ravel(), float(path.intercepts[at])


def _name(part: Part) -> str:
    if isinstance(part, Cleaned):
        return part.kept.name
    if isinstance(part, Sharpened):
        return f"{_name(part.leg)}, reweighted with {part.penalty:g}"
    if part.dense:
        return f"network from {part.options['init_scale']:g}"
    return "network" if part.start is None else "network from kept groups"
