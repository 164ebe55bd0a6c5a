"""Select one model for a problem, with everything that describes it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from covey.designs import Design
from covey.groups import Groups
from covey.limit.likelihood import SEPARATED_RIDGE
from covey.limit.lockstep import as_path
from covey.limit.posed import Posed, near_limits
from covey.limit.posing import pose
from covey.losses import Loss, Squared
from covey.path import Path
from covey.selection.criteria import TRAINING, Criterion, Discrepancy, InformationCriterion, training_table
from covey.selection.fitting_squares import MOST_ROWS
from covey.selection.recipe import Cleaned, Recipe
from covey.selection.search import Found, Model, cleaned_model, search
from covey.selection.splitting import Folds, HoldOut, counts
from covey.selection.thresholds import THRESHOLDS, Thresholds
from covey.threads import fitting_threads
from covey.validation import FloatArray, whole

__all__ = ["Problem", "Selected", "Selection", "read_selection", "select"]


Selection = Folds | HoldOut | Criterion


def read_selection(selection: Any, random_state: Any = None, labels: Any = None) -> Selection:
    """Convert the ``selection=`` argument to a rule.

    >>> read_selection(5)
    Folds(cv=5, labels=None, random_state=None)
    >>> read_selection("ebic")
    InformationCriterion(criterion='ebic', gamma=1.0)
    """
    if isinstance(selection, HoldOut):
        return replace(selection, random_state=random_state) if selection.random_state is None else selection
    if isinstance(selection, Folds):
        return replace(selection, labels=labels) if selection.labels is None else selection
    if isinstance(selection, Criterion):
        return selection
    if isinstance(selection, int | np.integer) and not isinstance(selection, bool):
        folds = whole(int(selection), "selection as a number of folds", least=2)
        return Folds(folds, labels, random_state)
    if isinstance(selection, str):
        if selection == "holdout":
            seed = check_random_state(0 if random_state is None else random_state).randint(2**31 - 1)
            return HoldOut(random_state=seed)
        if selection in ("bic", "ebic", "gcv"):
            return InformationCriterion(cast(Any, selection))
        if selection == "discrepancy":
            return Discrepancy()
    elif hasattr(selection, "split") or (hasattr(selection, "__iter__") and not isinstance(selection, dict)):
        return Folds(selection, labels, random_state)
    raise ValueError(
        "selection must be a number of folds, a splitter or an iterable of (train, test), 'holdout', 'ebic', 'bic', "
        "'gcv', 'discrepancy', or an object of covey.selection such as HoldOut(...) or Size(k), not "
        f"{selection!r}."
    )


@dataclass(frozen=True)
class Problem:
    """A regression problem in the user's terms.

    Attributes
    ----------
    design, y, weight
        X, the response, and the weights of the rows.
    groups : Groups
    always : list of int
        Groups that are in every model.
    options : dict
        ``group_weights``, ``standardize``, ``fit_intercept`` and ``factors``, as in `covey.limit_path`.
    loss : Loss
    offset : row vector, ndarray of shape (n_rows, n_outputs), or None
    """

    design: Design
    y: Any
    weight: Any
    groups: Groups
    always: list[int]
    options: dict[str, Any]
    loss: Loss = field(default_factory=Squared)
    offset: Any = None


@dataclass(frozen=True)
class Selected:
    """The selected model, and how it was selected.

    Attributes
    ----------
    own : ndarray, shape (n_outputs, sum of the groups' sizes)
        Coefficients group by group; with overlapping groups, a shared column has one per group, and they add up.
    coef : ndarray, shape (n_outputs, n_columns)
        Coefficients of the columns of X.
    intercept : ndarray, shape (n_outputs,)
    order : list of int
        The groups in the model, in the order in which they woke up.
    strengths : ndarray, shape (n_groups,)
        The standard deviation of each group's contribution to the prediction, if groups are orthonormalised.
    path : Path
        The path on all rows; its last model is the selected one.
    candidates : DataFrame
        All candidates, with the chosen one marked.
    frequencies : ndarray of int, shape (n_groups,), or None
        In how many scored splits the chosen recipe has each group.
    n_splits : int
        The number of scored splits.
    recipe : str
        A description of the model.
    shrunk : bool
        Whether coefficients are shrunk: a ridge or a mean of models was chosen.
    """

    own: FloatArray
    coef: FloatArray
    intercept: FloatArray
    order: list[int]
    strengths: FloatArray
    path: Path
    candidates: pd.DataFrame
    frequencies: FloatArray | None
    n_splits: int
    recipe: str
    shrunk: bool


def select(
    problem: Problem,
    selection: Selection,
    rule: str = "min",
    average: bool = False,
    thresholds: Thresholds = THRESHOLDS,
) -> Selected:
    """Select a model by held-out rows or by a criterion."""
    with fitting_threads(problem.design.shape, problem.design.on_device):
        if isinstance(selection, Folds | HoldOut):
            return _by_judge(problem, selection, rule, average, thresholds)
        return _by_criterion(problem, selection)


def _by_judge(
    problem: Problem, selection: Folds | HoldOut, rule: str, average: bool, thresholds: Thresholds
) -> Selected:
    _say_what_is_left_out(problem.design)
    parts = selection.parts(problem.design, problem.y, problem.weight, problem.loss)
    posed = pose(
        problem.design, problem.y, problem.groups, problem.weight, parts.weights, parts.counts, parts.splits,
        validation=parts.validation, loss=problem.loss, offset=problem.offset, **problem.options,
    )  # fmt: skip
    found = search(posed, problem.always, thresholds)
    verdict = found.verdict()
    chosen = verdict.choose(rule, thresholds)
    weights = verdict.weights if average else np.eye(len(verdict.recipes))[chosen]
    squared = isinstance(problem.loss, Squared)
    unit = float(posed.scale[0] ** 2) if squared else 1.0
    candidates = pd.DataFrame(
        {
            "recipe": [recipe.text(problem.loss.unpenalised) for recipe in verdict.recipes],
            "groups": [_n_groups(found, recipe) for recipe in verdict.recipes],
            "mse" if squared else "deviance": verdict.errors * unit,
            "standard_error": verdict.doubts * unit,
            **{f"fold_{s}": errors for s, errors in enumerate(verdict.by_split.T * unit)},
            "weight": weights,
            "chosen": weights > 0 if average else np.arange(len(verdict.recipes)) == chosen,
        },
        copy=False,
    )
    used = np.flatnonzero(weights)
    assert found.paths is not None
    path = as_path(found.paths, found.final, problem.groups)
    model = _mean(posed, [(found.model(verdict.recipes[i]), weights[i]) for i in used])
    if used.size > 1:
        model = _in_order(model, path, posed)
    frequencies = np.zeros(problem.groups.n_groups, dtype=int)
    for split in found.judged:
        seen = {l for i in used for l in found.groups(verdict.recipes[i], split)}
        frequencies[list(seen)] += 1
    recipes = [verdict.recipes[i] for i in used]
    separated = len(recipes) == 1 and found.is_separated(recipes[0])
    if average and used.size > 1:
        text = f"a mean of {used.size} models"
    else:
        text = _in_words(verdict.recipes[chosen], problem.loss, separated)
    ridges = any(not isinstance(r, Cleaned) or r.ridge > 0 for r in recipes)
    shrunk = ridges or separated or used.size > 1
    return _published(problem.groups, posed, model, path, candidates, frequencies, len(found.judged), text, shrunk)


def _say_what_is_left_out(design: Design) -> None:
    """Warn, before X is read, if it lacks candidates that it would have in memory."""
    n, p = design.shape
    if not design.reads_columns and p > near_limits(n)[1] and n <= MOST_ROWS:
        warnings.warn(
            f"{design.name} is not in memory, so ridges on all {p} columns are not among the candidates; they matter "
            f"when noise is strong and many groups have small effects. Load {design.name} into memory to include them, "
            "or choose by selection='ebic', which tries none.",
            stacklevel=5,
        )


def _by_criterion(problem: Problem, rule: Criterion) -> Selected:
    weight = problem.weight
    posed = pose(
        problem.design, problem.y, problem.groups, weight, [weight],
        counts(weight, [weight], problem.loss, problem.y), [TRAINING],
        loss=problem.loss, offset=problem.offset, **problem.options,
    )  # fmt: skip
    made = training_table(posed, problem.always, rule)
    chosen = made.choose(rule)
    candidates = made.frame(rule).assign(chosen=np.arange(made.rss.size) == chosen)
    recipe = made.models.recipes[chosen]
    model = cleaned_model(made.paths.near, made.models, made.paths.groups(0), recipe)
    path = as_path(made.paths, 0, problem.groups)
    mean = _mean(posed, [(model, 1.0)])
    separated = recipe in made.models.separated
    text = _in_words(recipe, problem.loss, separated)
    return _published(problem.groups, posed, mean, path, candidates, None, 0, text, separated)


def _in_words(recipe: Recipe, loss: Loss, separated: bool) -> str:
    """A description of a model, which mentions the small ridge if the maximum likelihood is infinite."""
    if not separated:
        return recipe.text(loss.unpenalised)
    return f"{recipe.text(f'ridge {SEPARATED_RIDGE:g}')} ({loss.unpenalised} is infinite on them)"


@dataclass(frozen=True)
class _Mean:
    """A model, or a mean of models, on all columns, group by group; shape (n_outputs, n_columns)."""

    own: FloatArray
    intercept: FloatArray
    order: list[int]


def _mean(posed: Posed, parts: list[tuple[Model, float]]) -> _Mean:
    m = posed.scale.size
    own, level = np.zeros((m, posed.problem.layout.members.size)), np.zeros(m)
    order: dict[int, None] = {}
    for model, weight in sorted(parts, key=lambda part: -part[1]):
        own[:, model.columns] += weight * model.coef
        level += weight * model.intercept
        order.update(dict.fromkeys(model.groups))
    return _Mean(own, level, list(order))


def _in_order(mean: _Mean, path: Path, posed: Posed) -> _Mean:
    """A mean of models with its groups in the order of the path, then the others, strongest first."""
    strengths = _strengths(posed, mean)
    woke = [l for l, _ in path.entered if l in set(mean.order)]
    others = sorted(set(mean.order) - set(woke), key=lambda l: -strengths[l])
    return replace(mean, order=[*woke, *others])


def _published(
    groups: Groups,
    posed: Posed,
    mean: _Mean,
    path: Path,
    candidates: pd.DataFrame,
    frequencies: FloatArray | None,
    n_splits: int,
    recipe: str,
    shrunk: bool,
) -> Selected:
    """The model with its path, converted from group by group to the columns of X."""
    own = mean.own if groups.overlapping else mean.own[:, groups.members]
    coef = np.array([groups.from_contiguous(one) for one in own])
    strengths = _strengths(posed, mean)
    ended = path.ending_in(coef, mean.intercept, strengths, own if groups.overlapping else None)
    return Selected(
        own, coef, mean.intercept, mean.order, strengths, ended, candidates, frequencies, n_splits, recipe, shrunk
    )


def _strengths(posed: Posed, mean: _Mean) -> FloatArray:
    """The norm of each group in working coordinates, in units of the response."""
    problem = posed.problem
    # a group that is always in the model may have only constant columns, and so no norm
    which = np.array([l for l in mean.order if problem.ranks[l] > 0], dtype=np.intp)
    out = np.zeros(problem.ranks.size)
    if which.size:
        sizes = Groups.from_sizes(problem.ranks[which])
        # `from_user` divides by the scale of the working problem's response
        norms = [sizes.norms(problem.from_user(which, own)) * problem.y_scale for own in mean.own]
        out[which] = np.sqrt(np.sum(np.square(norms), axis=0)) if len(norms) > 1 else norms[0]
    return out


def _n_groups(found: Found, recipe: Recipe) -> int:
    if isinstance(recipe, Cleaned):
        return recipe.size + len(found.always)
    return found.posed.problem.ranks.size
