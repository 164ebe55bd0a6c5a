"""Ridges on all columns of main groups, plain and reweighted by dividing penalties by the norms of the fit before.

Repeated, reweighting tends to the group lasso. These models are for dense signals, where no small set of groups
explains much. A plain ridge may have pairs of main groups besides: many small interactions. Penalties apply to
coefficients of scaled columns, as in `covey.search.ridges`. If X has too many columns for a table, ridges are plain
and in coordinates of the rows, from their inner products.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from covey.designs import Design
from covey.progress import tell
from covey.search.coordinates import RidgeFit, RowCoordinates, ScaledColumns
from covey.search.judge import TIE
from covey.search.recipes import Model, Recipe, Training
from covey.search.settings import Settings
from covey.search.table import MOST_ROWS, Table
from covey.validation import FloatArray

if TYPE_CHECKING:
    from covey.search.search import Found

__all__ = ["DenseRidges", "Reweighted", "dense_is_left_out", "score_dense"]

# The relative penalty of groups that are always in the model: as good as none, but the matrix stays invertible. If the
# minimum on them lies at infinity, they have the same penalty as others.
ALWAYS = 1e-6

# The nominal size of a ridge on all columns: larger than any set of groups, and a little smaller for each reweighting.
NOMINAL_SIZE = 1e6

# The most multiplications allowed for one Newton step on all columns.
MOST_WORK = 2e9

# The largest X, in numbers, that is streamed for ridges on all columns (2 GiB): eight passes for inner products of its
# rows, and as many for coefficients.
MOST_STREAMED = 2**28

# The most multiplications allowed for the inner products of the rows if pairs are among the columns. Under other losses
# than squares every penalty takes some Newton steps.
MOST_PAIRS, SLOWER = 5e9, 20


@dataclass(frozen=True)
class Reweighted(Recipe):
    """A ridge on all columns, possibly reweighted by dividing penalties by the groups' norms.

    Attributes
    ----------
    penalty : float
        In units of the mean eigenvalue of the kernel matrix.
    round : int
        The number of reweightings.
    pairs : bool
        Whether the groups that are no main groups, such as pairs of variables, are in it too.
    """

    penalty: float
    round: int
    pairs: bool = False
    n_groups: None = field(default=None, init=False)

    @property
    def family(self) -> Hashable:
        """The number of reweightings, and whether pairs are in it."""
        return "all groups", self.round, self.pairs

    def text(self, unpenalised: str = "") -> str:
        """A description."""
        times = "" if not self.round else ", reweighted" + (f" {self.round} times" if self.round > 1 else " once")
        return f"ridge {self.penalty:.3g} on all groups{' and pairs' * self.pairs}{times}"

    def fit(self, training: Training) -> Model:
        """Fit the ridge, after the rounds before it."""
        assert training.dense is not None
        return training.dense.model(self, training)


def can_be_dense(table: Table) -> bool:
    """Whether models on all columns are affordable: X may be on disk, or have too many rows."""
    posed = table.posed
    n, r = len(table.labels), int(posed.ranks[: posed.n_mains].sum())
    if not table.mains_near and (table.compressed or dense_is_left_out(posed.design, posed.settings)):
        return False
    return posed.response.loss.quadratic or n * min(n, r) ** 2 <= MOST_WORK


def dense_is_left_out(design: Design, settings: Settings) -> bool:
    """Whether an X whose groups are not all near is too large, or too slow to read, for models on all columns."""
    n, p = design.shape
    # an X that is streamed is read for them only if they may be chosen
    streamed = not design.reads_columns and (settings.reweightings == 0 or n * p > MOST_STREAMED)
    return n > MOST_ROWS or streamed


def can_have_pairs(table: Table) -> bool:
    """Whether ridges on main groups and pairs are affordable."""
    posed = table.posed
    if posed.all_main or posed.pieces or not table.all_near or table.compressed:
        return False
    n, r = len(table.labels), int(posed.ranks.sum())
    fits = 1 if posed.response.loss.quadratic else SLOWER
    return n * n * max(n, r) * fits <= MOST_PAIRS


def noise_norms(sizes: NDArray[np.intp]) -> FloatArray:
    """The norm that pure noise reaches in a group of each size, scaled to mean one."""
    norms = np.sqrt(sizes) + np.sqrt(2 * np.log(max(sizes.size, 2)))
    return np.asarray(norms / norms.mean())


class DenseRidges:
    """Ridges on all columns, for all splits.

    Parameters
    ----------
    table : Table
    trainings : sequence of Training
    """

    def __init__(self, table: Table, trainings: Sequence[Training]) -> None:
        self.table, self.trainings, self.posed = table, trainings, table.posed
        self.settings: Settings = self.posed.settings
        self.penalties = trainings[0].penalties
        self.penalties.learn(np.arange(self.posed.n_mains))
        self.always = np.asarray(trainings[0].always, dtype=np.intp)
        self.always_share = 1.0 if any(training.always_infinite for training in trainings) else ALWAYS
        self.noise = noise_norms(self.posed.working.layout.sizes[: self.posed.n_mains])
        self.recipes: list[Recipe] = []
        self._fits: dict[tuple[Reweighted, int], RidgeFit] = {}
        for training in trainings:
            training.dense = weakref.proxy(self)  # a cycle would keep tensors alive

    @cached_property
    def plain(self) -> ScaledColumns | RowCoordinates:
        """The coordinates of ridges on main groups."""
        if self.table.mains_near:
            return ScaledColumns(self.table, np.arange(self.posed.n_mains), self.penalties)
        shares = np.ones(self.posed.n_mains)
        shares[self.always] = self.always_share
        return RowCoordinates(self.table, self.penalties, shares)

    @cached_property
    def with_pairs(self) -> ScaledColumns:
        """The coordinates of ridges on all groups but late ones: pairs together vary as much as the main groups do."""
        posed = self.posed
        groups = np.delete(np.arange(posed.ranks.size), posed.late)
        is_main = groups < posed.n_mains
        factors = np.where(is_main, 1.0, posed.ranks[groups[~is_main]].sum() / posed.ranks[groups[is_main]].sum())
        factors[np.isin(groups, self.always)] = self.always_share
        return ScaledColumns(self.table, groups, self.penalties, factors)

    def coordinates(self, recipe: Reweighted) -> ScaledColumns | RowCoordinates:
        """The coordinates of a recipe."""
        return self.with_pairs if recipe.pairs else self.plain

    def fits(self, recipes: Sequence[Reweighted], training: Training) -> list[RidgeFit]:
        """Fits of recipes of one round on a split; models on all rows are fitted only when requested."""
        new = [recipe for recipe in recipes if (recipe, training.number) not in self._fits]
        if new:
            coordinates = self.coordinates(new[0])
            unit = coordinates.unit(training)
            shares = [self._shares(recipe, training) for recipe in new]
            fits = coordinates.fits(training, [recipe.penalty * unit for recipe in new], shares)
            self._fits.update({(recipe, training.number): fit for recipe, fit in zip(new, fits, strict=True)})
        return [self._fits[recipe, training.number] for recipe in recipes]

    def _shares(self, recipe: Reweighted, training: Training) -> FloatArray:
        """Factors that multiply the penalties of the groups in the coordinates of a recipe."""
        if recipe.pairs:
            return np.ones(self.with_pairs.groups.size)
        shares: FloatArray = np.ones(self.posed.n_mains)
        if recipe.round:
            (before,) = self.fits([replace(recipe, round=recipe.round - 1)], training)
            # large for groups of small norm
            shares = self.noise / np.maximum(before.norms / (before.norms.mean() or 1.0), self.settings.least_share)
        shares[self.always] = self.always_share
        return shares

    def model(self, recipe: Reweighted, training: Training) -> Model:
        """The model of a recipe on a split."""
        (fit,) = self.fits([recipe], training)
        coordinates = self.coordinates(recipe)
        if isinstance(coordinates, ScaledColumns):
            groups, norms = coordinates.groups, fit.norms
        else:
            groups, norms = np.arange(self.posed.n_mains), coordinates.norms(coordinates.coefficients([fit]))[0]
        order = np.argsort(-norms, kind="stable")
        return Model(
            [int(groups[i]) for i in order if norms[i] > 0], coordinates.predictors(training, [fit])[:, :, 0],
            NOMINAL_SIZE - recipe.round, lambda: coordinates.on_columns(fit),
        )  # fmt: skip


def score_dense(found: Found) -> None:
    """Score ridges on all columns on every split of the first deal: of main groups, and of pairs besides.

    Plain ridges come first; then the best penalty and its neighbours are reweighted as long as that helps.
    """
    table, trainings, judge, scored = found.table, found.trainings, found.judge, found.scored
    posed, settings = table.posed, table.posed.settings
    # they have no constraints, and nothing but main groups and pairs
    if not settings.penalties or posed.cone is not None or any(l >= posed.n_mains for l in found.final.always):
        return
    left = np.inf if found.always_noisy else found.left
    plain = left > settings.dense and can_be_dense(table)
    # with pairs, only where models on all groups may be chosen, and are reweighted
    pairs = left > settings.noisy and settings.reweightings > 0 and can_have_pairs(table)
    if not plain and not pairs:
        return
    dense = found.dense = DenseRidges(table, trainings)
    recipes, least = [Reweighted(penalty, 0) for penalty in settings.penalties if plain], np.inf
    quadratic = posed.response.loss.quadratic
    # one fold comes first: with a few penalties if fits are slow; with all if no such model can be chosen, and only the
    # best one is asked for
    tried = recipes
    if settings.reweightings:
        tried = [] if quadratic else [recipes[i] for i in settings.first_penalties if i < len(recipes)]
    if tried:
        in_fold = judge.scores[0].errors(dense.plain.predictors(scored[0], dense.fits(tried, scored[0])))
        if not quadratic and in_fold.min() > settings.hopeless * judge.least_error(0):
            recipes = []
        elif not settings.reweightings:
            at = int(in_fold.argmin())
            recipes = recipes[max(0, at - 1) : at + 2]
    while recipes:
        round_ = recipes[0].round
        for at, training in enumerate(scored):
            predictors = dense.plain.predictors(training, dense.fits(recipes, training))
            judge.add(at, recipes, predictors, [NOMINAL_SIZE - round_] * len(recipes))
            tell("ridges on all groups", "fold", at + 1, len(scored))
        dense.recipes += recipes
        errors = judge.errors()
        best = min(recipes, key=lambda r: errors[r])
        last = round_ == settings.reweightings or isinstance(dense.plain, RowCoordinates)
        if last or errors[best] > (1 - TIE) * least:
            break
        least = errors[best]
        # the best penalty grows with the number of reweightings
        at = recipes.index(best)
        lowest = max(0, at - 1) if round_ == 0 else at
        recipes = [replace(r, round=round_ + 1) for r in recipes[lowest : at + 2]]
    if pairs:
        recipes = [Reweighted(penalty, 0, pairs=True) for penalty in settings.penalties]
        for at, training in enumerate(scored):
            predictors = dense.with_pairs.predictors(training, dense.fits(recipes, training))
            judge.add(at, recipes, predictors, [NOMINAL_SIZE] * len(recipes))
        dense.recipes += recipes
    found.recipes |= dict.fromkeys(dense.recipes)
