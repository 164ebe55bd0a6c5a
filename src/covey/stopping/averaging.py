"""Averaging: where noise is strong, the mean of the models that the judging rows can hardly tell apart.

Where much of the response is noise, the judging rows choose one of many models as much by luck as by merit. The mean of
all, each weighted by the exponential of its error, is hardly worse than the best of them and mostly better
(docs/decisions/0016). It is a linear model like any of them. Where noise is weak one model is clearly best, and taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import pandas as pd

from covey.engine.reweighting import Reweighting
from covey.path import Path
from covey.preprocess import WorkingProblem
from covey.stopping.base import Average, PathTask
from covey.stopping.keeping import kept_coefficients
from covey.stopping.legs import Cleaned, Kept, Leg, Trial
from covey.stopping.search import DENSE_SCALING, Found
from covey.validation import FloatArray

__all__ = [
    "PENALTIES",
    "WHOLE",
    "Model",
    "Part",
    "Sharpened",
    "average",
    "chosen",
    "clean_whole",
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

# How models are called that were fitted with common factors left in X.
WHOLE = ", factors left in"

# Penalties of the reweighted ridge regressions that sharpen a dense network, and how often they are reweighted.
PENALTIES, ROUNDS = (0.01, 0.05, 0.2), 4


class Model(NamedTuple):
    """Coefficients of the columns of X, the intercept, and how many groups there are to it beside common factors."""

    coef: FloatArray
    intercept: float
    n_groups: int


@dataclass(frozen=True)
class Sharpened:
    """A dense leg's model, reweighted with a penalty, as it was judged; `whole` if with common factors left in X."""

    leg: Leg
    penalty: float
    model: Model
    error: float
    whole: bool = False


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
    """All models of a search that are worth averaging.

    Where common factors were taken out of X, also the cleaned sets and the sharpened networks fitted with the factors
    left in: once it is known which groups matter, they may explain what the factors do better than these.
    """
    # several ways to clean may keep the same groups, which would count as often
    known = {leg.start.key for leg in found.legs if leg.settled and leg.start is not None}
    cleaned = list({part.kept.key: part for part in found.cleaned if part.kept.key not in known}.values())
    dense = [leg for leg in found.legs if leg.dense]
    parts: list[Part] = [*found.legs, *cleaned, *(part for leg in dense for part in _sharpenings(trial, leg))]
    whole = trial.whole
    if whole is not None:
        kept = {part.kept.key: part.kept for part in found.cleaned}
        parts += [clean_whole(whole, own) for own in kept.values()]
        parts += [replace(part, whole=True) for leg in dense for part in _sharpenings(whole, leg)]
    return parts


def clean_whole(whole: Trial, kept: Kept) -> Cleaned:
    """Least squares, or a ridge, on some groups, with common factors left in X."""
    model = kept_model(whole.task, kept)
    columns = np.flatnonzero(model.coef)
    error = whole.scorer.errors(columns, model.coef[None, columns], np.array([model.intercept]))[0]
    return Cleaned(kept, columns, model.coef[columns], model.intercept, float(error), whole=True)


def _sharpenings(trial: Trial, leg: Leg) -> list[Sharpened]:
    models, errors = judge_sharpened(trial, leg.path, leg.time)
    return [Sharpened(leg, *found) for found in zip(PENALTIES, models, errors, strict=False)]


def judge_sharpened(trial: Trial, path: Path, time: float) -> tuple[list[Model], list[float]]:
    """A dense network's model at some time, sharpened with all penalties, and the errors; none where too dear."""
    found = _sharpen(trial.task, path, time, PENALTIES)
    if not found:
        return [], []
    coefs, levels = np.array([coef for coef, _ in found]), np.array([level for _, level in found])
    errors = trial.scorer.errors(np.arange(coefs.shape[1]), coefs, levels).tolist()
    return [_as_model(trial.task, *model) for model in found], errors


def sharpen(task: PathTask, path: Path, time: float, penalties: Sequence[float]) -> list[Model]:
    """The models, one for each penalty, that a dense network's model at some time becomes; none where too dear."""
    return [_as_model(task, *model) for model in _sharpen(task, path, time, penalties)]


def _sharpen(task: PathTask, path: Path, time: float, penalties: Sequence[float]) -> list[tuple[FloatArray, float]]:
    """The same, as coefficients of the columns less what factors explain."""
    if not penalties:
        return []
    runner = task.scaled(DENSE_SCALING).runner
    problem = runner.problem
    if not Reweighting.affordable(problem):
        return []
    assert path.strengths is not None
    norms = path.strengths[[path.index(time)]].toarray().ravel()
    start = Reweighting(problem, norms / problem.y_scale, runner.working_rows)
    W, everyone = start.fit(penalties, ROUNDS), np.arange(problem.ranks.size)
    coefs, levels = problem.models_to_user(everyone, W)
    models = np.empty_like(coefs)
    models[:, problem.layout.members] = coefs
    return [(_in_design(task, coef), float(level)) for coef, level in zip(models, levels, strict=True)]


def _as_model(task: PathTask, coef: FloatArray, intercept: float) -> Model:
    return Model(*task.full(coef, intercept), int(np.count_nonzero(task.groups.norms(coef))))


def _in_design(task: PathTask, coef: FloatArray) -> FloatArray:
    """Coefficients of the columns of X, where groups that overlap have copies of them."""
    groups = task.groups
    return np.bincount(groups.members, coef, groups.n_columns).astype(float) if groups.overlapping else coef


def _level(problem: WorkingProblem, coef: FloatArray) -> float:
    """The intercept that goes with coefficients of the problem's columns."""
    return problem.y_mean - float(coef[problem.layout.members] @ problem.mean)


def average(
    task: PathTask, parts: Sequence[Part], n_rows: float, again: Callable[[Leg], Path] | None = None
) -> Average:
    """The mean of some models.

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
    used = chosen(parts, n_rows)
    models = [_model(task, part) for _, part in used] if again is None else _fit_again(task, used, again)
    return mean_of(task, [(_name(part), part.error, w, m) for (w, part), m in zip(used, models, strict=True)])


def chosen(parts: Sequence[Judged], n_rows: float) -> list[tuple[float, Judged]]:
    """The parts that count, each with its weight, the heaviest first."""
    parts = [part for part in parts if np.isfinite(part.error)]
    weights = weigh([part.error for part in parts], n_rows)
    return [(float(weights[i]), parts[i]) for i in np.argsort(-weights, kind="stable") if weights[i] > 0]


def mean_of(task: PathTask, models: Sequence[tuple[str, float, float, Model]]) -> Average:
    """The mean of models, each with its name, its error and its weight before it."""
    coef, intercept, rows = np.zeros(task.groups.n_columns), 0.0, []
    for name, error, weight, model in models:
        coef += weight * model.coef
        intercept += weight * model.intercept
        rows.append((name, model.n_groups, error, weight))
    return Average(coef, float(intercept), pd.DataFrame(rows, columns=["model", "groups", "mse", "weight"]))


def _model(task: PathTask, part: Part) -> Model:
    """The model as it was judged."""
    if isinstance(part, Sharpened):
        return part.model
    if isinstance(part, Leg):
        return model_on(part.path, part.time)
    coef = np.zeros(task.groups.n_columns)
    coef[part.columns] = part.coef
    return _as_model(task.whole if part.whole else task, coef, part.intercept)


def _fit_again(task: PathTask, used: Sequence[tuple[float, Part]], again: Callable[[Leg], Path]) -> list[Model]:
    """The models fitted on the rows of a task."""
    legs = {part.leg if isinstance(part, Sharpened) else part for _, part in used if not isinstance(part, Cleaned)}
    paths = {leg: again(leg) for leg in legs}
    sharpened: dict[tuple[Leg, float, bool], Model] = {}
    for leg in legs:
        for whole in (False, True):
            own = [part for _, part in used if isinstance(part, Sharpened) and (part.leg, part.whole) == (leg, whole)]
            found = sharpen(task.whole if whole else task, paths[leg], leg.time, [part.penalty for part in own])
            sharpened |= {(leg, part.penalty, whole): model for part, model in zip(own, found, strict=True)}
    out = []
    for _, part in used:
        if isinstance(part, Cleaned):
            out.append(kept_model(task.whole if part.whole else task, part.kept))
        elif isinstance(part, Sharpened):
            out.append(sharpened[part.leg, part.penalty, part.whole])
        else:
            out.append(model_on(paths[part], part.time))
    return out


def kept_model(task: PathTask, kept: Kept) -> Model:
    """Least squares, or a ridge, on some groups."""
    problem = task.runner.problem
    coef = kept_coefficients(problem, kept)
    return _as_model(task, _in_design(task, coef), _level(problem, coef))


def model_on(path: Path, time: float) -> Model:
    """The model of a path at some time."""
    at = path.index(time)
    columns, values, _ = path.stored(at)
    coef = np.zeros(path.coefs.shape[1])
    coef[columns] = values
    return Model(*path.model(at), int(np.count_nonzero(path.groups.norms(coef))))


def _name(part: Part) -> str:
    if isinstance(part, Cleaned):
        return part.kept.name + (WHOLE if part.whole else "")
    if isinstance(part, Sharpened):
        return f"{_name(part.leg)}, reweighted with {part.penalty:g}" + (WHOLE if part.whole else "")
    if part.dense:
        return f"network from {part.options['init_scale']:g}"
    return "network" if part.start is None else "network from kept groups"
