"""The search: limit paths of all splits, the candidates derived from them, and one judge.

Hold-out is one split, cross-validation several. The last split has all rows, and every recipe is carried out on it too.
The search goes forward along the limit path, back by elimination, and forward again from the groups that are left. If
noise is strong, it also tries ridges, on these sets and on all columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from covey.search.cleaned import Cleaned, clean
from covey.search.dense import DenseRidges, can_be_dense
from covey.search.judge import ROUNDING, Judge, Scores, Verdict
from covey.search.paths import Knots, Paths
from covey.search.problem import Posed, in_parts
from covey.search.recipes import Model, Recipe, Training
from covey.search.ridges import Penalties
from covey.search.table import Table

__all__ = ["Found", "most_events", "search", "trainings_of"]

# Events between two computations of the held-out error; more if X has to be read in between.
EVENTS_PER_LOOK, EVENTS_PER_READING = 6, 12


class Found:
    """The candidates of a search on every split, and their scores.

    Attributes
    ----------
    posed : Posed
    table : Table
    trainings : list of Training
        One per split; the last one has all rows.
    scored : list of Training
        Those with held-out rows.
    judge : Judge
    knots : Knots
        The limit path on all rows.
    dense : DenseRidges or None
        Ridges on all columns.
    left : float
        The share of the null model's held-out error that the best model on the path leaves.
    """

    knots: Knots

    def __init__(self, posed: Posed, always: Sequence[int]) -> None:
        self.posed, self.table = posed, Table(posed)
        self.trainings = trainings_of(self.table, [int(l) for l in always])
        self.scored = [training for training in self.trainings if training.split.test]
        self.left = 0.0
        self.dense: DenseRidges | None = None
        self._version = self.table.version
        self.judge = self._new_judge()
        self._recipes: list[Recipe] = []

    @property
    def final(self) -> Training:
        """All rows."""
        return self.trainings[-1]

    def scores(self) -> list[Scores]:
        """The held-out rows of every scored split."""
        table = self.table
        return [
            Scores(table.response.rows(one.scored), in_parts(table.labels[one.scored], one.split.test))
            for one in self.scored
        ]

    def _new_judge(self) -> Judge:
        counts = [sum(self.posed.counts[k] for k in one.split.test) for one in self.scored]
        return Judge(self.scores(), counts, self.posed.settings)

    def score_round(self, round_: int) -> None:
        """Score the candidates of a round; earlier ones again if the rows of the table have changed."""
        rounds = [round_]
        if self._version != self.table.version:
            self._version, self.judge, rounds = self.table.version, self._new_judge(), list(range(round_ + 1))
        for number in rounds:
            for at, training in enumerate(self.scored):
                recipes = training.rounds[number].recipes
                self.judge.add(at, recipes, *Cleaned.scored(recipes, training))
        self._recipes += self.final.rounds[round_].recipes

    def score(self, recipes: Sequence[Recipe]) -> None:
        """Score recipes on every split."""
        for recipe in recipes:
            for at, training in enumerate(self.scored):
                self.judge.add(at, [recipe], *type(recipe).scored([recipe], training))
        self._recipes += recipes

    def verdict(self) -> Verdict:
        """The verdict on the recipes that could also be carried out on all rows."""
        dense = [] if self.dense is None else self.dense.recipes
        return self.judge.verdict([*self._recipes, *dense])

    def model(self, recipe: Recipe) -> Model:
        """The model of a recipe on all rows."""
        return recipe.fit(self.final)

    def groups(self, recipe: Recipe, training: Training) -> list[int]:
        """The groups of a recipe on a split."""
        return recipe.groups(training) if isinstance(recipe, Cleaned) else recipe.fit(training).groups


def trainings_of(table: Table, always: list[int]) -> list[Training]:
    """The training rows of every split of a problem."""
    posed = table.posed
    penalties = Penalties(posed.working, posed.settings.column_range, posed.response.loss.known_dispersion)
    return [Training(table, s, always, penalties) for s in range(len(posed.splits))]


def search(posed: Posed, always: Sequence[int] = (), recipes: Sequence[Recipe] = ()) -> Found:
    """Make all candidates and score them, further recipes included."""
    found, settings = Found(posed, always), posed.settings
    # without a scale parameter, the remaining deviance says nothing about noise: separated classes leave none
    always_noisy = posed.response.loss.known_dispersion
    starts = [list(found.final.always) for _ in posed.splits]
    null = np.inf
    for round_ in range(settings.rounds):
        paths = Paths(found.table, starts)
        n_events, start, reached = _run(found, paths)
        if round_ == 0:
            # the first path on all rows is shown to the user
            found.knots, null = paths.knots(len(starts) - 1), start
        found.left = reached / (null or 1.0)
        lengths = _prefixes(found, paths, n_events)
        ridges = settings.ridges if found.left > settings.noisy else ()
        clean(found.trainings, paths, round_, lengths, settings.low_ridges if always_noisy else ridges)
        found.score_round(round_)
        if _is_exhaustive(posed, lengths):
            break
        verdict = found.verdict()
        kept = verdict.recipes[verdict.simplest()]
        if not isinstance(kept, Cleaned) or kept.round != round_:
            break
        starts = [kept.groups(training) for training in found.trainings]
        same = all(set(start) == set(paths.groups(s)[: len(start)]) for s, start in enumerate(starts))
        if same and found.left <= settings.dense:
            break  # there is little noise and the path has been there: it would find much the same
    if settings.penalties and (always_noisy or found.left > settings.dense) and can_be_dense(found.table):
        found.dense = DenseRidges(found.table, found.trainings)
        found.dense.search(found.judge)
    found.score(recipes)
    return found


def _is_exhaustive(posed: Posed, lengths: Sequence[Sequence[int]]) -> bool:
    """Whether elimination began from all groups, and only from them: another round would make the same candidates."""
    n_groups = int(np.count_nonzero(posed.ranks))
    return all(list(prefixes) == [n_groups] for prefixes in lengths)


def _run(found: Found, paths: Paths) -> tuple[int, float, float]:
    """Run paths until the held-out error stops falling; return the number of events, the first and the least error."""
    settings, scores = found.posed.settings, found.judge.scores
    version = found.table.version
    errors = [_errors(found, paths, scores, 0, 0)[0]]
    best = 0
    while True:
        allowed = most_events(paths, settings.most_columns)
        done = len(errors) - 1
        target = min(done + (EVENTS_PER_LOOK if found.table.all_near else EVENTS_PER_READING), allowed)
        if target > done:
            paths.advance(target)
            if version != found.table.version:
                version, scores = found.table.version, found.scores()
            reached = min(paths.n_events(), most_events(paths, settings.most_columns))
            if reached > done:
                later = _errors(found, paths, scores, done + 1, reached)
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


def _errors(found: Found, paths: Paths, scores: Sequence[Scores], first: int, last: int) -> np.ndarray:
    """The summed deviance of some models of the paths on their held-out rows; shape (last - first + 1,)."""
    total = np.zeros(last - first + 1)
    for training, score in zip(found.scored, scores, strict=True):
        active, begun = paths.active(training.number), len(paths.starts[training.number])
        total += score.errors(active.predictors(training.scored, begun + first, begun + last))
    return total


def most_events(paths: Paths, share: float) -> int:
    """The number of events, as known so far, before which every split has fewer columns than a share of its rows."""
    most, posed = 10**9, paths.posed
    for number, split in enumerate(posed.splits):
        used = np.array(paths.active(number).ends)[len(paths.starts[number]) :]
        full = np.flatnonzero(used >= share * posed.n_rows(split))
        if full.size:
            most = min(most, int(full[0]))
    return most


def _prefixes(found: Found, paths: Paths, n_events: int) -> list[list[int]]:
    """The lengths of the prefixes to eliminate from, for every split."""
    settings, lengths = found.posed.settings, []
    steady = most_events(paths, settings.steady_columns)
    for start in paths.starts:
        begun, end = len(start), len(start) + n_events
        first = min(end, begun + steady)
        short = {min(end, max(begun, prefix)) for prefix in settings.prefixes if settings.longer * prefix <= first}
        lengths.append(sorted({*short, first, end}))
    return lengths
