"""The search: limit paths of all splits, the candidates derived from them, and one judge.

Hold-out is one split, cross-validation several. The last split has all rows, and every recipe is carried out on it too.
The search goes forward along the limit path, back by elimination, and forward again from the groups that are left. If
noise is strong, it also tries ridges, on these sets and on all columns.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

import numpy as np

from covey.progress import tell
from covey.search.cleaned import Cleaned, clean
from covey.search.dense import DenseRidges
from covey.search.judge import ROUNDING, TIE, Judge, Scores
from covey.search.leverage import predictable
from covey.search.paths import Knots, Paths
from covey.search.problem import Parts, in_parts
from covey.search.recipes import Recipe, Training
from covey.search.ridges import Penalties
from covey.search.settings import Settings
from covey.search.table import Table
from covey.validation import FloatArray

__all__ = ["Found", "most_events", "trainings_of"]

# Events between two computations of the held-out error; more if X has to be read in between.
EVENTS_PER_LOOK, EVENTS_PER_READING = 6, 12


class Found:
    """The candidates of a search on every split, and their scores.

    Attributes
    ----------
    posed : Posed
    table : Table
    trainings : list of Training
        One per split of the first deal; the last one has all rows.
    scored : list of Training
        Those with held-out rows, of all deals.
    recipes : dict
        The candidates, in order.
    judge : Judge
    knots : Knots
        The limit path on all rows.
    dense : DenseRidges or None
        Ridges on all columns.
    left : float
        The share of the null model's held-out error that the best model on the path leaves, before late groups.
    always_noisy : bool
        Whether ridges are tried even if little is left.
    n_deals : int
        How often the rows have been dealt to folds.
    late_round : int or None
        The first round in which late groups may wake, if there is one.
    late : list of int
        The late groups that may wake on all rows.
    kept : list of Recipe or None
        The recipes from whose groups the second and later rounds start; None for a round that starts like the first.
    starts : list of list of int
        The groups from which the next round starts on every split; empty if there is none.
    paths : Paths
        Those of the last round.
    """

    knots: Knots
    judge: Judge
    paths: Paths

    def __init__(self, table: Table, always: Sequence[int], further: Sequence[Recipe] = ()) -> None:
        self.table, self.posed = table, table.posed
        self.trainings = trainings_of(self.table, [int(l) for l in always])
        self.scored = [training for training in self.trainings if training.split.test]
        # without a scale parameter, the remaining deviance says nothing about noise: separated classes leave none
        self.always_noisy = self.posed.response.loss.known_dispersion
        self.left, self.n_deals = 0.0, 1
        self.dense: DenseRidges | None = None
        self._dense_of_deals: list[DenseRidges] = []
        self._further = list(further)
        self.recipes: dict[Recipe, None] = {}
        # for every round, its candidates, and the most columns of its paths
        self._rounds: list[tuple[Sequence[Cleaned], int]] = []
        self.late_round: int | None = None
        self.late: list[int] = []
        self.kept: list[Recipe | None] = []
        self._null = np.inf
        self.version = -1  # of the rows that have been scored
        self.starts = self.starts_from(None, self.trainings)

    @property
    def final(self) -> Training:
        """All rows."""
        return self.trainings[-1]

    def scores(self, late: bool = False) -> list[Scores]:
        """The held-out rows of every split; if `late`, those that models with late groups can predict.

        Of classes and counts, all rows: a log-likelihood grows slowly where a row is far from its prediction.
        """
        groups = self.late if late and not self.always_noisy else ()
        return [_scores_of(training, groups) for training in self.scored]

    @property
    def n_rounds(self) -> int:
        """The number of rounds that have been scored."""
        return len(self._rounds)

    @property
    def ridges(self) -> Sequence[float]:
        """The ridges to try on the groups of a path: none if there is little noise."""
        settings = self.posed.settings
        return settings.ridges if self.always_noisy or self.left > settings.noisy else ()

    def run_paths(self) -> None:
        """Run the paths of the next round until the held-out error stops falling."""
        settings, late = self.posed.settings, self.is_late(self.n_rounds)
        mains = late or self.posed.is_for_mains(self.n_rounds)
        paths = self.paths = Paths(self.table, self.starts, mains=mains, late=late)
        # groups that became near when the paths began may have changed the rows of the table
        version = self.table.version
        scores = self.judge.scores if version == self.version and not late else self.scores(late)
        errors = [self._errors(scores, 0, 0)[0]]
        best, end = 0, None
        while end is None:
            allowed = most_events(paths, settings.most_columns)
            done = len(errors) - 1
            target = min(done + (EVENTS_PER_LOOK if self.table.all_near else EVENTS_PER_READING), allowed)
            if target > done:
                errors = errors[: paths.advance(target, checked=False) + 1]
                if version != self.table.version:
                    version, scores = self.table.version, self.scores(late)
                reached = min(paths.n_events(), most_events(paths, settings.most_columns))
                if reached >= len(errors):
                    later = self._errors(scores, len(errors), reached)
                    errors += np.maximum(later, ROUNDING * errors[0]).tolist()
            best, end = _stop(paths, errors, settings)
            if end is None and len(errors) - 1 > done:
                continue
            if paths.is_revised():
                # a group was missing: what comes after that event is judged again
                errors = errors[: paths.n_events() + 1]
                best, end = _stop(paths, errors, settings)
            elif end is None:
                end = len(errors) - 1
        paths.end_at(paths.width_after(end))
        if not self.n_rounds:
            # the first path on all rows is shown to the user
            self.knots, self._null = paths.knots(self.final.number), errors[0]
        if self.late_round is None:
            self.left = errors[best] / (self._null or 1.0)

    def _errors(self, scores: Sequence[Scores], first: int, last: int) -> FloatArray:
        """The summed deviance of some models of the paths on their held-out rows; shape (last - first + 1,)."""
        total = np.zeros(last - first + 1)
        for training, score in zip(self.scored, scores, strict=True):
            total += score.errors(self.paths.predictors(training.number, training.scored, first, last))
        return total

    def add_round(self) -> None:
        """Make and score the candidates of the last paths, and say where the next ones start.

        Earlier candidates are scored again if the rows have changed.
        """
        paths, round_ = self.paths, self.n_rounds
        recipes = clean(self.trainings, paths, round_, self.ridges)
        self._rounds.append((recipes, paths.n_columns))
        for number, training in enumerate(self.trainings):
            if training.rough or training.split.test:  # validation rows score the models on all rows
                training.rounds[round_].finish()
                self._share_infinite(training)
            tell(f"candidates of round {round_ + 1}", "fit", number + 1, len(self.trainings))
        rounds = [round_]
        if self.version != self.table.version:
            parts = {k for one in self.scored for k in one.split.test}
            n_rows = sum(self.posed.counts[k] for k in parts)
            self.judge = Judge(self.scores(), n_rows, self.posed.settings)
            self.version, rounds = self.table.version, list(range(self.n_rounds))
        for number in rounds:
            for at, training in enumerate(self.scored):
                recipes = training.rounds[number].recipes
                self.judge.add(at, recipes, *Cleaned.scored(recipes, training))
        self.recipes |= dict.fromkeys(self._alike(round_))
        self.starts = self._next_starts()

    def _share_infinite(self, training: Training) -> None:
        """Give models on all rows the small ridge that those of a fold need.

        Where a minimum lies at infinity without some held-out rows, one row more often makes it finite, and far away:
        on the same groups, or on those that the same recipe has on all rows.
        """
        final = self.final
        final.infinite += [groups for groups in training.infinite if groups not in final.infinite]
        for recipe in training.rounds[-1].recipes if training.infinite else ():
            if not recipe.ridge and training.is_infinite(recipe.groups(training)):
                groups = recipe.groups(final)
                final.infinite += [] if final.is_infinite(groups) else [frozenset(groups)]

    def _alike(self, round_: int) -> list[Recipe]:
        """The recipes of a round whose models on all rows are like those that were scored."""
        final = self.final.rounds[round_]
        others = [training.rounds[round_] for training in self.trainings[:-1]] or [final]
        scored = np.mean([one.widths for one in others], axis=0)
        alike = np.array(final.widths) <= self.posed.settings.alike * scored
        return [recipe for recipe, is_alike in zip(final.recipes, alike, strict=True) if is_alike]

    def score_further(self) -> None:
        """Score the recipes that the user gave on every split of the first deal."""
        for at, training in enumerate(self.scored):
            _score(self.judge, at, self._further, training)
        self.recipes |= dict.fromkeys(self._further)

    def deal_again(self, parts: Parts, wanted: Container[Recipe]) -> None:
        """Deal the rows to other folds, and make and score those recipes on them in the same way."""
        # groups that became near in an earlier deal stay near
        table = self.scored[-1].table.dealt(parts)
        trainings = trainings_of(table, self.final.always, self.final.penalties)
        starts = [list(self.final.always) for _ in trainings]
        for round_, (recipes, n_columns) in enumerate(self._rounds):
            # the next round starts from the groups of this recipe
            kept = self.kept[round_] if round_ < len(self.kept) else None
            some = [recipe for recipe in recipes if recipe in wanted or recipe in self.kept]
            if not some and round_ >= len(self.kept):
                break
            some = some or list(recipes[:1])  # later rounds are wanted, and rounds are found by number
            late = self.is_late(round_)
            paths = Paths(table, starts, mains=late or self.posed.is_for_mains(round_), late=late)
            paths.end_at(n_columns)
            clean(trainings, paths, round_, [recipe.ridge for recipe in some if recipe.ridge], some)
            for training in trainings:
                training.rounds[round_].finish()
                self._share_infinite(training)
            starts = self.starts_from(kept, trainings)
        first = len(self.scored)
        self.judge.extend([_scores_of(training) for training in trainings])
        dense = [r for r in self.dense.recipes if r in wanted] if self.dense is not None else []
        if dense:
            self._dense_of_deals.append(DenseRidges(table, trainings))
        for at, training in enumerate(trainings):
            for one in training.rounds:
                self.judge.add(first + at, one.recipes, *Cleaned.scored(one.recipes, training))
            _score(self.judge, first + at, [*dense, *(r for r in self._further if r in wanted)], training)
        self.scored += trainings
        self.n_deals += 1

    def forget_deals(self) -> None:
        """Go back to the first deal."""
        self.scored = [training for training in self.trainings if training.split.test]
        self.judge.forget(len(self.scored))
        self._dense_of_deals.clear()
        self.n_deals = 1

    def starts_from(self, kept: Recipe | None, trainings: Sequence[Training]) -> list[list[int]]:
        """The groups from which the next round starts on every split: those of a recipe, in pieces."""
        if kept is None:
            return [list(self.final.always) for _ in trainings]
        return [self.posed.divided(kept.groups(training)) for training in trainings]

    def _next_starts(self) -> list[list[int]]:
        """The groups from which the next round starts on every split, given the last one; empty if there is none."""
        posed, settings, round_, paths = self.posed, self.posed.settings, self.n_rounds - 1, self.paths
        if self.late_round is not None:
            return self._next_late_starts()
        if posed.is_for_mains(round_):
            # the next path has all groups, and starts from none: what needs a pair may look like something else here
            self.kept.append(None)
            return self.starts_from(None, self.trainings)
        most = settings.rounds + (not posed.all_main) + bool(posed.pieces)
        exhaustive = _is_exhaustive(paths)
        if not posed.late and (exhaustive or self.n_rounds == most):
            return []
        verdict = self.judge.board(self.recipes).verdict()
        kept = verdict.recipes[verdict.simplest(verdict.near(settings.start_strictness))]
        starts = self.starts_from(kept, self.trainings)
        # a third path starts from the best groups so far: their pieces, or pairs of them, may be better
        better = kept.in_round == round_ or round_ == 1
        if better and not exhaustive and self.n_rounds < most:
            same = all(set(start) == set(paths.groups(s)[: len(start)]) for s, start in enumerate(starts))
            # with little noise, a path that has been there would find much the same
            if not same or self.left > settings.dense:
                self.kept.append(kept)
                return starts
        if not any(map(posed.late_after, starts)):
            return []
        # last rounds, in which late groups may wake
        self.late_round, self.late = self.n_rounds, posed.late_after(starts[self.final.number])
        self.kept.append(kept)
        return starts

    def _next_late_starts(self) -> list[list[int]]:
        """Late groups may have shown variables whose own late groups could not wake: a further round is for them."""
        assert self.late_round is not None
        verdict = self.late_judge().board(self.recipes).verdict()
        kept = verdict.recipes[verdict.simplest(verdict.near(self.posed.settings.start_strictness))]
        if not self.is_late(kept.in_round):
            return []
        starts = self.starts_from(kept, self.trainings)
        new = [l for l in self.posed.late_after(starts[self.final.number]) if l not in self.late]
        if not new or self.n_rounds - self.late_round == self.posed.settings.rounds:
            return []
        self.late += new
        self.kept.append(kept)
        return starts

    def is_late(self, round_: int | None) -> bool:
        """Whether late groups may wake in a round."""
        return self.late_round is not None and round_ is not None and round_ >= self.late_round

    def late_judge(self) -> Judge:
        """The judge of models with late groups: on the rows that they can predict."""
        return self.judge.scored_by(self.scores(late=True))

    def groups(self, recipe: Recipe, training: Training) -> list[int]:
        """The groups of a recipe on a split; pieces stand for their group."""
        return self.posed.joined(recipe.groups(training))


def _scores_of(training: Training, late: Sequence[int] = ()) -> Scores:
    """The held-out rows of a split; those that models with some late groups cannot predict have weight zero."""
    table, rows = training.table, training.scored
    response, held_out = table.response.rows(rows), in_parts(table.labels[rows], training.split.test)
    if late and not table.compressed:
        known = predictable(table, training.split, rows, late) | ~held_out
        response = response.weighted(np.where(known, response.weight, 0.0))
    return Scores(response, held_out)


def _score(judge: Judge, split: int, recipes: Sequence[Recipe], training: Training) -> None:
    for recipe in recipes:
        judge.add(split, [recipe], *type(recipe).scored([recipe], training))


def trainings_of(table: Table, always: list[int], penalties: Penalties | None = None) -> list[Training]:
    """The training rows of every split of a problem; penalties depend on all rows, whatever the splits."""
    posed = table.posed
    if penalties is None:
        equal_shares = posed.response.loss.known_dispersion
        penalties = Penalties(posed.working, posed.settings.column_range, equal_shares, posed.roughness)
    return [Training(table, s, always, penalties) for s in range(len(posed.splits))]


def _is_exhaustive(paths: Paths) -> bool:
    """Whether elimination began from all groups: another round would make the same candidates."""
    return paths.posed.pairs is None and len(paths.paths[-1]) == int(np.count_nonzero(paths.posed.ranks))


def _stop(paths: Paths, errors: Sequence[float], settings: Settings) -> tuple[int, int | None]:
    """The last event at which errors fell, and the event after which they have not fallen for too long, if any."""
    best, n_wakings = 0, paths.n_wakings(len(errors) - 1)
    for m, error in enumerate(errors):
        if error < errors[best] * (1 - TIE):
            best = m
        elif n_wakings[m] - n_wakings[best] > settings.patience:
            return best, m
    return best, None


def most_events(paths: Paths, share: float) -> int:
    """The number of events, as known so far, after which every split has at most a share of its rows in columns."""
    most, posed = 10**9, paths.posed
    for number, split in enumerate(posed.splits):
        used = np.array(paths.active(number).ends)[len(paths.starts[number]) :]
        full = np.flatnonzero(used > share * posed.n_rows(split))
        if full.size:
            most = min(most, max(int(full[0]) - 1, 0))
    return most
