"""Candidates in which all groups take part: ridges on all columns, and reweighted ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.limit.reweighted import noise_norms, shares_of
from covey.selection.fitting import Fitting
from covey.selection.judge import Judge, Verdict
from covey.selection.recipe import Recipe, Reweighted
from covey.selection.thresholds import Thresholds
from covey.validation import FloatArray

__all__ = ["DenseSearch"]

# The penalty of groups that are always in, relative to the others: none, but for the sake of an invertible matrix.
ALWAYS = 1e-6

# A ridge on all columns is less simple than any set of groups; one that was reweighted, a little less so.
DENSE_SIZE = 1e6

# Of a wide design, groups with this many columns per row stay in after the first round, those of largest norm on each
# split: the others have hardly any share of the kernel left.
COLUMNS_PER_ROW = 2


class DenseSearch:
    """Ridges of all splits.

    Parameters
    ----------
    fitting : Fitting
        Of groups in hand; where these are not all, X is read for the others.
    always : sequence of int
        Groups that are not penalised.
    thresholds : Thresholds

    Attributes
    ----------
    recipes : list of Reweighted
        What was made.
    """

    def __init__(self, fitting: Fitting, always: Sequence[int], thresholds: Thresholds) -> None:
        self.fitting, self.near, self.posed, self.thresholds = fitting, fitting.near, fitting.posed, thresholds
        self.always = np.asarray(always, dtype=np.intp)
        self.scales = noise_norms(fitting.posed.problem.layout.sizes)
        self.recipes: list[Recipe] = []
        self._kernel: Any = None
        self._wide: dict[tuple[Reweighted, int], Any] = {}
        self._rows: Any = None
        self._fits: dict[tuple[Reweighted, int], Any] = {}
        self._norms: dict[tuple[Reweighted, int], FloatArray] = {}

    def run(self, judge: Judge, verdict: Callable[[], Verdict]) -> None:
        """Plain ridges; then the best penalty and its neighbours reweighted, as long as that is of use."""
        settings = self.thresholds
        recipes = [Reweighted(penalty, 0) for penalty in settings.penalties]
        if self.near.all:
            self._rows = self.fitting.dense_rows(self.near.groups)
            self._reweigh(recipes, judge)
        else:
            self._plain_wide(recipes, judge)
        least = np.inf
        for round_ in range(settings.reweightings):
            table = verdict()
            errors = {r: float(e) for r, e in zip(table.recipes, table.errors, strict=True) if r in set(recipes)}
            best = min(errors, key=lambda r: errors[r])
            if errors[best] > settings.within * table.errors[table.best]:
                return
            if errors[best] > (1 - settings.improvement) * least:
                return
            least = errors[best]
            # the more often penalties are divided, the larger they had better be
            at = recipes.index(best)
            first = max(0, at - 1) if round_ == 0 else at
            recipes = [r._replace(round=round_ + 1) for r in recipes[first : at + 2]]
            if self._rows is None:
                self._rows = self.fitting.dense_rows(self._largest(recipes))
            self._reweigh(recipes, judge)

    def _reweigh(self, recipes: Sequence[Reweighted], judge: Judge) -> None:
        """Fit recipes on every split, each with the penalties that its round before asks for."""
        for s, split in enumerate(self.posed.splits):
            # made again in every round: those of all splits together would take several times the memory of X
            training = self._rows.training(split, self.posed.n_rows(split))
            fits = [self._rows.fit(training, r.penalty * training.unit, self._shares(r, s)) for r in recipes]
            for recipe, fit in zip(recipes, fits, strict=True):
                self._fits[recipe, s] = fit
                norms = np.zeros(self.posed.problem.ranks.size)
                norms[self._rows.groups] = fit.norms
                self._norms[recipe, s] = norms
            if split.test:
                self._add(judge, s, recipes, self._rows.predictions(split, fits))
        self.recipes += recipes

    def _plain_wide(self, recipes: Sequence[Reweighted], judge: Judge) -> None:
        """Ridges on all columns of a wide design."""
        shares = np.ones(self.posed.problem.ranks.size)
        shares[self.always] = ALWAYS
        self._kernel = self.fitting.kernel(shares)
        starts = self.posed.problem.layout.starts
        made: list[Any] = []
        for s, split in enumerate(self.posed.splits):
            fits = self._kernel.fits(split, [r.penalty for r in recipes])
            made += fits
            self._wide.update({(r, s): fit for r, fit in zip(recipes, fits, strict=True)})
            if split.test:
                self._add(judge, s, recipes, self._kernel.predictions(split, fits))
        coefs = self._kernel.coefficients(made)
        norms = np.sqrt(np.add.reduceat((coefs * coefs).sum(axis=1), starts[:-1], axis=1))
        for (recipe, s), own in zip(self._wide, norms, strict=True):
            self._norms[recipe, s] = own
        self.recipes += recipes

    def _add(self, judge: Judge, split: int, recipes: Sequence[Reweighted], table: FloatArray) -> None:
        judged = [s for s, own in enumerate(self.posed.splits) if own.test]
        judge.add(judged.index(split), recipes, table, [DENSE_SIZE - r.round for r in recipes])

    def _shares(self, recipe: Reweighted, split: int) -> FloatArray:
        """What the penalties of the groups at hand are multiplied by."""
        groups = self._rows.groups
        shares: FloatArray = np.ones(groups.size)
        if recipe.round > 0:
            norms = self._norms[recipe._replace(round=recipe.round - 1), split]
            shares = shares_of(norms, self.scales)[groups]
        shares[np.isin(groups, self.always)] = ALWAYS
        return shares

    def _largest(self, recipes: Sequence[Reweighted]) -> NDArray[np.intp]:
        """The groups that stay in: those of largest norm on some split."""
        sizes = self.posed.problem.layout.sizes
        kept = np.zeros(sizes.size, dtype=bool)
        kept[self.always] = True
        for s, split in enumerate(self.posed.splits):
            most = COLUMNS_PER_ROW * self.posed.n_rows(split)
            norms = np.max([self._norms[r._replace(round=0), s] / self.scales for r in recipes], axis=0)
            order = np.argsort(-norms, kind="stable")
            own = order[: int(np.searchsorted(np.cumsum(sizes[order]), most)) + 1]
            out = np.setdiff1d(np.arange(sizes.size), own)
            for recipe in recipes:
                self._norms[recipe._replace(round=0), s][out] = 0.0
            kept[own] = True
        return np.flatnonzero(kept)

    def model(self, recipe: Reweighted, split: int) -> tuple[NDArray[np.intp], FloatArray, FloatArray, list[int]]:
        """Columns of X, coefficients (n_outputs, k), intercepts, and groups, largest first."""
        posed, problem = self.posed, self.posed.problem
        if (recipe, split) in self._wide:
            fit = self._wide[recipe, split]
            coef = self._kernel.coefficients([fit])[0] * self._kernel.gains
            columns, levels = problem.layout.members, self._kernel.level(fit) - coef @ problem.mean
            norms = np.sqrt(np.add.reduceat((coef * coef).sum(axis=0), problem.layout.starts[:-1]))
            groups = np.arange(norms.size)
            coef, intercept = posed.outputs(coef), posed.levels(levels)
        else:
            made = self._fits[recipe, split]
            groups, norms = self._rows.groups, made.norms
            columns, coef, intercept = posed.to_user(groups.tolist(), *self._rows.working(made))
        order = np.argsort(-norms, kind="stable")
        return columns, coef, intercept, [int(groups[i]) for i in order if norms[i] > 0]
