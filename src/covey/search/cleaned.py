"""Cleaned: groups of a limit path that are left after backward elimination, fitted without a penalty or by a ridge.

Which groups are dropped, and where each fit starts, is read off the quadratic model of the loss at the end of a prefix.
For a quadratic loss that is the fit itself; for others Newton's method finishes it.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.layout import spans
from covey.progress import tell
from covey.search.active import DEPENDENT, ActiveSet
from covey.search.arrays import host
from covey.search.elimination import Eliminated, eliminate_all
from covey.search.newton import Curvature, minimise, rough_ridges
from covey.search.paths import Paths
from covey.search.quadratic import Quadratic
from covey.search.recipes import Model, Recipe, Training
from covey.validation import FloatArray

__all__ = ["Cleaned", "CleanedRound", "clean"]


@dataclass(frozen=True)
class Cleaned(Recipe):
    """Groups of the limit path that remain after backward elimination, fitted by least squares or a ridge.

    Attributes
    ----------
    round : int
        0 for a path that starts without groups, 1 for one that starts from the groups that round 0 kept, and so on.
    prefix : int
        The length of the path's prefix that elimination started from.
    n_groups : int
        The number of groups left.
    ridge : float
        The penalty on columns of unit variance; 0 for least squares.
    """

    round: int
    prefix: int
    n_groups: int
    ridge: float

    def __post_init__(self) -> None:
        # computed once: a search looks recipes up thousands of times
        object.__setattr__(self, "_hash", hash((self.round, self.prefix, self.n_groups, self.ridge)))

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined]

    def text(self, unpenalised: str = "least squares") -> str:
        """A description."""
        if self.n_groups == 0:
            return "no group"
        fit = f"ridge {self.ridge:g}" if self.ridge else unpenalised
        again = f", round {self.round + 1}" if self.round else ""
        return f"{fit} on {self.n_groups} of the first {self.prefix} groups{again}"

    def fit(self, training: Training) -> Model:
        """Refit the groups that elimination kept."""
        return training.rounds[self.round].model(self)

    @classmethod
    def scored(cls, recipes: Sequence[Cleaned], training: Training) -> tuple[FloatArray, list[float]]:
        """Predictors and sizes of all recipes of one round."""
        round_ = training.rounds[recipes[0].round]
        at = [round_.place[recipe] for recipe in recipes]
        table = training.predictors(round_.columns, round_.W[at], round_.levels[at])
        return table, [float(round_.sizes[i]) for i in at]

    def groups(self, training: Training) -> list[int]:
        """The groups that are left, as positions among all groups."""
        return training.rounds[self.round].groups_of(self)


class CleanedRound:
    """The sets of groups that elimination leaves on one path, and the models on them.

    Attributes
    ----------
    training : Training
    active : ActiveSet
        The end of the path, without common factors.
    groups : list of int
        The groups of the path, as positions among all groups.
    recipes : list of Cleaned
    sets : dict
        The groups of each recipe without a ridge, as positions on the path.
    W, levels : ndarray, shape (n_recipes, n_outputs, k) and (n_recipes, n_outputs)
        Coefficients of the path's columns, and intercepts.
    sizes : list of int
        The number of linearly independent columns of each model.
    """

    def __init__(self, training: Training, active: ActiveSet, groups: list[int]) -> None:
        # a proxy, because the training rows hold their rounds: a cycle would keep tensors alive
        self.training: Training = weakref.proxy(training)
        self.active, self.groups = active, groups
        self.n_always = len(training.always)
        self.columns = active.table.columns(active.groups)
        self._starts = np.array(active.widths, dtype=np.intp) - active.n_first
        self.recipes: list[Cleaned] = []
        self.sets: dict[Cleaned, list[int]] = {}
        self.sizes: list[int] = []
        self.W: FloatArray = np.empty((0, active.response.n_outputs, self.columns.size))
        self.levels: FloatArray = np.empty((0, active.response.n_outputs))
        self.place: dict[Cleaned, int] = {}
        self._penalty: FloatArray | None = None
        # the last set that was fitted: its groups, the second derivative of the loss, and the minimiser
        self._last: tuple[frozenset[int], Curvature, FloatArray | None] = frozenset(), Curvature(), None

    @property
    def intercept(self) -> int:
        """The number of columns before those of the groups."""
        return self.active.n_first

    @property
    def penalty(self) -> FloatArray:
        """The quadratic form of a ridge, in units of the null model's curvature; zero for groups that are always in."""
        if self._penalty is None:
            unit = self.active.response.null_curvature(self.training.posed.intercept)
            self._penalty = self.training.penalties.matrix(self.groups, self.n_always) * unit
        return self._penalty

    def quadratics(self, prefixes: Sequence[int]) -> list[Quadratic]:
        """The quadratic model of the loss at the end of each prefix."""
        active = self.active
        if active.response.loss.quadratic:
            everything = Quadratic.around(active, len(self.groups), active.models[-1])
            return [everything.first(m) for m in prefixes]
        found = []
        for prefix in prefixes:
            found.append(self._around(prefix))
        return found

    def _around(self, prefix: int) -> Quadratic:
        active, coef, ridge = self.active, self.active.models[prefix], None
        if active.separated[prefix]:
            # with perfect separation there is no curvature left
            k = len(coef) - self.intercept
            ridge = self.training.posed.settings.elimination_ridge * self.penalty[:k, :k]
            self._last = frozenset(self.groups[:prefix]), Curvature(), None
            coef = self._minimised(np.arange(len(coef)), coef, ridge)[0]
        return Quadratic.around(active, prefix, coef, ridge)

    def add(
        self, round_: int, quadratics: Sequence[Quadratic], eliminated: Sequence[Eliminated], ridges: Sequence[float]
    ) -> None:
        """Make the candidates, given the order in which groups were dropped from each prefix."""
        blocks, levels = [], []
        for quadratic, (dropped, nested_W) in zip(quadratics, eliminated, strict=True):
            prefix, k, n = quadratic.starts.size - 1, len(quadratic.c), len(dropped) + 1
            nested = [list(range(prefix))]
            for group in dropped:
                nested.append([l for l in nested[-1] if l != group])
            tried = [i for i in range(n - 1) if is_tried(n - 1 - i, i, self.training.posed.settings.ridge_sizes)]
            tried = tried if ridges else []
            plain, shrunk = _recipes(round_, prefix, n, tuple(tried), tuple(ridges))
            lengths = k - np.cumsum([0, *np.diff(quadratic.starts)[dropped]])
            W, ranks = nested_W.transpose(0, 2, 1), lengths.tolist()
            if self.active.deficient:
                # a column that was a combination of others may be independent of those that are left
                W, ranks = quadratic.least_norm(nested)
            if tried:
                # groups dropped last come first
                order = quadratic.positions([*range(self.n_always), *reversed(dropped)])
                with_ridge = quadratic.ridges(self.penalty[:k, :k], order, lengths[tried], ridges)
                W = np.concatenate([W, with_ridge])
            self.recipes += plain + shrunk
            self.sizes += [*ranks, *(ranks[i] for i in tried for _ in ridges)]
            self.sets.update(zip(plain, nested, strict=True))
            blocks.append(np.concatenate([W, np.zeros((*W.shape[:2], self.columns.size - k))], axis=2))
            levels.append(quadratic.levels(W))
        self.W, self.levels = np.concatenate(blocks), np.concatenate(levels)
        self.place = {}
        for i, recipe in enumerate(self.recipes):
            self.place.setdefault(recipe, i)

    def finish(self) -> None:
        """Replace what was read off the quadratic model by the minimisers themselves."""
        if self.active.response.loss.quadratic:
            return
        sets: dict[tuple[int, ...], list[int]] = {}
        for i, recipe in enumerate(self.recipes):
            sets.setdefault(tuple(self._left(recipe)), []).append(i)
        # from the smallest set on: separation carries over to larger sets
        for left, candidates in sorted(sets.items(), key=lambda item: len(item[0])):
            self._fit_ridges(left, [i for i in candidates if self.recipes[i].ridge])
            for i in sorted(candidates, key=lambda i: -self.recipes[i].ridge):
                coef, self.sizes[i], _ = self._refitted(i)
                self._put(i, coef)

    def _left(self, recipe: Cleaned) -> list[int]:
        """The groups of a recipe, as positions on the path."""
        return self.sets[replace(recipe, ridge=0.0)]

    def _fit_ridges(self, left: Sequence[int], candidates: Sequence[int]) -> None:
        """Fit ridges on the same groups together, if only rough fits are needed."""
        groups = frozenset(self.groups[l] for l in left)
        new = [i for i in candidates if (groups, self.recipes[i].ridge) not in self.training.fits]
        if len(new) < 2 or not self.training.rough or self.W.shape[1] > 1:
            return
        at, curvature = self._at(left), Curvature()
        columns = np.concatenate([np.arange(self.intercept), self.intercept + at])
        M = np.zeros((columns.size, columns.size))
        M[self.intercept :, self.intercept :] = self.penalty[np.ix_(at, at)]
        starts = np.stack([np.append(self.levels[i][: self.intercept], self.W[i, 0, at]) for i in new], axis=1)
        ridges = [self.recipes[i].ridge for i in new]
        coefs = rough_ridges(self.active.response, self.active.A[:, columns], starts, M, ridges, curvature)
        for coef, ridge in zip(coefs.T, ridges, strict=True):
            full = np.zeros((self.intercept + self.columns.size, 1))
            full[columns, 0] = coef
            self._keep(left, groups, ridge, full)
            self._last = groups, curvature, full

    def groups_of(self, recipe: Cleaned) -> list[int]:
        """The groups of a recipe, as positions among all groups."""
        return [self.groups[i] for i in self._left(recipe)]

    def model(self, recipe: Cleaned) -> Model:
        """The model of a recipe, with all digits if it is returned to the user."""
        i, groups, remark = self.place[recipe], self.groups_of(recipe), ""
        if self.training.final and not self.active.response.loss.quadratic:
            coef, _, separated = self._refitted(i)
            self._put(i, coef)
            if separated:
                remark = f"ridge {self.training.posed.settings.separated_ridge:g}"
        at = self._at(self._left(recipe))
        return self.training.model(
            groups, self.W[i][:, at], self.levels[i], shrunk=bool(recipe.ridge or remark), remark=remark
        )

    def _put(self, i: int, coef: FloatArray) -> None:
        first = self.intercept
        self.W[i] = coef[first:].T
        if first:
            self.levels[i] = coef[0]

    def _at(self, left: Sequence[int]) -> NDArray[np.intp]:
        """The positions of the columns of some groups of the path, without the intercept."""
        return spans(self._starts, np.asarray(left, dtype=np.intp))

    def _refitted(self, i: int) -> tuple[FloatArray, int, bool]:
        """The minimiser on a candidate's groups; its size, and whether it has a small ridge against infinity."""
        recipe, training, first = self.recipes[i], self.training, self.intercept
        left = self._left(recipe)
        groups = frozenset(self.groups[l] for l in left)
        if (groups, recipe.ridge) not in training.fits:
            at = self._at(left)
            columns = np.concatenate([np.arange(first), first + at])
            start = np.vstack([self.levels[i][None, :][:first], self.W[i].T])
            if self._last[0] != groups:
                self._last = groups, Curvature(), None
            elif self._last[2] is not None:
                start = self._last[2]
            penalty, status = recipe.ridge * self.penalty[np.ix_(at, at)] if recipe.ridge else None, ""
            if penalty is None and not any(gone <= groups for gone in training.infinite):
                coef, status = self._minimised(columns, start)
            if status != "converged":
                if penalty is None:  # a small ridge against infinity
                    unit = self.active.response.null_curvature(training.posed.intercept)
                    penalty = np.diag(np.full(at.size, training.posed.settings.separated_ridge * unit))
                    training.infinite.append(groups)
                coef, _ = self._minimised(columns, start, penalty)
            self._keep(left, groups, recipe.ridge, coef)
        order, level, known = training.fits[groups, recipe.ridge]
        place = {group: l for l, group in enumerate(self.groups)}
        coef = np.zeros((first + self.columns.size, self.W.shape[1]))
        coef[:first], coef[first + self._at([place[group] for group in order])] = level, known
        size = self.sizes[i]
        if self.active.deficient and not recipe.ridge:
            coef, size = self._least_norm(self._at(left), coef)
        return coef, size, not recipe.ridge and any(gone <= groups for gone in training.infinite)

    def _keep(self, left: Sequence[int], groups: frozenset[int], ridge: float, coef: FloatArray) -> None:
        """Remember a minimiser for other prefixes and rounds."""
        first = self.intercept
        order = [self.groups[l] for l in left]
        self.training.fits[groups, ridge] = order, coef[:first], coef[first + self._at(left)]

    def _minimised(
        self, columns: NDArray[np.intp], start: FloatArray, ridge: FloatArray | None = None
    ) -> tuple[FloatArray, str]:
        """The minimiser on some columns of the path, zero elsewhere, and its status; a ridge is on the groups."""
        A = self.active.A[:, columns]
        penalty = None
        if ridge is not None:
            penalty = np.zeros((columns.size, columns.size))
            penalty[self.intercept :, self.intercept :] = ridge
        curvature = self._last[1]
        fit = minimise(self.active.response, A, start[columns], penalty, curvature=curvature, rough=self.training.rough)
        coef = np.zeros_like(start)
        coef[columns] = fit.coef
        if fit.status == "converged":
            self._last = self._last[0], curvature, coef
        return coef, fit.status

    def _least_norm(self, at: NDArray[np.intp], coef: FloatArray) -> tuple[FloatArray, int]:
        """The coefficients of least norm that give the same predictions, and the rank of their columns."""
        first, response, out = self.intercept, self.active.response, coef.copy()
        q, Z = response.weight / response.total_weight, host(self.active.A[:, first + at])
        means = (q * response.one) @ Z * first
        centred = Z - np.outer(response.one, means)
        K = centred.T @ (q[:, None] * centred)
        least, _, rank, _ = np.linalg.lstsq(K, K @ coef[first + at], rcond=DEPENDENT)
        out[:first] += (means @ (coef[first + at] - least))[None, :][:first]
        out[first + at] = least
        return out, int(rank)


def clean(
    trainings: Sequence[Training], paths: Paths, round_: int, prefixes: Sequence[Sequence[int]], ridges: Sequence[float]
) -> None:
    """Make the candidates of the paths of all splits.

    Parameters
    ----------
    trainings : sequence of Training
    paths : Paths
        Advanced to their ends.
    round_ : int
    prefixes : sequence of sequences of int
        For each path, the lengths of the prefixes to eliminate from.
    ridges : sequence of float
    """
    rounds = [CleanedRound(one, paths.active(s).without_factors(), paths.groups(s)) for s, one in enumerate(trainings)]
    if ridges:
        # at once, so that a design that has to be read for them is read once
        trainings[0].penalties.learn([l for one in rounds for l in one.groups])
    quadratics = []
    for one, lengths in zip(rounds, prefixes, strict=True):
        quadratics.append(one.quadratics(lengths))
    forms: list[Any] = [(q.K, q.c, q.starts) for some in quadratics for q in some]
    eliminated = iter(eliminate_all(forms, len(trainings[0].always)))
    for number, (one, some) in enumerate(zip(rounds, quadratics, strict=True)):
        one.add(round_, some, [next(eliminated) for _ in some], ridges)
        if trainings[number].rough:
            one.finish()
        trainings[number].rounds.append(one)
        tell(f"candidates of round {round_ + 1}", "fit", number + 1, len(rounds))


@cache
def is_tried(size: int, place: int, ratio: float) -> bool:
    """Whether ridges are tried on a set: on a complete prefix (place 0), and on sizes along a geometric series."""
    step = round(math.log(size) / math.log(ratio))
    return place == 0 or any(round(ratio**i) == size for i in (step - 1, step, step + 1))


@lru_cache(maxsize=64)
def _recipes(
    round_: int, prefix: int, n: int, with_ridges: tuple[int, ...], ridges: tuple[float, ...]
) -> tuple[list[Cleaned], list[Cleaned]]:
    """Recipes for n nested sets without a penalty, and with ridges on some of them: the same for every split."""
    sizes = range(n - 1, -1, -1)
    plain = [Cleaned(round_, prefix, size, 0.0) for size in sizes]
    return plain, [Cleaned(round_, prefix, sizes[i], ridge) for i in with_ridges for ridge in ridges]
