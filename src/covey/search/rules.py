"""The two rules by which a model is chosen: the few groups that matter, or the best prediction.

Both look at the scores again with a part of the splits left out. If that changes what they choose, the verdict is open,
and the rows are dealt to other folds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from covey.search.judge import Board, Judge, Verdict
from covey.search.recipes import Recipe
from covey.search.search import Found
from covey.validation import FloatArray

__all__ = ["RULES", "Predict", "Rule", "Select"]


class Rule(ABC):
    """A choice among the candidates of a search, as far as it has got.

    Parameters
    ----------
    found : Found

    Attributes
    ----------
    board : Board
        The scores of the recipes that the rule chooses from, on all splits so far.
    verdict : Verdict
        Of all splits.
    weights : ndarray, shape (n_recipes,)
        The weights of the recipes in the model; they add up to one.
    parts : list of list of int
        The splits that are left out together: every split, or every deal if there are several.
    without_part : list of Verdict
        The verdict without each part; empty if there is only one.
    """

    def __init__(self, found: Found) -> None:
        self.found, self.settings = found, found.posed.settings
        self.judge, recipes = self._with_late(self.allowed())
        self.board: Board = self.judge.board(recipes)
        self.verdict: Verdict = self.board.verdict()
        n, deals = len(self.board.scores), found.n_deals
        self.parts = [list(part) for part in np.array_split(np.arange(n), n if deals == 1 else deals)]
        self.without_part = [
            self.board.verdict([s for s in range(n) if s not in part]) for part in self.parts if len(part) < n
        ]

    @abstractmethod
    def allowed(self) -> set[Recipe]:
        """The recipes to choose from."""

    def _with_late(self, recipes: set[Recipe]) -> tuple[Judge, set[Recipe]]:
        """All recipes if one of the round of late groups is better than the others by `strictness` standard errors.

        It is judged on the rows that models with late groups can predict. Otherwise the recipes before that round, on
        all rows.
        """
        found, early = self.found, self._early(recipes)
        if len(early) == len(recipes):
            return found.judge, recipes
        judge = found.late_judge()
        verdict = judge.board(recipes).verdict()
        near = verdict.near(self.settings.strictness)
        close = {r for r, is_near in zip(verdict.recipes, near, strict=True) if is_near}
        return (found.judge, early) if early & close else (judge, recipes)

    def _early(self, recipes: set[Recipe]) -> set[Recipe]:
        """The recipes before the rounds of late groups."""
        return {recipe for recipe in recipes if not self.found.is_late(recipe.in_round)}

    @abstractmethod
    def weights_by(self, verdict: Verdict) -> FloatArray:
        """The weights of the recipes in the model that a verdict leads to."""

    @cached_property
    def weights(self) -> FloatArray:
        """The weights of the recipes in the model."""
        return self.weights_by(self.verdict)

    def without_fold(self) -> list[Verdict]:
        """The verdicts of the first deal without the held-out rows of each fold."""
        if self.found.n_deals == 1:
            return self.without_part or [self.verdict]
        n = len(self.board.scores) // self.found.n_deals
        return [self.board.verdict([s for s in range(n) if s != k]) for k in range(n)] if n > 1 else [self.verdict]

    @cached_property
    @abstractmethod
    def is_settled(self) -> bool:
        """Whether every part of the splits would choose much the same."""

    @cached_property
    @abstractmethod
    def in_splits(self) -> list[frozenset[int]]:
        """The groups that are selected on each split without its held-out rows; empty for models of all groups."""

    def frequencies(self) -> NDArray[np.intp] | None:
        """In how many splits each group is selected; None for models of all groups."""
        selected = self.in_splits
        counts = np.zeros(self.found.posed.ranks.size, dtype=np.intp)
        for groups in selected:
            counts[list(groups)] += 1
        return counts if selected else None

    @property
    def in_contention(self) -> set[Recipe]:
        """The recipes that may still be chosen, and the null model; without late groups, if these lose after all."""
        found, verdicts = self.found, [self.verdict]
        if self.judge is not found.judge:
            verdicts.append(found.judge.board(self._early(self.allowed())).verdict())
        recipes = set()
        for verdict in verdicts:
            near = verdict.near(self.settings.contention)
            near[verdict.null] = True
            recipes |= {verdict.recipes[i] for i in np.flatnonzero(near)}
        return recipes

    def is_overtaken(self, first: Verdict) -> bool:
        """Whether a recipe that was left out after the first deal had less error there than the best one has now.

        It happens where what was kept rests on few rows: models go far astray if a later deal holds these out together.
        """
        allowed, kept = self.allowed(), set(self.verdict.recipes)
        left_out = [e for r, e in zip(first.recipes, first.errors, strict=True) if r in allowed and r not in kept]
        return bool(min(left_out, default=np.inf) < self.verdict.errors[self.verdict.best])


class Select(Rule):
    """The simplest sparse model that the held-out rows cannot tell from the best one."""

    def allowed(self) -> set[Recipe]:
        """All recipes but those on all groups; pieces only if no model of groups is as good."""
        sparse = {recipe for recipe in self.found.recipes if recipe.n_groups is not None}
        if not self.found.posed.pieces:
            return sparse
        verdict = self.found.judge.board(sparse).verdict()
        near = verdict.near(self.settings.undivided)
        undivided = {recipe for recipe in sparse if not recipe.in_round}
        close = {recipe for recipe, is_near in zip(verdict.recipes, near, strict=True) if is_near}
        return undivided if undivided & close else sparse

    def weights_by(self, verdict: Verdict) -> FloatArray:
        """One for the chosen recipe."""
        return np.eye(len(verdict.recipes))[verdict.chosen]

    @cached_property
    def is_settled(self) -> bool:
        """Whether leaving out any part gives the same groups."""
        chosen = self._groups(self.verdict)
        return all(self._groups(verdict) == chosen for verdict in self.without_part)

    def _groups(self, verdict: Verdict) -> set[int]:
        return set(self.found.groups(verdict.recipes[verdict.chosen], self.found.final))

    @cached_property
    def in_splits(self) -> list[frozenset[int]]:
        """The groups that are selected on each split, chosen without its held-out rows."""
        found, selected = self.found, []
        for part, verdict in zip(self.parts, self.without_part or [self.verdict], strict=True):
            recipe = verdict.recipes[verdict.chosen]
            selected += [frozenset(found.groups(recipe, found.scored[split])) for split in part]
        return selected


class Predict(Rule):
    """The mean of all candidates, each weighted by its held-out error."""

    def allowed(self) -> set[Recipe]:
        """All recipes."""
        return set(self.found.recipes)

    def weights_by(self, verdict: Verdict) -> FloatArray:
        """Weights by held-out errors."""
        return verdict.weights

    @cached_property
    def is_settled(self) -> bool:
        """Whether leaving out any part hardly moves the mean."""
        others = [verdict.weights for verdict in self.without_part]
        if not others:
            return True
        return self.board.moved(self.weights, others) <= self.settings.settled * self.verdict.noise / self.board.n_rows

    @cached_property
    def in_splits(self) -> list[frozenset[int]]:
        """The groups of all models in the mean on each split; empty if one of them has all groups."""
        used = [self.verdict.recipes[i] for i in np.flatnonzero(self.weights)]
        if any(recipe.n_groups is None for recipe in used):
            return []
        found = self.found
        return [frozenset(l for recipe in used for l in found.groups(recipe, one)) for one in found.scored]


RULES: dict[str, type[Rule]] = {"select": Select, "predict": Predict}
