"""The search: limit paths of all splits, candidates made of them, one judge.

Hold-out is one split, cross-validation several; the last split is that of all rows, on which every recipe is carried
out beside the others. Forward by the limit path, back by elimination, forward again from what was left; where noise is
strong, ridges on the sets and on all columns too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covey.limit.lockstep import Near, Paths
from covey.limit.posed import Posed
from covey.limit.ridges import Penalties
from covey.selection.candidates import CleanedModels, cleaned_models
from covey.selection.dense import DenseSearch
from covey.selection.judge import Judge, Verdict
from covey.selection.recipe import Cleaned, Recipe, Reweighted
from covey.selection.thresholds import THRESHOLDS, Thresholds
from covey.validation import FloatArray

__all__ = ["Found", "Model", "cleaned_model", "search"]

# Events between two looks at the judging rows; more where X has to be read in between.
EVENTS_PER_LOOK, EVENTS_PER_READING = 6, 12


@dataclass(frozen=True)
class Model:
    """A linear model on the columns of X.

    Attributes
    ----------
    columns, coef : ndarray, shape (k,)
        Coefficients; every other column has none.
    intercept : float
    groups : list of int
        The groups that are in the model, in the order in which they woke up; in order of size for ridges on all.
    """

    columns: NDArray[np.intp]
    coef: FloatArray
    intercept: float
    groups: list[int]


class Found:
    """Everything that a search has made, on every split.

    Attributes
    ----------
    posed : Posed
    verdict : Verdict
    paths : Paths
        The limit paths of the first round.
    n_events : int
        How far they went.
    left : float
        The share of the null model's judged error that the best model on the path leaves.
    """

    def __init__(self, posed: Posed, always: Sequence[int], thresholds: Thresholds) -> None:
        self.posed, self.always, self.thresholds = posed, [int(l) for l in always], thresholds
        self.near, self.penalties = Near(posed), Penalties(posed.problem)
        self.judged = [s for s, split in enumerate(posed.splits) if split.test]
        self.final = len(posed.splits) - 1
        self.judge = self._judge()
        self._heard: tuple[int, bool] | None = None
        self.rounds: list[list[CleanedModels]] = []
        self.orders: list[list[list[int]]] = []
        self.dense: DenseSearch | None = None
        self.n_events = 0
        self.paths: Paths | None = None
        self.left = 0.0

    def _judge(self) -> Judge:
        splits, counts = [self.posed.splits[s] for s in self.judged], self.posed.counts
        weights = [self.near.rows.weight(split.test) for split in splits]
        return Judge(weights, [sum(counts[k] for k in split.test) for split in splits])

    def hear(self) -> None:
        """Have the candidates of the last round judged; those before it again where the table of the rows is another.

        Compressed rows are other combinations of the rows when there are more columns, and residuals are compared row
        by row.
        """
        rows = self.near.rows
        new = self.rounds[-1:]
        table = (rows.width, rows.held)
        if self._heard is not None and self._heard != table and not (rows.held and self._heard[1]):
            self.judge, new = self._judge(), self.rounds
        self._heard = table
        for made in new:
            for at, split in enumerate(self.judged):
                models = made[split]
                residuals = [
                    rows.parts[part][:, [rows.response]]
                    - rows.parts[part].take(models.columns, axis=1) @ models.W.T
                    - np.outer(rows.parts[part][:, rows.one], models.levels)
                    for part in self.posed.splits[split].test
                ]
                self.judge.add(at, models.recipes, np.concatenate(residuals), models.sizes)

    def verdict(self) -> Verdict:
        """What the judging rows say of the recipes that could be carried out on all rows too."""
        also: list[Recipe] = [recipe for made in self.rounds for recipe in made[self.final].recipes]
        if self.dense is not None:
            also += self.dense.recipes
        return self.judge.verdict(also)

    def model(self, recipe: Recipe, split: int | None = None) -> Model:
        """The model of a recipe on the rows of a split; on all rows by default."""
        split = self.final if split is None else split
        if isinstance(recipe, Reweighted):
            assert self.dense is not None
            return self._dense_model(recipe, split)
        return cleaned_model(self.near, self.rounds[recipe.round][split], self.orders[recipe.round][split], recipe)

    def groups(self, recipe: Recipe, split: int) -> list[int]:
        """The groups of a recipe on the rows of a split."""
        if isinstance(recipe, Reweighted):
            return self.model(recipe, split).groups
        order = self.orders[recipe.round][split]
        return [order[i] for i in self.rounds[recipe.round][split].sets[recipe._replace(ridge=0.0)]]

    def _dense_model(self, recipe: Reweighted, split: int) -> Model:
        assert self.dense is not None
        problem = self.posed.problem
        columns, coef, level, order = self.dense.model(recipe, split)
        return Model(columns, coef * problem.y_scale, problem.y_mean + level * problem.y_scale, order)


def cleaned_model(near: Near, made: CleanedModels, order: Sequence[int], recipe: Cleaned) -> Model:
    """One of the models of a split on the columns of X."""
    problem, rows = near.posed.problem, near.rows
    row = made.recipes.index(recipe)
    groups = [order[i] for i in made.sets[recipe._replace(ridge=0.0)]]
    place = {int(l): i for i, l in enumerate(near.groups)}
    full = np.zeros(rows.n_columns)
    full[made.columns] = made.W[row]
    w = full[rows.columns([place[l] for l in groups])]
    columns, loadings, offset = problem.combination(groups)
    level = float(made.levels[row]) - float(offset @ w)
    return Model(columns, loadings @ w * problem.y_scale, problem.y_mean + level * problem.y_scale, groups)


def search(posed: Posed, always: Sequence[int] = (), thresholds: Thresholds = THRESHOLDS) -> Found:
    """Make all candidates and have them judged."""
    found = Found(posed, always, thresholds)
    starts = [list(found.always) for _ in posed.splits]
    least = null = np.inf
    for round_ in range(thresholds.rounds):
        paths = Paths(found.near, starts)
        n_events, start, reached = _run(found, paths)
        if round_ == 0:
            found.paths, found.n_events, null = paths, n_events, start
        found.left = reached / (null or 1.0)
        _clean(found, paths, round_, n_events)
        paths.close(found.final)
        verdict = found.verdict()
        error = float(verdict.errors[verdict.best])
        if error >= (1 - thresholds.worthwhile) * least:
            break
        least = error
        kept = verdict.recipes[verdict.simplest()]
        if not isinstance(kept, Cleaned) or kept.round != round_:
            break
        starts = _kept_groups(found, kept)
    if found.left > thresholds.dense and DenseSearch.possible(found.near):
        if not found.near.all and not found.near.rows.held:
            # ridges on all columns are judged row by row
            found.near.hold()
            found.hear()
        found.dense = DenseSearch(found.near, found.always, thresholds, found.penalties)
        found.dense.run(found.judge)
    return found


def _kept_groups(found: Found, recipe: Cleaned) -> list[list[int]]:
    """The groups of a recipe on every split, those that are always in first."""
    plain = recipe._replace(ridge=0.0)
    made, orders = found.rounds[recipe.round], found.orders[recipe.round]
    return [[order[i] for i in one.sets[plain]] for one, order in zip(made, orders, strict=True)]


def _run(found: Found, paths: Paths) -> tuple[int, float, float]:
    """Run paths until the judged error has not fallen for a while; how many events, the first error, the least one."""
    settings = found.thresholds
    errors = [_knot_errors(found, paths, 0, 0)[0]]
    best = 0
    while True:
        allowed = _most_events(found, paths)
        done = len(errors) - 1
        target = min(done + (EVENTS_PER_LOOK if found.near.all else EVENTS_PER_READING), allowed)
        if target > done:
            paths.advance(target)
            reached = min(paths.n_events(), _most_events(found, paths))
            if reached > done:
                errors += _knot_errors(found, paths, done + 1, reached).tolist()
        for m in range(done + 1, len(errors)):
            if errors[m] < errors[best] * (1 - settings.improvement):
                best = m
            elif m - best > settings.patience:
                paths.truncate(m)
                return m, errors[0], errors[best]
        if len(errors) - 1 == done:
            paths.truncate(done)
            return done, errors[0], errors[best]


def _most_events(found: Found, paths: Paths) -> int:
    """How many events the rows allow, as far as is known: each must begin with columns to spare on every split."""
    most = 10**9
    for split in range(len(paths.paths)):
        objective = paths.objective(split)
        n_rows = sum(found.posed.counts[k] for k in found.posed.splits[split].train)
        used = np.array([objective.n_extras, *objective.ends])[len(paths.starts[split]) :]
        full = np.flatnonzero(used >= found.thresholds.most_columns * n_rows)
        if full.size:
            most = min(most, int(full[0]))
    return most


def _knot_errors(found: Found, paths: Paths, first: int, last: int) -> FloatArray:
    """The summed squared errors of some models of the paths on their judging rows; shape (last - first + 1,)."""
    rows = found.near.rows
    total = np.zeros(last - first + 1)
    for split in found.judged:
        objective = paths.objective(split)
        begun = len(paths.starts[split])
        W = objective.knots(begun + first, begun + last)
        for part in found.posed.splits[split].test:
            table = rows.parts[part]
            residuals = table[:, [rows.response]] - table[:, objective.basis] @ W.T
            total += np.einsum("ij,ij->j", residuals, residuals)
    return total


def _clean(found: Found, paths: Paths, round_: int, n_events: int) -> None:
    """Make the candidates of a round on every split, and have them judged."""
    settings = found.thresholds
    orders = [paths.groups(split) for split in range(len(found.posed.splits))]
    lengths = []
    for own in paths.starts:
        begun, end = len(own), len(own) + n_events
        lengths.append(sorted({min(end, max(begun, prefix)) for prefix in settings.prefixes} | {end}))
    made = cleaned_models(
        [paths.objective(split) for split in range(len(orders))], orders, round_, len(found.always), lengths,
        settings.ridges if found.left > settings.noisy else (), found.penalties,
    )  # fmt: skip
    found.rounds.append(made)
    found.orders.append(orders)
    found.hear()
