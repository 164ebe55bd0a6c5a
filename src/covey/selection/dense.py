"""Dense candidates: ridges on all columns, plain and reweighted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.limit.reweighted import noise_norms, shares_of
from covey.progress import tell
from covey.selection.fitting import Fitting
from covey.selection.judge import Judge
from covey.selection.recipe import Recipe, Reweighted
from covey.selection.thresholds import Thresholds
from covey.validation import FloatArray

__all__ = ["DenseSearch"]

# The relative penalty of groups that are always in the model: as good as none, but the matrix stays invertible.
ALWAYS = 1e-6

# The nominal size of a ridge on all columns: larger than any set of groups, and a little smaller for each reweighting.
DENSE_SIZE = 1e6

# In a wide design, the groups of largest norm on each split stay in after the first round, up to this many columns per
# row: the others contribute next to nothing to the kernel.
COLUMNS_PER_ROW = 2

# If fits on all columns are slow, two of the penalties are tried first. On simulated problems the others lowered the
# better error by at most a tenth, so if it is above HOPELESS times the least error of all candidates, they are skipped.
FIRST_TRIED, HOPELESS = slice(2, 5, 2), 1.5


class DenseSearch:
    """Ridges on all columns, for all splits.

    Parameters
    ----------
    fitting : Fitting
        With the near groups; X is read for the others.
    always : sequence of int
        Groups that are not penalised.
    thresholds : Thresholds

    Attributes
    ----------
    recipes : list of Reweighted
        The candidates so far.
    """

    def __init__(self, fitting: Fitting, always: Sequence[int], thresholds: Thresholds) -> None:
        self.fitting, self.near, self.posed, self.thresholds = fitting, fitting.near, fitting.posed, thresholds
        self.always = np.asarray(always, dtype=np.intp)
        self.scales = noise_norms(fitting.posed.problem.layout.sizes)
        self.recipes: list[Recipe] = []
        self._kernel: Any = None
        self._rows: Any = None
        self._fits: dict[tuple[Reweighted, int], Any] = {}
        self._norms: dict[tuple[Reweighted, int], FloatArray] = {}

    def run(self, judge: Judge) -> None:
        """Fit plain ridges; then reweight the best penalty and its neighbours as long as that helps."""
        settings = self.thresholds
        recipes = [Reweighted(penalty, 0) for penalty in settings.penalties]
        if not self._plain(recipes, judge):
            return
        least = np.inf
        for round_ in range(settings.reweightings):
            errors = judge.errors()
            best = min(recipes, key=lambda r: errors[r])
            if errors[best] > settings.within * min(errors.values()):
                return
            if errors[best] > (1 - settings.improvement) * least:
                return
            least = errors[best]
            # the best penalty grows with the number of reweightings
            at = recipes.index(best)
            first = max(0, at - 1) if round_ == 0 else at
            recipes = [r._replace(round=round_ + 1) for r in recipes[first : at + 2]]
            if self._rows is None:
                self._rows = self.fitting.dense_rows(self._largest(recipes))
            self._try(recipes, judge)

    def _plain(self, recipes: Sequence[Reweighted], judge: Judge) -> bool:
        """Fit ridges on all columns, a few of them first if they are slow; return whether all were fitted."""
        if self.near.all:
            self._rows = self.fitting.dense_rows(self.near.groups)
        else:
            shares = np.ones(self.posed.problem.ranks.size)
            shares[self.always] = ALWAYS
            self._kernel = self.fitting.kernel(shares)
        first = recipes[FIRST_TRIED] if self.fitting.slow_dense else []
        if first:
            self._try(first, judge)
            errors = judge.errors()
            if min(errors[r] for r in first) > HOPELESS * min(errors.values()):
                return False
        self._try([r for r in recipes if r not in first], judge)
        return True

    def _try(self, recipes: Sequence[Reweighted], judge: Judge) -> None:
        """Fit recipes of one round on every scored split."""
        judged = [s for s, split in enumerate(self.posed.splits) if split.test]
        for at, s in enumerate(judged):
            made = self._kernel if self._is_wide(recipes[0]) else self._rows
            table = made.predictions(self.posed.splits[s], self._fitted(recipes, s))
            judge.add(at, recipes, table, [DENSE_SIZE - r.round for r in recipes])
            tell("ridges on all groups", "fold", at + 1, len(judged))
        self.recipes += recipes

    def _is_wide(self, recipe: Reweighted) -> bool:
        """Whether a recipe uses the kernel of all columns rather than the columns in memory."""
        return self._kernel is not None and recipe.round == 0

    def _fitted(self, recipes: Sequence[Reweighted], s: int) -> list[Any]:
        """Models of one round on a split; models on all rows are fitted only when requested."""
        new = [r for r in recipes if (r, s) not in self._fits]
        if new and self._is_wide(new[0]):
            fits = self._kernel.fits(self.posed.splits[s], [r.penalty for r in new])
            self._fits.update({(r, s): fit for r, fit in zip(new, fits, strict=True)})
        elif new:
            self._reweigh(new, s)
        return [self._fits[r, s] for r in recipes]

    def _reweigh(self, recipes: Sequence[Reweighted], s: int) -> None:
        """Fit recipes on a split, with penalties that follow from the round before."""
        before = [r._replace(round=r.round - 1) for r in recipes if r.round > 0]
        self._fitted([r for r in before if (r, s) not in self._norms], s)
        rows, split = self._rows, self.posed.splits[s]
        # recomputed in every round: for all splits together it would take several times the memory of X
        training = rows.training(split, self.posed.n_rows(split))
        shares = np.array([self._shares(r, s) for r in recipes])
        fits = rows.fits(training, [r.penalty * training.unit for r in recipes], shares)
        for recipe, fit in zip(recipes, fits, strict=True):
            self._fits[recipe, s] = fit
            self._norms[recipe, s] = np.zeros(self.posed.problem.ranks.size)
            self._norms[recipe, s][rows.groups] = fit.norms

    def _shares(self, recipe: Reweighted, split: int) -> FloatArray:
        """Factors that multiply the penalties of the groups in memory."""
        groups = self._rows.groups
        shares: FloatArray = np.ones(groups.size)
        if recipe.round > 0:
            norms = self._norms[recipe._replace(round=recipe.round - 1), split]
            shares = shares_of(norms, self.scales)[groups]
        if self.always.size:
            shares[np.isin(groups, self.always)] = ALWAYS
        return shares

    def _largest(self, recipes: Sequence[Reweighted]) -> NDArray[np.intp]:
        """The groups that stay in after the first round: those of largest norm on some split."""
        splits, layout = self.posed.splits, self.posed.problem.layout
        plain = [r._replace(round=0) for r in recipes]
        coefs = self._kernel.coefficients([fit for s in range(len(splits)) for fit in self._fitted(plain, s)])
        every = np.sqrt(np.add.reduceat(np.einsum("ijk,ijk->ik", coefs, coefs), layout.starts[:-1], axis=1))
        every = every.reshape(len(splits), len(plain), -1)
        kept = np.zeros(layout.sizes.size, dtype=bool)
        kept[self.always] = True
        for s, split in enumerate(splits):
            most = COLUMNS_PER_ROW * self.posed.n_rows(split)
            norms = (every[s] / self.scales).max(axis=0)
            order = np.argsort(-norms, kind="stable")
            own = order[: int(np.searchsorted(np.cumsum(layout.sizes[order]), most)) + 1]
            for recipe, full in zip(plain, every[s], strict=True):
                self._norms[recipe, s] = np.zeros(layout.sizes.size)
                self._norms[recipe, s][own] = full[own]
            kept[own] = True
        return np.flatnonzero(kept)

    def model(self, recipe: Reweighted, split: int) -> tuple[NDArray[np.intp], FloatArray, FloatArray, list[int]]:
        """Columns of X, coefficients (n_outputs, k), intercepts, and groups, largest first."""
        posed, problem = self.posed, self.posed.problem
        (fit,) = self._fitted([recipe], split)
        if self._is_wide(recipe):
            coef = self._kernel.coefficients([fit])[0] * self._kernel.gains
            columns, levels = problem.layout.members, self._kernel.level(fit) - coef @ problem.mean
            norms = np.sqrt(np.add.reduceat((coef * coef).sum(axis=0), problem.layout.starts[:-1]))
            groups = np.arange(norms.size)
            coef, intercept = posed.outputs(coef), posed.levels(levels)
        else:
            groups, norms = self._rows.groups, fit.norms
            columns, coef, intercept = posed.to_user(groups.tolist(), *self._rows.working(fit))
        order = np.argsort(-norms, kind="stable")
        return columns, coef, intercept, [int(groups[i]) for i in order if norms[i] > 0]
