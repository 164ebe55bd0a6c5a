"""Cleaned: groups of a limit path that are left after backward elimination, fitted without a penalty or by a ridge.

Which groups are dropped, and where each fit starts, is read off the quadratic model of the loss at the end of the path.
For a quadratic loss that is the fit itself; for others Newton's method finishes it.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from covey.arrays import host
from covey.layout import spans
from covey.preprocess.working import noise_weights
from covey.search.active import DEPENDENT, ActiveSet
from covey.search.constraints.cone import Rows
from covey.search.constraints.nested import eliminate_within, ridges_within
from covey.search.curvature import Curvature
from covey.search.elimination import Eliminated, QuadraticForm, eliminate_all
from covey.search.newton import minimise
from covey.search.paths import Paths
from covey.search.quadratic import Quadratic, least_norm
from covey.search.recipes import Model, Recipe, Training
from covey.search.rough import ModelSet, in_batches, minimise_together
from covey.validation import FloatArray

__all__ = ["Cleaned", "CleanedRound", "clean"]


@dataclass(frozen=True)
class Cleaned(Recipe):
    """Groups of the limit path that remain after backward elimination, fitted by least squares or a ridge.

    Attributes
    ----------
    round : int
        0 for a path that starts without groups, 1 for one that starts from the groups that round 0 kept, and so on.
    n_columns : int
        The most columns that elimination leaves. Where groups have different sizes, a number of groups would mean
        other models on other rows.
    ridge : float
        The penalty on columns of unit variance; 0 for least squares.
    n_first, n_groups : int
        The number of groups of the path, and of groups left, on all rows.
    unit : str
        What these groups are, in words.
    """

    round: int
    n_columns: int
    ridge: float
    n_first: int = field(compare=False)
    n_groups: int = field(compare=False)
    unit: str = field(default="groups", compare=False)

    def __post_init__(self) -> None:
        # computed once: a search looks recipes up thousands of times
        object.__setattr__(self, "_hash", hash((self.round, self.n_columns, self.ridge)))

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined]

    @property
    def in_round(self) -> int:
        """The same as `round`."""
        return self.round

    def text(self, unpenalised: str = "least squares") -> str:
        """A description."""
        if self.n_groups == 0:
            return "no group"
        fit = f"ridge {self.ridge:g}" if self.ridge else unpenalised
        again = f", round {self.round + 1}" if self.round else ""
        return f"{fit} on {self.n_groups} of the first {self.n_first} {self.unit}{again}"

    def fit(self, training: Training) -> Model:
        """The model on the groups that elimination kept, with all digits if it is returned to the user."""
        round_, remark = training.rounds[self.round], ""
        i = round_.place[self]
        if not training.rough and (round_.rows is not None or not round_.active.response.loss.quadratic):
            coef, separated = round_.refitted(i)
            round_.put(i, coef)
            if separated:
                remark = f"ridge {training.posed.settings.separated_ridge:g}"
        groups, at = self.groups(training), round_.positions(round_.sets[self])
        shrunk = bool(self.ridge or remark)
        return training.model(groups, round_.W[i][:, at], round_.levels[i], shrunk=shrunk, remark=remark)

    @classmethod
    def scored(cls, recipes: Sequence[Cleaned], training: Training) -> tuple[FloatArray, list[float]]:
        """Predictors and sizes of all recipes of one round."""
        round_ = training.rounds[recipes[0].round]
        at = [round_.place[recipe] for recipe in recipes]
        table = training.predictors(round_.columns, round_.W[at], round_.levels[at])
        return table, [float(round_.sizes[i]) for i in at]

    def groups(self, training: Training) -> list[int]:
        """The groups that are left, as positions among all groups."""
        round_ = training.rounds[self.round]
        return [round_.groups[i] for i in round_.sets[self]]


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
        The groups of each recipe, as positions on the path.
    rows : Rows or None
        The constraints on the path's columns, if there are any.
    W, levels : ndarray, shape (n_recipes, n_outputs, k) and (n_recipes, n_outputs)
        Coefficients of the path's columns, and intercepts.
    sizes, widths : list of int
        The number of linearly independent columns of each model, and of all its columns.
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
        self.widths: list[int] = []
        self.W: FloatArray = np.empty((0, active.response.n_outputs, self.columns.size))
        self.levels: FloatArray = np.empty((0, active.response.n_outputs))
        self.place: dict[Cleaned, int] = {}
        self._penalties: dict[int, FloatArray] = {}
        if self.n_always and active.separated[self.n_always]:
            training.infinite.append(frozenset(training.always))
        cone = training.posed.cone
        self.rows = None if cone is None else cone.rows(groups)
        # the last set that was fitted: its groups, the second derivative of the loss, and the minimiser
        self._last: tuple[frozenset[int], Curvature, FloatArray | None] = frozenset(), Curvature(), None

    @property
    def intercept(self) -> int:
        """The number of columns before those of the groups."""
        return self.active.n_first

    @property
    def penalty(self) -> FloatArray:
        """The quadratic form of a ridge, in units of the null model's curvature."""
        n_free = self._n_free
        if n_free not in self._penalties:
            unit = self.active.response.null_curvature(self.training.posed.intercept)
            self._penalties[n_free] = self.training.penalties.matrix(self.groups, n_free) * unit
        return self._penalties[n_free]

    def end(self) -> tuple[FloatArray, FloatArray | None]:
        """The model at the end of the path, and its ridge if it needs one."""
        coef, ridge = self.active.models[-1], None
        if self.active.separated[-1] or self.active.response.loss.known_dispersion:
            # near perfect separation there is hardly any curvature left, and rough fits end anywhere on the way there
            ridge = self.training.posed.settings.elimination_ridge * self.penalty
            self._last = frozenset(self.groups), Curvature(), None
            coef = self._minimised(np.arange(self.columns.size), coef, ridge)[0]
        return coef, ridge

    def add(self, recipes: Sequence[Cleaned], quadratic: Quadratic, eliminated: Eliminated) -> None:
        """Make candidates, given the order in which groups were dropped."""
        dropped, nested_W = eliminated
        nested = [list(range(len(self.groups)))]
        for group in dropped:
            nested.append([l for l in nested[-1] if l != group])
        widths = self.columns.size - np.cumsum([0, *np.diff(quadratic.starts)[dropped]])
        W, ranks = nested_W.transpose(0, 2, 1), widths.tolist()
        if self.active.deficient and self.rows is None:
            # a column that was a combination of others may be independent of those that are left
            W, ranks = quadratic.least_norm(nested)
        # the largest set that has no more columns than the recipe allows
        at = np.searchsorted(-widths, [-recipe.n_columns for recipe in recipes]).tolist()
        shrunk = [i for i, recipe in enumerate(recipes) if recipe.ridge]
        if shrunk:
            tried = sorted({at[i] for i in shrunk})
            ridges = list(dict.fromkeys(recipes[i].ridge for i in shrunk))
            # groups dropped last come first
            order = quadratic.positions([*range(self.n_always), *reversed(dropped)])
            with_ridge = (
                quadratic.ridges(self.penalty, order, widths[tried], ridges)
                if self.rows is None
                else ridges_within(quadratic, self.penalty, dropped, tried, ridges, self.rows)
            )
            place = {(a, r): len(W) + i for i, (a, r) in enumerate(product(tried, ridges))}
            W = np.concatenate([W, with_ridge])
            W = W[[place[at[i], r.ridge] if r.ridge else at[i] for i, r in enumerate(recipes)]]
        else:
            W = W[at]
        self.recipes, self.place = list(recipes), {recipe: i for i, recipe in enumerate(recipes)}
        self.sizes, self.widths = [ranks[i] for i in at], [int(widths[i]) for i in at]
        self.sets = {recipe: nested[i] for i, recipe in zip(at, recipes, strict=True)}
        self.W, self.levels = W, quadratic.levels(W)

    def finish(self) -> None:
        """Replace what was read off the quadratic model by the minimisers themselves."""
        if self.active.response.loss.quadratic:
            for i, recipe in enumerate(self.recipes if self.rows is not None else ()):
                if free := self._undetermined(self.sets[recipe], recipe.ridge):
                    coef = np.vstack([self.levels[i][None, :][: self.intercept], self.W[i].T])
                    self.put(i, self._least_norm(self.positions(free), coef))
            return
        sets: dict[tuple[int, ...], list[int]] = {}
        for i, recipe in enumerate(self.recipes):
            sets.setdefault(tuple(self.sets[recipe]), []).append(i)
        known = self._fit_together(sets) if self.training.rough else set()
        # from the smallest set on: separation carries over to larger sets
        for _, candidates in sorted(sets.items(), key=lambda item: len(item[0])):
            for i in sorted(set(candidates) - known, key=lambda i: -self.recipes[i].ridge):
                self.put(i, self.refitted(i)[0])

    def _fit_together(self, sets: Mapping[tuple[int, ...], Sequence[int]]) -> set[int]:
        """Fit the candidates that no other round has had, roughly; return those that need nothing more."""
        first, fits, outputs = self.intercept, self.training.fits, self.active.response.apart
        penalty = np.zeros((first + self.columns.size,) * 2)
        penalty[first:, first:] = self.penalty
        alike: list[tuple[NDArray[np.intp], NDArray[np.intp], FloatArray, Rows | None]] = []
        models: list[tuple[tuple[int, ...], frozenset[int], list[int]]] = []
        for left, candidates in sets.items() if outputs else ():
            groups, new = frozenset(self.groups[l] for l in left), dict[float, list[int]]()
            columns = self._with_first(self._determined(self.positions(left)))
            for i in candidates:
                if left and columns.size and (groups, self.recipes[i].ridge) not in fits:
                    new.setdefault(self.recipes[i].ridge, []).append(i)
            if new:
                rows = None if self.rows is None else self.rows.on(self.positions(left)).after(first)
                numbers = np.arange(len(models), len(models) + len(new))
                alike.append((columns, numbers, penalty[columns[:, None], columns], rows))
                models += [(left, groups, new[ridge]) for ridge in sorted(new)]
        if not models:
            return set()
        one_of_each = [same[0] for *_, same in models]
        ridges = np.array([self.recipes[i].ridge for i in one_of_each])
        coefs, done = np.zeros((len(models), first + self.columns.size, len(outputs))), np.ones(len(models), dtype=bool)
        A, n_rows = self.active.A, len(self.active.response.weight)
        for o, response in enumerate(outputs):
            given = np.hstack([self.levels[one_of_each, o : o + first], self.W[one_of_each, o]]).T
            found, reached = np.zeros_like(given), np.zeros_like(done)
            for columns, numbers, *_ in alike:  # elimination leaves round-off error in groups that were dropped
                found[columns[:, None], numbers] = given[columns[:, None], numbers]
            for some in in_batches([ModelSet(*one) for one in alike], n_rows):
                reached |= minimise_together(response, A, found, some, penalty, ridges)
            coefs[:, :, o], done = found.T, done & reached
        known: set[int] = set()
        for (left, groups, same), ridge, coef, is_done in zip(models, ridges, coefs, done, strict=True):
            for i in same:
                self.put(i, coef)
            if is_done:
                self._keep(left, groups, float(ridge), coef)
                known |= set() if self._undetermined(left, float(ridge)) else set(same)
        return known

    def put(self, i: int, coef: FloatArray) -> None:
        """Take coefficients of the path's columns, after the intercept, for those of a candidate."""
        first = self.intercept
        self.W[i] = coef[first:].T
        if first:
            self.levels[i] = coef[0]

    def positions(self, left: Sequence[int]) -> NDArray[np.intp]:
        """The positions of the columns of some groups of the path, without the intercept."""
        return spans(self._starts, np.asarray(left, dtype=np.intp))

    def _with_first(self, at: NDArray[np.intp]) -> NDArray[np.intp]:
        """The same columns after the intercept."""
        return np.concatenate([np.arange(self.intercept), self.intercept + at])

    def refitted(self, i: int) -> tuple[FloatArray, bool]:
        """The minimiser on a candidate's groups, and whether it has a small ridge against infinity."""
        recipe, training, first = self.recipes[i], self.training, self.intercept
        left = self.sets[recipe]
        groups = frozenset(self.groups[l] for l in left)
        if (groups, recipe.ridge) not in training.fits:
            at = self.positions(left)
            start = np.vstack([self.levels[i][None, :][:first], self.W[i].T])
            fitted, _, last = self._last
            if fitted != groups:
                self._last = groups, Curvature(), None
            elif last is not None:
                start = last
            penalty, status = recipe.ridge * self.penalty if recipe.ridge else None, ""
            if penalty is None and not training.is_infinite(groups):
                coef, status = self._minimised(at, start)
            if status != "converged":
                if penalty is None:
                    training.infinite.append(groups)
                    penalty = self._against_infinity()
                    if last is not None and fitted < groups:  # which is likely to have gone the same way
                        start = last
                coef, _ = self._minimised(at, start, penalty)
            self._keep(left, groups, recipe.ridge, coef)
        order, level, known = training.fits[groups, recipe.ridge]
        place = {group: l for l, group in enumerate(self.groups)}
        coef = np.zeros((first + self.columns.size, self.W.shape[1]))
        coef[:first], coef[first + self.positions([place[group] for group in order])] = level, known
        if free := self._undetermined(left, recipe.ridge):
            coef = self._least_norm(self.positions(free), coef)
        return coef, not recipe.ridge and training.is_infinite(groups)

    def _undetermined(self, left: Sequence[int], ridge: float) -> Sequence[int]:
        """The groups of a model whose coefficients the loss may leave open: least norm is still to be found.

        Groups under constraints are none of them: coefficients of least norm might break these.
        """
        if not self.active.deficient:
            return []
        free = [l for l in left if l < self._n_free] if ridge else left
        return free if self.rows is None else [l for l in free if not self.rows.G[:, self.positions([l])].any()]

    def _determined(self, at: NDArray[np.intp]) -> NDArray[np.intp]:
        """Some columns without those that have no penalty and are constant or combinations of others."""
        if not (self.active.deficient and self._n_free) or self.rows is not None:
            return at
        return at[(at >= self._starts[self._n_free]) | np.isin(at + self.intercept, self.active.basis)]

    @property
    def _n_free(self) -> int:
        """How many groups a ridge leaves out: those that are always in, unless the minimum on them is infinite."""
        return 0 if self.training.always_infinite else self.n_always

    def _against_infinity(self) -> FloatArray:
        """A small ridge; a larger one on groups that are always in, if they need one: nothing else shrinks them."""
        settings, at = self.training.posed.settings, np.arange(self.columns.size)
        ridge = np.where(at < self._starts[self.n_always], settings.elimination_ridge, settings.separated_ridge)
        return np.asarray(ridge[:, None] * self.penalty)

    def _keep(self, left: Sequence[int], groups: frozenset[int], ridge: float, coef: FloatArray) -> None:
        """Remember a minimiser for other rounds."""
        first = self.intercept
        order = [self.groups[l] for l in left]
        self.training.fits[groups, ridge] = order, coef[:first], coef[first + self.positions(left)]

    def _minimised(
        self, at: NDArray[np.intp], start: FloatArray, ridge: FloatArray | None = None
    ) -> tuple[FloatArray, str]:
        """The minimiser on some columns of the path, zero elsewhere, and its status; a ridge is on all of them."""
        first, at = self.intercept, self._determined(at)
        columns, rows, penalty = self._with_first(at), None, None
        if ridge is not None:
            penalty = np.zeros((columns.size, columns.size))
            penalty[first:, first:] = ridge[at[:, None], at]
        if self.rows is not None:
            rows = self.rows.on(at).after(first)
        response, A, begin = self.active.response, self.active.A[:, columns], start[columns]
        curvature, rough = self._last[1], self.training.rough
        fit = minimise(response, A, begin, penalty, rows=rows, curvature=curvature, rough=rough)
        coef = np.zeros_like(start)
        coef[columns] = fit.coef
        if fit.status == "converged":
            self._last = self._last[0], curvature, coef
        return coef, fit.status

    def _least_norm(self, at: NDArray[np.intp], coef: FloatArray) -> FloatArray:
        """The coefficients of least norm that give the same predictions."""
        first, response, out = self.intercept, self.active.response, coef.copy()
        q, Z = response.weight / response.total_weight, host(self.active.A[:, first + at])
        means = (q * response.one) @ Z * (first or response.loss.coupled)
        centred = Z - np.outer(response.one, means)
        K = centred.T @ (q[:, None] * centred)
        least, _ = least_norm(K, K @ coef[first + at], DEPENDENT, q @ (Z * Z))
        out[:first] += (means @ (coef[first + at] - least))[None, :][:first]
        out[first + at] = least
        return out


def clean(
    trainings: Sequence[Training],
    paths: Paths,
    round_: int,
    ridges: Sequence[float],
    recipes: Sequence[Cleaned] | None = None,
) -> Sequence[Cleaned]:
    """Make the candidates of the paths of all splits; return them, so that they can be made on other splits.

    They are those of the quadratic models; `CleanedRound.finish` makes them those of the loss.

    Parameters
    ----------
    trainings : sequence of Training
        The last one has all rows, unless recipes are given.
    paths : Paths
        Advanced to their ends.
    round_ : int
    ridges : sequence of float
    recipes : sequence of Cleaned, optional
        Candidates that another deal of the rows had in this round.
    """
    posed, settings, n_always = paths.posed, paths.posed.settings, len(trainings[0].always)
    rounds = [CleanedRound(one, paths.active(s).without_factors(), paths.groups(s)) for s, one in enumerate(trainings)]
    if ridges:
        # at once, so that a design that has to be read for them is read once
        trainings[0].penalties.learn([l for one in rounds for l in one.groups])
    quadratics, forms = list[Quadratic](), list[QuadraticForm]()
    for one in rounds:
        quadratic = Quadratic.around(one.active, len(one.groups), *one.end())
        quadratics.append(quadratic)
        forms.append((quadratic.K, quadratic.c, quadratic.starts, posed.parents_among(one.groups)))
    units = [np.maximum(np.diff(one.starts), 1.0) for one in quadratics]
    if paths.late:
        # only some columns of a detail matter: per dimension, dropping it costs less than dropping a line that is
        # there by chance, one of many. So costs are compared with what noise gives to the best of all groups
        ranks = np.maximum(posed.ranks, 1)
        units = [noise_weights(ranks[one.groups], 1.0, posed.n_groups) ** 2 for one in rounds]
    if posed.cone is None:
        # models on linearly dependent columns are solved again anyway
        eliminated = eliminate_all(forms, n_always, [one.active.deficient for one in rounds], units)
    else:
        constrained = [one.rows for one in rounds if one.rows]
        eliminated = [
            eliminate_within(form, rows, n_always, unit)
            for form, rows, unit in zip(forms, constrained, units, strict=True)
        ]
    if recipes is None:
        unit, ratio = "columns" if posed.pieces and round_ else "groups", settings.ridge_sizes
        late = bool(ridges) and bool(set(rounds[-1].groups).intersection(posed.late))
        if late:
            # with the detail of a curve one size may be far better than its neighbours
            ratio, ridges = math.sqrt(ratio), (*settings.late_ridges, *ridges)
        recipes = _sets(round_, np.diff(quadratics[-1].starts), eliminated[-1][0], unit)
        some = [one for one in recipes[:-1] if one is recipes[0] or is_tried(one.n_groups, ratio)]
        shrunk = [replace(one, ridge=ridge) for one in some for ridge in ridges]
        # a detail follows few rows: if they are held out, least squares does not know where it goes
        recipes = shrunk if late else recipes + shrunk
    for one, quadratic, order in zip(rounds, quadratics, eliminated, strict=True):
        one.add(recipes, quadratic, order)
        one.training.rounds.append(one)
    return recipes


def _sets(round_: int, widths: NDArray[np.intp], dropped: Sequence[int], unit: str) -> list[Cleaned]:
    """Least squares on every set that elimination leaves, from all groups of the path to none."""
    sizes = (int(widths.sum()) - np.cumsum([0, *widths[dropped]])).tolist()
    counts = range(len(dropped), -1, -1)
    return [Cleaned(round_, c, 0.0, widths.size, n, unit) for c, n in zip(sizes, counts, strict=True)]


@cache
def is_tried(size: int, ratio: float) -> bool:
    """Whether a size is among those that grow by a ratio."""
    step = round(math.log(size) / math.log(ratio))
    return any(round(ratio**i) == size for i in (step - 1, step, step + 1))
