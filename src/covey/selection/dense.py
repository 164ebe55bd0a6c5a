"""Candidates in which all groups take part: ridges on all columns, and reweighted ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from covey.limit.lockstep import Near
from covey.limit.reweighted import DenseRows, RidgeFit, noise_norms, shares_of
from covey.limit.ridges import Penalties
from covey.selection.judge import Judge, Verdict
from covey.selection.recipe import Recipe, Reweighted
from covey.selection.thresholds import Thresholds
from covey.validation import FloatArray

__all__ = ["DenseSearch"]

# The penalty of groups that are always in, relative to the others: none, but for the sake of an invertible matrix.
ALWAYS = 1e-6

# Columns count for less than groups do when the simplest of close models is looked for: all of these are dense.
DENSE_SIZE = 1e6


class DenseSearch:
    """Ridges of all splits.

    Parameters
    ----------
    near : Near
        Groups in hand; the ridges are on all of these.
    always : sequence of int
        Groups that are not penalised.
    thresholds : Thresholds

    Attributes
    ----------
    recipes : list of Reweighted
        What was made.
    """

    def __init__(self, near: Near, always: Sequence[int], thresholds: Thresholds) -> None:
        self.near, self.posed, self.thresholds = near, near.posed, thresholds
        self.rows = DenseRows(near.rows, near.groups, Penalties(near.posed.problem), near.posed.intercept)
        self.scales = noise_norms(near.posed.problem.layout.sizes[near.groups])
        self.unpenalised = np.flatnonzero(np.isin(near.groups, np.asarray(always, dtype=np.intp)))
        self.recipes: list[Recipe] = []
        self._fits: dict[tuple[Reweighted, int], RidgeFit] = {}

    def run(self, judge: Judge, verdict: Callable[[], Verdict]) -> None:
        """Plain ridges, then the best penalty and its neighbours reweighted as long as that can be of use."""
        splits, settings = self.posed.splits, self.thresholds
        judged = [s for s, split in enumerate(splits) if split.test]
        training = [self.rows.training(split) for split in splits]
        penalties = list(settings.penalties)
        for round_ in range(settings.reweightings + 1):
            recipes = [Reweighted(penalty, round_) for penalty in penalties]
            for s, rows in enumerate(training):
                fits = [self.rows.fit(rows, r.penalty, self._shares(r, s)) for r in recipes]
                self._fits.update({(r, s): fit for r, fit in zip(recipes, fits, strict=True)})
                if s in judged:
                    residuals = self.rows.residuals(splits[s], fits)
                    judge.add(judged.index(s), recipes, residuals, [DENSE_SIZE - round_] * len(fits))
            self.recipes += recipes
            table = verdict()
            errors = {r: e for r, e in zip(table.recipes, table.errors, strict=True) if r in set(recipes)}
            best = min(errors, key=lambda r: errors[r])
            if errors[best] > settings.within * table.errors[table.best]:
                return
            at = recipes.index(best)
            penalties = penalties[max(0, at - 1) : at + 2]

    def _shares(self, recipe: Reweighted, split: int) -> FloatArray:
        if recipe.round == 0:
            shares = np.ones(self.near.groups.size)
        else:
            before = self._fits[recipe._replace(round=recipe.round - 1), split]
            shares = shares_of(before.norms, self.scales)
        shares[self.unpenalised] = ALWAYS
        return shares

    def model(self, recipe: Reweighted, split: int) -> tuple[NDArray[np.intp], FloatArray, float, list[int]]:
        """Columns of X, coefficients, intercept (response in working units), and groups, largest first."""
        fit = self._fits[recipe, split]
        w = self.rows.working(fit)
        problem = self.posed.problem
        columns, loadings, offset = problem.combination(self.near.groups.tolist())
        order = np.argsort(-fit.norms, kind="stable")
        in_model = [int(self.near.groups[i]) for i in order if fit.norms[i] > 0]
        return columns, loadings @ w, fit.intercept - float(offset @ w), in_model
