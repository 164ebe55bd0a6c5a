"""Select one model for a problem, with everything that describes it."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covey.designs import Design
from covey.designs.rows import count_rows
from covey.groups import Groups
from covey.losses import Loss
from covey.path import Path
from covey.progress import tell
from covey.search.constraints.binding import binding_table
from covey.search.criteria import Criterion, Discrepancy, InformationCriterion, Size, training_table
from covey.search.dense import Reweighted, dense_is_left_out, score_dense
from covey.search.held_out import FoldModels, fold_models
from covey.search.judge import Board, Verdict
from covey.search.limit_path import path_of
from covey.search.posed import Posed, pose
from covey.search.problem import Parts, Problem
from covey.search.recipes import Model, Recipe
from covey.search.rules import RULES, Rule
from covey.search.search import Found
from covey.search.settings import SETTINGS, Settings
from covey.search.splits import Folds, HoldOut, SplitsLike, counts
from covey.search.table import MOST_ROWS, Table, near_limits
from covey.threads import fitting_threads
from covey.validation import FloatArray, PerRow, whole

__all__ = ["Selected", "Selection", "SelectionLike", "combined_strengths", "read_selection", "select"]

Selection = Folds | HoldOut | Criterion
# What is accepted as ``selection=``.
SelectionLike: TypeAlias = Selection | SplitsLike | str


def read_selection(selection: SelectionLike, random_state: int | None = None, labels: PerRow = None) -> Selection:
    """Convert the ``selection=`` argument to a rule.

    >>> read_selection(5)
    Folds(cv=5, labels=None, random_state=None, deals=8)
    >>> read_selection("ebic")
    InformationCriterion(criterion='ebic', gamma=1.0)
    """
    if isinstance(selection, HoldOut):
        return replace(selection, random_state=random_state) if selection.random_state is None else selection
    if isinstance(selection, Folds):
        if labels is not None and selection.labels is not None:
            raise ValueError("The rows have labels twice: leave out split_groups=, or labels= of Folds.")
        seed = random_state if selection.random_state is None else selection.random_state
        return replace(selection, labels=selection.labels if labels is None else labels, random_state=seed)
    if isinstance(selection, Criterion):
        return selection
    if isinstance(selection, int | np.integer) and not isinstance(selection, bool):
        folds = whole(int(selection), "selection as a number of folds", least=2)
        return Folds(folds, labels, random_state)
    if isinstance(selection, str):
        if selection == "holdout":
            return HoldOut(random_state=random_state)
        if selection in ("bic", "ebic", "gcv"):
            return InformationCriterion(cast(Literal["bic", "ebic", "gcv"], selection))
        if selection == "discrepancy":
            return Discrepancy()
    elif hasattr(selection, "split") or (hasattr(selection, "__iter__") and not isinstance(selection, dict)):
        return Folds(selection, labels, random_state)
    raise ValueError(
        "selection must be a number of folds, a splitter or an iterable of (train, test), 'holdout', 'ebic', 'bic', "
        "'gcv', 'discrepancy', covey.selection.HoldOut(...) or covey.selection.Size(k), not "
        f"{selection!r}."
    )


@dataclass(frozen=True)
class Selected:
    """The selected model, and how it was selected.

    Attributes
    ----------
    by_group : ndarray, shape (n_outputs, sum of the groups' sizes)
        Coefficients group by group; with overlapping groups, a shared column has one per group, and they add up.
    coef : ndarray, shape (n_outputs, n_columns)
        Coefficients of the columns of X.
    intercept : ndarray, shape (n_outputs,)
    groups : list of int
        The groups in the model.
    loss : Loss
        With its parameters, if it has any.
    strengths : ndarray, shape (n_groups,)
        The standard deviation of each group's contribution to the prediction, if groups are orthonormalised; over
        classes, or over several responses in units of their standard deviations.
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
    n_deals, settled : int, bool
        How often the rows were dealt to folds, and whether the choice would be much the same without any part of them.
    rivals : DataFrame or None
        The sets of groups that the held-out rows cannot tell from the best, and those that folds select, the chosen one
        first.
    price : (float, float) or None
        By what share the best model on all groups predicts better, and the standard error of that; None if there is no
        such model or it was chosen.
    by_output : ndarray, shape (n_outputs, n_groups)
        The same as `strengths` for each output, in its own units.
    output_units : ndarray, shape (n_outputs,)
        What `by_output` is divided by in `strengths`.
    met : sequence of pairs of int
        The pairs of `Problem.pairs` that have become groups.
    folds : FoldModels or None
        The model without the rows of each fold; None if no rows were held out.
    binding : DataFrame or None
        Which constraints bind, if there are any; see `covey.search.constraints.binding`.
    """

    by_group: FloatArray
    coef: FloatArray
    intercept: FloatArray
    groups: list[int]
    loss: Loss
    strengths: FloatArray
    by_output: FloatArray
    output_units: FloatArray
    path: Path
    candidates: pd.DataFrame
    recipe: str
    shrunk: bool
    met: Sequence[tuple[int, int]]
    binding: pd.DataFrame | None
    frequencies: NDArray[np.intp] | None = None
    n_splits: int = 0
    n_deals: int = 0
    settled: bool = False
    rivals: pd.DataFrame | None = None
    price: tuple[float, float] | None = None
    folds: FoldModels | None = None


def select(problem: Problem, selection: Selection, rule: str = "select", settings: Settings = SETTINGS) -> Selected:
    """Select a model by held-out rows or by a criterion."""
    with fitting_threads(problem.design.shape, problem.design.on_device):
        if isinstance(selection, Criterion):
            return _by_criterion(problem, selection, settings)
        if rule == "select":  # models on all groups are no candidates: plain ridges say what sparsity costs
            settings = replace(settings, reweightings=0)
        else:
            _say_what_is_left_out(problem.design, settings)
        data = problem.design, problem.y, problem.weight, problem.loss
        first = selection.parts(*data)
        posed = pose(problem, first, settings)
        found = Found(Table(posed), problem.always, problem.recipes)
        while found.starts:
            found.run_paths()
            found.add_round()
        score_dense(found)
        found.score_further()
        choice = RULES[rule](found)
        everything = choice.judge.board(found.recipes)
        first_verdict, narrowed = everything.verdict(), True
        while found.n_deals < selection.most_deals and not choice.is_settled:
            tell("the verdict is open: folds dealt again", "deal", found.n_deals + 1, selection.most_deals)
            try:
                parts = selection.parts(*data, deal=found.n_deals, keys=first.keys)
            except ValueError:  # rows of a class or with an event are too few for other folds
                break
            if parts.is_same(first):  # every fold is one row, or one of the few distinct responses
                break
            found.deal_again(parts, choice.in_contention if narrowed else found.recipes)
            choice = RULES[rule](found)
            if narrowed and choice.is_overtaken(first_verdict):  # once more from the first deal on, with all recipes
                found.forget_deals()
                choice, narrowed = RULES[rule](found), False
        return _selected(problem.with_pairs(posed.met), choice, everything)


def _selected(problem: Problem, choice: Rule, everything: Board) -> Selected:
    """The chosen model, and how it was chosen; `everything` has the scores of all candidates in the first deal."""
    found, verdict, weights, loss = choice.found, choice.verdict, choice.weights, problem.loss
    used = np.flatnonzero(weights)
    models = []
    for i in used:
        models.append(verdict.recipes[i].fit(found.final))
    path = path_of(found.posed, found.knots, problem.groups)
    one = _in_words(verdict.recipes[used[0]], models[0], loss)
    text = one if used.size == 1 else f"a mean of {used.size} models"
    candidates = _candidates(problem, choice, everything.verdict(), text)
    published = replace(
        _published(problem, found.posed, models, weights[used], path, candidates, text),
        frequencies=choice.frequencies(),
        n_splits=len(found.scored),
        n_deals=found.n_deals,
        settled=choice.is_settled,
        folds=fold_models(problem.groups, choice),
    )
    if used.size > 1:
        return published
    recipe = verdict.recipes[used[0]]
    return replace(published, rivals=_rivals(problem, choice, recipe), price=_price(recipe, everything))


def _error_name(loss: Loss) -> str:
    return "mse" if loss.quadratic and not loss.vector else "deviance"


def _candidates(problem: Problem, choice: Rule, first: Verdict, chosen: str) -> pd.DataFrame:
    """All candidates with their scores, the chosen ones marked.

    Those that were left out after the first deal have the distance from the best that they had then. Where a likelihood
    is infinite, the chosen model has another name than its recipe.
    """
    last, loss, found = choice.verdict, problem.loss, choice.found
    unit, place = found.posed.error_unit, {recipe: i for i, recipe in enumerate(first.recipes)}
    at = [place[recipe] for recipe in last.recipes]
    errors = first.errors + (last.errors[last.best] - first.errors[at[last.best]])
    standard_errors, weights = first.standard_errors.copy(), np.zeros(errors.size)
    errors[at], standard_errors[at], weights[at] = last.errors, last.standard_errors, choice.weights
    texts = [recipe.text(loss.unpenalised) for recipe in first.recipes]
    if np.count_nonzero(weights) == 1:
        texts[int(np.flatnonzero(weights)[0])] = chosen
    return pd.DataFrame(
        {
            "recipe": texts,
            "groups": [_n_groups(recipe, found) for recipe in first.recipes],
            _error_name(loss): errors * unit,
            "standard_error": standard_errors * unit,
            **{f"fold_{s}": values for s, values in enumerate(first.by_split.T * unit)},
            "weight": weights,
            "chosen": weights > 0,
        },
        copy=False,
    )


def _n_groups(recipe: Recipe, found: Found) -> int:
    """The number of groups of a candidate, those that are always in included."""
    if found.posed.pieces:
        return found.posed.n_mains if recipe.n_groups is None else len(found.groups(recipe, found.final))
    return found.posed.n_groups if recipe.n_groups is None else recipe.n_groups + len(found.final.always)


def _rivals(problem: Problem, choice: Rule, chosen: Recipe) -> pd.DataFrame:
    """Sets of groups that held-out rows cannot tell from the best, and sets that folds select; the chosen one first."""
    found, verdict, names = choice.found, choice.verdict, problem.groups.names
    always, near = set(problem.always), np.flatnonzero(verdict.equal)
    selected = frozenset(found.groups(chosen, found.final))
    best: dict[frozenset[int], int] = {selected: verdict.recipes.index(chosen)}
    for i in near[np.argsort(verdict.errors[near], kind="stable")]:
        if verdict.recipes[i].n_groups is not None:
            best.setdefault(frozenset(found.groups(verdict.recipes[i], found.final)), int(i))
    counts = Counter(choice.in_splits)
    sets = [*best, *(one for one, _ in counts.most_common() if one not in best)]
    unit, nan = found.posed.error_unit, [np.nan] * (len(sets) - len(best))
    return pd.DataFrame(
        {
            "groups": [[names[l] for l in sorted(one - always)] for one in sets],
            "without": [[names[l] for l in sorted(selected - one)] for one in sets],
            "instead": [[names[l] for l in sorted(one - selected)] for one in sets],
            _error_name(problem.loss): [*(verdict.errors[list(best.values())] * unit), *nan],
            "standard_error": [*(verdict.standard_errors[list(best.values())] * unit), *nan],
            "folds": [counts[one] for one in sets],
        }
    )


def _price(chosen: Recipe, everything: Board) -> tuple[float, float] | None:
    """By what share the best model on all groups predicts better than a sparse one, and the standard error of that."""
    dense = [i for i, recipe in enumerate(everything.recipes) if isinstance(recipe, Reweighted)]
    # survival models are compared by differences of partial likelihoods, and shares of those mean nothing
    if chosen.n_groups is None or not dense or everything.scores[0].loss.coupled:
        return None
    verdict, at = everything.verdict(), everything.recipes.index(chosen)
    best = min(dense, key=lambda i: verdict.errors[i])
    error = float(verdict.errors[at])
    if error == 0:
        return None
    standard_error = 2 * np.sqrt(verdict.noise * everything.apart(best)[at] / everything.n_rows)
    return float((error - verdict.errors[best]) / error), float(standard_error / error)


def _say_what_is_left_out(design: Design, settings: Settings) -> None:
    """Warn, before X is read, if it lacks candidates that it would have in memory."""
    n, p = design.shape
    if n <= MOST_ROWS and p > near_limits(n)[1] and dense_is_left_out(design, settings):
        warnings.warn(
            f"{design.name} is not in memory and too large to be read for ridges on all {p} columns, so they are not "
            "among the candidates; they matter when noise is strong and many groups have small effects. Load "
            f"{design.name} into memory to include them, or choose by rule='select', which needs none.",
            stacklevel=4,
        )


def _by_criterion(problem: Problem, rule: Criterion, settings: Settings) -> Selected:
    weight = np.asarray(problem.weight)
    (n_rows,) = counts(weight, np.where(weight > 0, 0, -1), problem.loss, problem.y)
    # all rows, scored on themselves
    posed = pose(problem, Parts.everything(weight, n_rows, (0,)), settings)
    table = training_table(posed, problem.always, rule)
    chosen = table.choose(rule)
    candidates = table.frame(rule).assign(chosen=np.arange(table.rss.size) == chosen)
    recipe, problem = table.recipes[chosen], problem.with_pairs(posed.met)
    n_chosen, n_others = int(table.sizes[chosen]), problem.groups.n_groups - len(problem.always)
    if isinstance(rule, Size) and n_chosen < rule.n_groups:
        why = f"there are only {n_others}" if n_chosen == n_others else "these rows allow no more"
        warnings.warn(
            f"selection=Size({rule.n_groups}) asks for {rule.n_groups} groups, and the model has {n_chosen}: {why}.",
            stacklevel=4,
        )
    model = recipe.fit(table.training)
    path = path_of(posed, table.knots, problem.groups)
    text = _in_words(recipe, model, problem.loss)
    candidates.loc[chosen, "recipe"] = text
    return _published(problem, posed, [model], np.ones(1), path, candidates, text)


def _in_words(recipe: Recipe, model: Model, loss: Loss) -> str:
    """A description of a model, which mentions the small ridge if the maximum likelihood is infinite."""
    if not model.remark:
        return recipe.text(loss.unpenalised)
    return f"{recipe.text(model.remark)} ({loss.unpenalised} is infinite on them, or without the rows of a fold)"


def _published(
    problem: Problem,
    posed: Posed,
    models: Sequence[Model],
    weights: FloatArray,
    path: Path,
    candidates: pd.DataFrame,
    recipe: str,
) -> Selected:
    """A model, or the weighted mean of several, in the columns and units of the user."""
    groups, working, m = problem.groups, posed.working, posed.scale.size
    every, intercept = np.zeros((m, working.layout.members.size)), np.zeros(m)
    for model, weight in zip(models, weights, strict=True):
        columns, values, level = model.on_columns()
        every[:, columns] += weight * values
        intercept += weight * level
    inside = list(dict.fromkeys(l for model in models for l in model.groups))
    by_group = every if groups.overlapping else every[:, groups.members]
    coef = np.array([groups.from_contiguous(one) for one in by_group])
    # a group that is always in the model may have only constant columns, and so no norm
    which = np.array([l for l in inside if working.ranks[l] > 0], dtype=np.intp)
    by_output = np.zeros((m, working.ranks.size))
    for one, of_model in zip(by_output, every, strict=True) if which.size else ():
        # `from_user` divides by the scale of the working problem's response
        one[which] = Groups.from_sizes(working.ranks[which]).norms(working.from_user(which, of_model)) * working.y_scale
    strengths = combined_strengths(by_output, posed.strength_units)
    n_rows = count_rows(np.asarray(problem.weight, dtype=float))
    return Selected(
        by_group=by_group,
        coef=coef,
        intercept=intercept,
        groups=inside,
        loss=problem.loss,
        strengths=strengths,
        by_output=by_output,
        output_units=posed.strength_units,
        path=path.ending_in(coef, intercept, strengths, by_group if groups.overlapping else None),
        candidates=candidates,
        recipe=recipe,
        shrunk=len(models) > 1 or models[0].shrunk,
        met=tuple(posed.met),
        binding=None if posed.cone is None else binding_table(posed, every, intercept, n_rows),
    )


def combined_strengths(by_output: FloatArray, units: FloatArray) -> FloatArray:
    """One strength per group: over classes, or over several responses in units of their standard deviations."""
    return by_output[0] if len(by_output) == 1 else np.sqrt(np.sum(np.square(by_output / units[:, None]), axis=0))
