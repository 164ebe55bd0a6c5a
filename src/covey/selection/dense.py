"""Candidates in which all groups take part: ridges on all columns, and reweighted ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from covey.limit.kernel import KernelFit, RowKernel
from covey.limit.lockstep import Near
from covey.limit.reweighted import DenseRows, RidgeFit, noise_norms, shares_of
from covey.limit.ridges import Penalties
from covey.selection.judge import Judge
from covey.selection.recipe import Recipe, Reweighted
from covey.selection.thresholds import Thresholds
from covey.validation import FloatArray

__all__ = ["DenseSearch"]

# The penalty of groups that are always in, relative to the others: none, but for the sake of an invertible matrix.
ALWAYS = 1e-6

# A ridge on all columns is less simple than any set of groups; one that was reweighted, a little less so.
DENSE_SIZE = 1e6

# Inner products of more rows than this take more memory and time than most designs of so many rows do.
MOST_ROWS = 4000

# Of a wide design, groups with this many columns per row stay in after the first round, those of largest norm on each
# split: the others have hardly any share of the kernel left.
COLUMNS_PER_ROW = 2


class DenseSearch:
    """Ridges of all splits.

    Parameters
    ----------
    near : Near
        Groups in hand; where these are not all, X is read for the others.
    always : sequence of int
        Groups that are not penalised.
    thresholds : Thresholds
    penalties : Penalties

    Attributes
    ----------
    recipes : list of Reweighted
        What was made.
    """

    def __init__(self, near: Near, always: Sequence[int], thresholds: Thresholds, penalties: Penalties) -> None:
        self.near, self.posed, self.thresholds, self.penalties = near, near.posed, thresholds, penalties
        self.always = np.asarray(always, dtype=np.intp)
        self.scales = noise_norms(near.posed.problem.layout.sizes)
        self.recipes: list[Recipe] = []
        self._kernel: RowKernel | None = None
        self._wide: dict[tuple[Reweighted, int], KernelFit] = {}
        self._rows: DenseRows | None = None
        self._fits: dict[tuple[Reweighted, int], RidgeFit] = {}
        self._norms: dict[tuple[Reweighted, int], FloatArray] = {}

    @staticmethod
    def possible(near: Near) -> bool:
        """Whether all columns can be brought in: from disk they would be read too often, and rows may be too many."""
        design = near.posed.problem.design
        return near.all or (bool(design.reads_columns) and design.shape[0] <= MOST_ROWS)

    def run(self, judge: Judge) -> None:
        """Plain ridges; then the best penalty and its neighbours reweighted, as long as that is of use."""
        settings = self.thresholds
        recipes = [Reweighted(penalty, 0) for penalty in settings.penalties]
        if self.near.all:
            self._bring(self.near.groups)
            self._reweigh(recipes, judge)
        else:
            self._plain_wide(recipes, judge)
        least = np.inf
        for round_ in range(settings.reweightings):
            errors = judge.errors()
            best = min(recipes, key=lambda r: errors[r])
            if errors[best] > settings.within * min(errors.values()):
                return
            if errors[best] > (1 - settings.improvement) * least:
                return
            least = errors[best]
            # the more often penalties are divided, the larger they had better be
            at = recipes.index(best)
            first = max(0, at - 1) if round_ == 0 else at
            recipes = [r._replace(round=round_ + 1) for r in recipes[first : at + 2]]
            if self._rows is None:
                self._bring(self._largest(recipes))
            self._reweigh(recipes, judge)

    def _bring(self, groups: NDArray[np.intp]) -> None:
        """Have the rows of some groups at hand."""
        rows = self.near.rows if groups is self.near.groups else self.posed.rows(groups)
        self._rows = DenseRows(rows, groups, self.penalties, self.posed.intercept)

    def _reweigh(self, recipes: Sequence[Reweighted], judge: Judge) -> None:
        """Fit recipes on every split that is judged, each with the penalties that its round before asks for."""
        for s, split in enumerate(self.posed.splits):
            if split.test:
                rows, fits = self._at_hand, self._fit(recipes, s)
                self._add(judge, s, recipes, rows.residuals(split, fits))
        self.recipes += recipes

    @property
    def _at_hand(self) -> DenseRows:
        assert self._rows is not None
        return self._rows

    def _fit(self, recipes: Sequence[Reweighted], s: int) -> list[RidgeFit]:
        """Recipes of one round on the rows of a split, and what their norms are."""
        rows, split = self._at_hand, self.posed.splits[s]
        # made again in every round: those of all splits together would take several times the memory of X
        training = rows.training(split, self.posed.n_rows(split))
        shares = np.array([self._shares(recipe, s) for recipe in recipes])
        fits = rows.fits(training, [r.penalty * training.unit for r in recipes], shares)
        for recipe, fit in zip(recipes, fits, strict=True):
            self._fits[recipe, s] = fit
            norms = np.zeros(self.posed.problem.ranks.size)
            norms[rows.groups] = fit.norms
            self._norms[recipe, s] = norms
        return fits

    def _fitted(self, recipe: Reweighted, s: int) -> RidgeFit:
        """A recipe on the rows of a split; on all rows it is made when it is asked for, as most never are."""
        if (recipe, s) not in self._fits:
            before = recipe._replace(round=recipe.round - 1)
            if recipe.round > 0 and (before, s) not in self._norms:
                self._fitted(before, s)
            self._fit([recipe], s)
        return self._fits[recipe, s]

    def _plain_wide(self, recipes: Sequence[Reweighted], judge: Judge) -> None:
        """Ridges on all columns of a wide design."""
        shares = np.ones(self.posed.problem.ranks.size)
        shares[self.always] = ALWAYS
        self._kernel = RowKernel(self.posed, self.penalties, shares)
        for s, split in enumerate(self.posed.splits):
            if split.test:
                self._add(judge, s, recipes, self._kernel.residuals(split, self._fit_wide(recipes, s)))
        self.recipes += recipes

    def _fit_wide(self, recipes: Sequence[Reweighted], s: int) -> list[KernelFit]:
        """Plain ridges on all columns of a wide design, on the rows of a split."""
        assert self._kernel is not None
        new = [r for r in recipes if (r, s) not in self._wide]
        if new:
            fits = self._kernel.fits(self.posed.splits[s], [r.penalty for r in new])
            self._wide.update({(r, s): fit for r, fit in zip(new, fits, strict=True)})
        return [self._wide[r, s] for r in recipes]

    def _add(self, judge: Judge, split: int, recipes: Sequence[Reweighted], residuals: FloatArray) -> None:
        judged = [s for s, own in enumerate(self.posed.splits) if own.test]
        judge.add(judged.index(split), recipes, residuals, [DENSE_SIZE - r.round for r in recipes])

    def _shares(self, recipe: Reweighted, split: int) -> FloatArray:
        """What the penalties of the groups at hand are multiplied by."""
        groups = self._at_hand.groups
        shares: FloatArray = np.ones(groups.size)
        if recipe.round > 0:
            norms = self._norms[recipe._replace(round=recipe.round - 1), split]
            shares = shares_of(norms, self.scales)[groups]
        if self.always.size:
            shares[np.isin(groups, self.always)] = ALWAYS
        return shares

    def _largest(self, recipes: Sequence[Reweighted]) -> NDArray[np.intp]:
        """The groups that stay in: those of largest norm on some split."""
        assert self._kernel is not None
        sizes, starts = self.posed.problem.layout.sizes, self.posed.problem.layout.starts
        plain = [r._replace(round=0) for r in recipes]
        coefs = self._kernel.coefficients([f for s in range(len(self.posed.splits)) for f in self._fit_wide(plain, s)])
        every = np.sqrt(np.add.reduceat(coefs * coefs, starts[:-1], axis=1)).reshape(-1, len(plain), sizes.size)
        kept = np.zeros(sizes.size, dtype=bool)
        kept[self.always] = True
        for s, split in enumerate(self.posed.splits):
            most = COLUMNS_PER_ROW * self.posed.n_rows(split)
            norms = (every[s] / self.scales).max(axis=0)
            order = np.argsort(-norms, kind="stable")
            own = order[: int(np.searchsorted(np.cumsum(sizes[order]), most)) + 1]
            for recipe, full in zip(plain, every[s], strict=True):
                self._norms[recipe, s] = np.zeros(sizes.size)
                self._norms[recipe, s][own] = full[own]
            kept[own] = True
        return np.flatnonzero(kept)

    def model(self, recipe: Reweighted, split: int) -> tuple[NDArray[np.intp], FloatArray, float, list[int]]:
        """Columns of X, coefficients, intercept (response in working units), and groups, largest first."""
        problem = self.posed.problem
        if self._kernel is not None and recipe.round == 0:
            (fit,) = self._fit_wide([recipe], split)
            coef = self._kernel.coefficients([fit])[0] * self._kernel.gains
            columns, level = problem.layout.members, fit.level - float(problem.mean @ coef) - fit.shift
            norms = np.sqrt(np.add.reduceat(coef * coef, problem.layout.starts[:-1]))
            groups = np.arange(norms.size)
        else:
            made, rows = self._fitted(recipe, split), self._at_hand
            w, groups, norms = rows.working(made), rows.groups, made.norms
            columns, loadings, offset = problem.combination(groups.tolist())
            coef, level = loadings @ w, made.intercept - float(offset @ w)
        order = np.argsort(-norms, kind="stable")
        return columns, coef, level, [int(groups[i]) for i in order if norms[i] > 0]
