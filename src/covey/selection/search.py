"""The search: limit paths of all splits, the candidates derived from them, and one judge.

Hold-out is one split, cross-validation several. The last split has all rows, and every recipe is carried out on it too.
The search goes forward along the limit path, back by elimination, and forward again from the groups that are left. If
noise is strong, it also tries ridges, on these sets and on all columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covey.limit.lockstep import Near, Paths
from covey.limit.posed import Posed
from covey.limit.posed_squares import PosedSquares
from covey.selection.dense import DenseSearch
from covey.selection.fitting import CleanedModels, Fitting
from covey.selection.fitting_loss import LossFitting
from covey.selection.fitting_squares import SquaresFitting
from covey.selection.judge import ROUNDING, Judge, Verdict
from covey.selection.recipe import Cleaned, Recipe, Reweighted
from covey.selection.thresholds import THRESHOLDS, Thresholds
from covey.validation import FloatArray

__all__ = ["Found", "Model", "cleaned_model", "fitting_of", "search"]

# Events between two computations of the held-out error; more if X has to be read in between.
EVENTS_PER_LOOK, EVENTS_PER_READING = 6, 12

# Elimination also starts from a short prefix if the next one is at least this many times as long; otherwise both would
# drop much the same groups.
CLEARLY = 1.5


@dataclass(frozen=True)
class Model:
    """A linear model on the columns of X.

    Attributes
    ----------
    columns, coef : ndarray, shape (k,) and (n_outputs, k)
        Columns with a coefficient, and the coefficients.
    intercept : ndarray, shape (n_outputs,)
    groups : list of int
        The groups in the model, in the order in which they woke up; for ridges on all columns, by decreasing norm.
    """

    columns: NDArray[np.intp]
    coef: FloatArray
    intercept: FloatArray
    groups: list[int]


class Found:
    """The results of a search on every split.

    Attributes
    ----------
    posed : Posed
    verdict : Verdict
    paths : Paths
        The limit paths of the first round.
    n_events : int
        The number of events on them.
    left : float
        The share of the null model's held-out error that the best model on the path leaves.
    """

    def __init__(self, posed: Posed, always: Sequence[int], thresholds: Thresholds) -> None:
        self.posed, self.always, self.thresholds = posed, [int(l) for l in always], thresholds
        self.near = Near(posed)
        self.fitting = fitting_of(self.near, len(self.always))
        self.judged = [s for s, split in enumerate(posed.splits) if split.test]
        self.final = len(posed.splits) - 1
        self.judge = self._judge()
        self._judged_as = self.fitting.judged_as
        self.rounds: list[list[CleanedModels]] = []
        self.orders: list[list[list[int]]] = []
        self.dense: DenseSearch | None = None
        self.n_events = 0
        self.paths: Paths | None = None
        self.left = 0.0
        # without a scale parameter, the remaining deviance says nothing about noise: separated classes leave none
        self.noisy = self.judge.scores[0].loss.known_dispersion

    def _judge(self) -> Judge:
        splits, counts = self.posed.splits, self.posed.counts
        return Judge(
            [self.fitting.scores(s) for s in self.judged], [sum(counts[k] for k in splits[s].test) for s in self.judged]
        )

    def hear(self, rounds: Sequence[Sequence[CleanedModels]]) -> None:
        """Score candidates; earlier ones are scored again if the rows of the tables have changed."""
        if self.fitting.judged_as != self._judged_as:
            self._judged_as, self.judge, rounds = self.fitting.judged_as, self._judge(), self.rounds
        for made in rounds:
            for at, split in enumerate(self.judged):
                models = made[split]
                self.judge.add(at, models.recipes, self.fitting.predictions(models, split), models.sizes)

    def verdict(self) -> Verdict:
        """The verdict on the recipes that could also be carried out on all rows."""
        also: list[Recipe] = [recipe for made in self.rounds for recipe in made[self.final].recipes]
        if self.dense is not None:
            also += self.dense.recipes
        return self.judge.verdict(also)

    def model(self, recipe: Recipe, split: int | None = None) -> Model:
        """The model of a recipe on a split; on all rows by default."""
        split = self.final if split is None else split
        if isinstance(recipe, Reweighted):
            assert self.dense is not None
            return Model(*self.dense.model(recipe, split))
        return cleaned_model(self.near, self.rounds[recipe.round][split], self.orders[recipe.round][split], recipe)

    def groups(self, recipe: Recipe, split: int) -> list[int]:
        """The groups of a recipe on a split."""
        if isinstance(recipe, Reweighted):
            return self.model(recipe, split).groups
        order = self.orders[recipe.round][split]
        return [order[i] for i in self.rounds[recipe.round][split].sets[recipe._replace(ridge=0.0)]]

    def is_separated(self, recipe: Recipe) -> bool:
        """Whether a recipe without a ridge got a small one because its minimum on all rows is infinite."""
        return isinstance(recipe, Cleaned) and recipe in self.rounds[recipe.round][self.final].separated


def fitting_of(near: Near, n_always: int) -> Fitting:
    """The kind of fitting that a posed problem needs."""
    kind = SquaresFitting if isinstance(near.posed, PosedSquares) else LossFitting
    return kind(near, n_always)


def cleaned_model(near: Near, made: CleanedModels, order: Sequence[int], recipe: Cleaned) -> Model:
    """A candidate of a split as a model on the columns of X."""
    rows, row = near.rows, made.recipes.index(recipe)
    groups = [order[i] for i in made.sets[recipe._replace(ridge=0.0)]]
    place = {int(l): i for i, l in enumerate(near.groups)}
    full = np.zeros((made.W.shape[1], rows.n_columns))
    full[:, made.columns] = made.W[row]
    W = full[:, rows.columns([place[l] for l in groups])]
    return Model(*near.posed.to_user(groups, W, made.levels[row]), groups)


def search(posed: Posed, always: Sequence[int] = (), thresholds: Thresholds = THRESHOLDS) -> Found:
    """Make all candidates and score them."""
    found = Found(posed, always, thresholds)
    starts = [list(found.always) for _ in posed.splits]
    least = null = np.inf
    for round_ in range(thresholds.rounds):
        paths = Paths(found.near, starts)
        n_events, start, reached = _run(found, paths)
        if round_ == 0:
            found.paths, found.n_events, null = paths, n_events, start
        found.left = reached / (null or 1.0)
        lengths = _prefixes(found, paths, n_events)
        _clean(found, paths, round_, lengths)
        # the first path on all rows is shown to the user
        paths.close([found.final] if round_ == 0 else [])
        if _is_exhaustive(found, lengths):
            break
        verdict = found.verdict()
        error = float(verdict.errors[verdict.best])
        if error >= (1 - thresholds.worthwhile) * least:
            break
        least = error
        kept = verdict.recipes[verdict.simplest()]
        if not isinstance(kept, Cleaned) or kept.round != round_:
            break
        starts = _kept_groups(found, kept)
    if (found.noisy or found.left > thresholds.dense) and found.fitting.can_be_dense():
        found.fitting.hold_rows()
        found.hear([])
        found.dense = DenseSearch(found.fitting, found.always, thresholds)
        found.dense.run(found.judge)
    return found


def _is_exhaustive(found: Found, lengths: Sequence[Sequence[int]]) -> bool:
    """Whether elimination began from all groups, and only from them: another round would make the same candidates."""
    n_groups = int(np.count_nonzero(found.posed.problem.ranks))
    return all(list(own) == [n_groups] for own in lengths)


def _kept_groups(found: Found, recipe: Cleaned) -> list[list[int]]:
    """The groups of a recipe on every split, beginning with those that are always in the model."""
    plain = recipe._replace(ridge=0.0)
    made, orders = found.rounds[recipe.round], found.orders[recipe.round]
    return [[order[i] for i in one.sets[plain]] for one, order in zip(made, orders, strict=True)]


def _run(found: Found, paths: Paths) -> tuple[int, float, float]:
    """Run paths until the held-out error stops falling; return the number of events, the first and the least error."""
    settings = found.thresholds
    errors = [found.fitting.knot_errors(paths, found.judged, 0, 0)[0]]
    best = 0
    while True:
        allowed = _most_events(found, paths, settings.most_columns)
        done = len(errors) - 1
        target = min(done + (EVENTS_PER_LOOK if found.near.all else EVENTS_PER_READING), allowed)
        if target > done:
            paths.advance(target)
            reached = min(paths.n_events(), _most_events(found, paths, settings.most_columns))
            if reached > done:
                later = found.fitting.knot_errors(paths, found.judged, done + 1, reached)
                errors += np.maximum(later, ROUNDING * errors[0]).tolist()
        for m in range(done + 1, len(errors)):
            if errors[m] < errors[best] * (1 - settings.improvement):
                best = m
            elif m - best > settings.patience:
                paths.truncate(m)
                return m, errors[0], errors[best]
        if len(errors) - 1 == done:
            paths.truncate(done)
            return done, errors[0], errors[best]


def _most_events(found: Found, paths: Paths, share: float) -> int:
    """The number of events, as known so far, before which every split has fewer columns than a share of its rows."""
    most = 10**9
    for split in range(len(paths.paths)):
        objective = paths.objective(split)
        n_rows = sum(found.posed.counts[k] for k in found.posed.splits[split].train)
        used = np.array([objective.n_extras, *objective.ends])[len(paths.starts[split]) :]
        full = np.flatnonzero(used >= share * n_rows)
        if full.size:
            most = min(most, int(full[0]))
    return most


def _prefixes(found: Found, paths: Paths, n_events: int) -> list[list[int]]:
    """The lengths of the prefixes to eliminate from, for every split."""
    settings, made = found.thresholds, []
    steady = _most_events(found, paths, settings.steady_columns)
    for own in paths.starts:
        begun, end = len(own), len(own) + n_events
        first = min(end, begun + steady)
        short = {max(begun, prefix) for prefix in settings.prefixes if CLEARLY * prefix <= first}
        made.append(sorted({*short, first, end}))
    return made


def _clean(found: Found, paths: Paths, round_: int, lengths: Sequence[Sequence[int]]) -> None:
    """Make the candidates of a round on every split, and score them."""
    settings = found.thresholds
    ridges = settings.ridges if found.left > settings.noisy else ()
    if found.noisy:
        ridges = settings.low_ridges
    found.rounds.append(found.fitting.cleaned(paths, round_, lengths, ridges))
    found.orders.append([paths.groups(split) for split in range(len(lengths))])
    found.hear(found.rounds[-1:])
