"""Ridges on all columns, plain and reweighted: each group's penalty divided by its norm in the fit before.

Repeated, reweighting tends to the group lasso. These models are for dense signals, where no small set of groups
explains much. Penalties apply to coefficients of scaled columns, as in `covey.search.ridges`. A fit is in whichever
coordinates are fewer: if there are more columns than rows, in those of the rows, from their inner products.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dposv, dpstrf

from covey.layout import offsets
from covey.progress import tell
from covey.search.arrays import host
from covey.search.judge import Judge
from covey.search.newton import Curvature, factorised, minimise
from covey.search.recipes import Model, Recipe, Training
from covey.search.ridges import Penalties, inverse_roots
from covey.search.settings import Settings
from covey.search.table import MOST_ROWS, Table, working_columns
from covey.validation import FloatArray

__all__ = ["DenseRidges", "Reweighted", "can_be_dense"]

# The relative penalty of groups that are always in the model: as good as none, but the matrix stays invertible.
ALWAYS = 1e-6

# The nominal size of a ridge on all columns: larger than any set of groups, and a little smaller for each reweighting.
NOMINAL_SIZE = 1e6

# The most multiplications allowed for one Newton step on all columns.
MOST_WORK = 2e9

# The factorisation of the inner products stops at this share of the largest: the rest is round-off error.
ROUNDING = 1e-12

# Numbers per tile of X: 2 MiB.
TILE = 2**18

# Second moments of a split are those of all rows less those of the others, unless that leaves less than this share for
# some column, and so too few digits.
LEFT = 1e-4

# Second derivatives of up to this many columns are kept between rounds, and systems of up to STACKED columns are solved
# in one call for all penalties.
MOST_KEPT, STACKED = 1000, 48


@dataclass(frozen=True)
class Reweighted(Recipe):
    """A ridge on all columns, possibly reweighted by dividing penalties by the groups' norms.

    Attributes
    ----------
    penalty : float
        In units of the mean eigenvalue of the kernel matrix.
    round : int
        The number of reweightings.
    """

    penalty: float
    round: int
    n_groups: None = field(default=None, init=False)

    @property
    def family(self) -> Hashable:
        """The number of reweightings."""
        return "all groups", self.round

    def text(self, unpenalised: str = "") -> str:
        """A description."""
        times = "" if not self.round else ", reweighted" + (f" {self.round} times" if self.round > 1 else " once")
        return f"ridge {self.penalty:.3g} on all groups{times}"

    def fit(self, training: Training) -> Model:
        """Fit the ridge, after the rounds before it."""
        assert training.dense is not None
        return training.dense.model(self, training)


def can_be_dense(table: Table) -> bool:
    """Whether models on all columns are affordable: X may be on disk, or have too many rows."""
    posed = table.posed
    n, r = len(table.labels), int(posed.ranks.sum())
    if not table.all_near and not (posed.design.reads_columns and posed.design.shape[0] <= MOST_ROWS):
        return False
    return posed.response.loss.quadratic or n * min(n, r) ** 2 <= MOST_WORK


@dataclass(frozen=True)
class RidgeFit:
    """A penalised fit.

    Attributes
    ----------
    coef : ndarray, shape (r, n_outputs)
        Coefficients of scaled columns, or multipliers of rows whose weighted sum they are.
    level : ndarray, shape (n_outputs,)
    norms : ndarray, shape (n_groups of the coordinates,)
        Norms of the groups' coefficients on scaled columns; empty where they are not known yet.
    """

    coef: FloatArray
    level: FloatArray
    norms: FloatArray


class ScaledColumns:
    """Some groups on scaled columns ``V_l = Z_l C_l``, with ``C_l C_l'`` the inverse of the group's penalty."""

    def __init__(self, table: Table, groups: NDArray[np.intp], penalties: Penalties) -> None:
        posed = table.posed
        self.posed, self.groups, self.ranks = posed, groups, posed.ranks[groups]
        self.starts = offsets(self.ranks)
        self.roots = inverse_roots(penalties.of(groups))
        Z = host(table.Z) if groups is table.groups else host(working_columns(posed, groups))
        self.V = np.empty((len(Z), int(self.starts[-1])), order="F")
        for which, stacked in self._by_rank():
            at = self.starts[which][:, None] + np.arange(stacked.shape[1])
            self.V[:, at] = (Z[:, at].transpose(1, 0, 2) @ stacked).transpose(1, 0, 2)
        # for every split, the second derivative of the loss without a penalty, and the last fit
        self._state: dict[int, tuple[Curvature, Any]] = {}
        self._moments: dict[int, tuple[FloatArray, FloatArray]] = {}
        self._inner: FloatArray | None = None
        self._total: tuple[FloatArray, FloatArray] | None = None

    def _by_rank(self) -> Iterator[tuple[NDArray[np.intp], FloatArray]]:
        """For each rank, the groups of that rank and their stacked roots."""
        for rank in set(self.ranks.tolist()) - {0}:
            which = np.flatnonzero(self.ranks == rank)
            yield which, np.array([self.roots[i] for i in which])

    def unit(self, training: Training) -> float:
        """The unit of penalties on the training rows."""
        response = training.response
        q = response.weight / response.total_weight
        squares = float(q @ np.einsum("ij,ij->i", self.V, self.V))
        if self.posed.intercept:
            squares -= float(((q * response.one) @ self.V) @ ((q * response.one) @ self.V))
        return _unit(training, squares)

    def fits(self, training: Training, penalties: Sequence[float], shares: Sequence[FloatArray]) -> list[RidgeFit]:
        """Minimise the loss plus ``penalty / 2 sum_l share_l norm(b_l)^2``, for each penalty and its shares."""
        V, by_column = self.V, [np.repeat(one, self.ranks) for one in shares]
        solved: list[Any]
        if V.shape[1] <= V.shape[0] and training.response.loss.quadratic:
            solved = self._normal_equations(training, np.array(penalties)[:, None] * by_column)
        elif V.shape[1] <= V.shape[0]:
            # each fit starts from the one before, the largest penalty first
            curvature, last = self._state.get(training.number, (Curvature(), None))
            solved = [None] * len(penalties)
            for i in np.argsort(penalties)[::-1].tolist():
                last = solved[i] = _ridge(training, V, penalties[i] * by_column[i], curvature, last)
            if V.shape[1] <= MOST_KEPT:
                self._state[training.number] = curvature, last
        elif all((share == 1.0).all() for share in by_column):
            if self._inner is None:
                self._inner = V @ V.T
            solved = [(level, V.T @ rows) for level, rows in _wide_ridges(training, self._inner, penalties)]
        else:
            solved = []
            for penalty, share in zip(penalties, by_column, strict=True):
                gains = np.sqrt(1.0 / share)
                B = V * gains
                ((level, multipliers),) = _wide_ridges(training, B @ B.T, [penalty])
                solved.append((level, (B.T @ multipliers) * gains[:, None]))
        return [RidgeFit(coef, level, self._norms(coef)) for level, coef in solved]

    def _normal_equations(self, training: Training, penalties: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """Intercepts and coefficients under a quadratic loss, for each row of penalties."""
        i, p = int(self.posed.intercept), self.V.shape[1]
        if training.number not in self._moments:
            if p > MOST_KEPT:
                self._moments.clear()
            self._moments[training.number] = self._second_moments(training)
        K, c = self._moments[training.number]
        within = np.arange(i, i + p)
        S = K + np.zeros((len(penalties) if p <= STACKED else 0, 1, 1))
        S[:, within, within] += penalties[: len(S)]
        try:  # one call for all penalties, if the systems are small
            W = np.linalg.solve(S, np.broadcast_to(c, (len(S), *c.shape)))
        except np.linalg.LinAlgError:  # columns that do not vary on these rows
            W = np.empty((0, *c.shape))
        if not len(W):
            added = np.zeros((len(penalties), i + p))
            added[:, i:] = penalties
            W = np.array([factorised(K + np.diag(penalty))(c) for penalty in added])
        return [(w[0] if i else np.zeros(c.shape[1]), w[i:]) for w in W]

    def _second_moments(self, training: Training) -> tuple[FloatArray, FloatArray]:
        """``A'WA`` and ``A'Wy`` of the intercept's column and V; those of all rows less those of the rows left out."""
        response, everything = training.response, training.table.response.weight
        everything = np.where(training.table.labels >= 0, everything, 0.0)
        if self._total is None:
            self._total = self._moments_of(everything, training)
        rest = everything - response.weight
        n_rest = np.count_nonzero(rest)
        if 2 * n_rest < np.count_nonzero(everything):
            K, c = self._moments_of(rest, training) if n_rest else (np.zeros(()), np.zeros(()))
            K, c = self._total[0] - K, self._total[1] - c
            squares = np.square(response.y).reshape(len(rest), -1)
            enough = (response.weight @ squares >= LEFT * (everything @ squares)).all()
            if enough and (K.diagonal() >= LEFT * self._total[0].diagonal()).all():
                return K, c
        return self._moments_of(response.weight, training)

    def _moments_of(self, weight: FloatArray, training: Training) -> tuple[FloatArray, FloatArray]:
        rows, response = np.flatnonzero(weight), training.response
        A, root = self.V[rows], np.sqrt(weight[rows])[:, None]
        if self.posed.intercept:
            A = np.hstack([response.one[rows, None], A])
        B = A * root
        # BLAS computes only half of a matrix times its transpose
        return B.T @ B, B.T @ (root * response.y.reshape(len(response.weight), -1)[rows])

    def _norms(self, coef: FloatArray) -> FloatArray:
        squares = np.add.reduceat(np.append((coef * coef).sum(axis=1), 0.0), self.starts[:-1])
        return np.sqrt(np.where(self.ranks > 0, squares, 0.0))

    def predictors(self, training: Training, fits: Sequence[RidgeFit]) -> FloatArray:
        """Linear predictors of the rows to score; (n_scored, n_outputs, n_fits)."""
        return _predictors(training, self.V, fits)

    def on_columns(self, fit: RidgeFit) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
        """The model on the columns of X."""
        W = np.empty_like(fit.coef.T)
        for which, stacked in self._by_rank():
            at = self.starts[which][:, None] + np.arange(stacked.shape[1])
            W[:, at] = np.einsum("lkj,nlj->nlk", stacked, fit.coef.T[:, at])
        return self.posed.to_user(self.groups.tolist(), W, fit.level)


class RowCoordinates:
    """All columns of a wide X, in coordinates of the rows; X is read in tiles of columns."""

    def __init__(self, table: Table, penalties: Penalties, shares: FloatArray) -> None:
        self.table, self.posed = table, table.posed
        working = self.posed.working
        self.share = np.repeat(shares, working.layout.sizes)
        self.gains = penalties.gains(np.arange(working.ranks.size)) / np.sqrt(self.share)
        n = len(table.labels)
        self.inner = np.zeros((n, n))
        # the unit of penalties is computed with equal shares
        self.plain = np.zeros((n, n)) if (self.share != 1.0).any() else self.inner
        for places, B in self._tiles():
            # BLAS computes only half of a matrix times its transpose
            self.inner += B @ B.T
            if self.plain is not self.inner:
                B *= np.sqrt(self.share[places])
                self.plain += B @ B.T

    def _tiles(self) -> Iterator[tuple[NDArray[np.intp], FloatArray]]:
        """Positions of columns in the groups' layout, and the scaled columns of all rows."""
        working, other = self.posed.working, self.posed.validation
        designs = [working.design] if other is None else [working.design, other.design]
        starts, first = working.layout.starts, 0
        tile = max(TILE // max(len(self.table.labels), 1), 1)
        while first < working.ranks.size:
            last = max(first + 1, int(np.searchsorted(starts, starts[first] + tile, side="right")) - 1)
            places = np.arange(starts[first], starts[min(last, working.ranks.size)])
            B = np.concatenate([np.asarray(design.take(working.layout.members[places])) for design in designs])
            B -= working.mean[places]
            B *= self.gains[places]
            yield places, B
            first = last

    def unit(self, training: Training) -> float:
        """The unit of penalties on the training rows."""
        q = training.response.weight / training.response.total_weight
        squares = float(q @ np.diag(self.plain)) - (float(q @ self.plain @ q) if self.posed.intercept else 0.0)
        return _unit(training, squares)

    def fits(self, training: Training, penalties: Sequence[float], shares: Sequence[FloatArray]) -> list[RidgeFit]:
        """Minimise the loss plus each ridge; shares are those of the inner products."""
        solved = _wide_ridges(training, self.inner, penalties)
        return [RidgeFit(multipliers, level, np.empty(0)) for level, multipliers in solved]

    def predictors(self, training: Training, fits: Sequence[RidgeFit]) -> FloatArray:
        """Linear predictors of the rows to score; (n_scored, n_outputs, n_fits)."""
        return _predictors(training, self.inner, fits)

    def coefficients(self, fits: Sequence[RidgeFit]) -> FloatArray:
        """Coefficients of the scaled columns, in the groups' layout; (n_fits, n_outputs, n_columns)."""
        multipliers = np.concatenate([fit.coef.T for fit in fits])
        out = np.empty((len(multipliers), self.share.size))
        for places, B in self._tiles():
            out[:, places[0] : places[-1] + 1] = multipliers @ B
        return out.reshape(len(fits), -1, self.share.size)

    def norms(self, coefs: FloatArray) -> FloatArray:
        """The norm of each group; (n_fits, n_groups)."""
        starts = self.posed.working.layout.starts[:-1]
        return np.sqrt(np.add.reduceat(np.einsum("ijk,ijk->ik", coefs, coefs), starts, axis=1))

    def on_columns(self, fit: RidgeFit) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
        """The model on the columns of X."""
        coef, working = self.coefficients([fit])[0] * self.gains, self.posed.working
        level = self.posed.levels(fit.level - coef @ working.mean)
        return working.layout.members, self.posed.outputs(coef), level


class RowRoot:
    """L with ``L L'`` the inner products of rows, and the map back to the columns."""

    def __init__(self, inner: FloatArray) -> None:
        factor, pivots, rank, _ = dpstrf(
            inner, lower=1, tol=ROUNDING * max(float(np.diag(inner).max(initial=0.0)), 0.0)
        )
        self.pivots = pivots[:rank] - 1
        self.L = np.zeros((len(inner), rank))
        self.L[pivots - 1] = np.tril(factor)[:, :rank]

    def multipliers(self, a: FloatArray) -> FloatArray:
        """Multipliers of the rows, shape (n_rows, n_outputs): the coefficients are the rows' sum weighted by them."""
        out = np.zeros((len(self.L), a.shape[1]))
        if len(a):
            out[self.pivots] = solve_triangular(self.L[self.pivots].T, a, lower=False)
        return out


def _predictors(training: Training, table: FloatArray, fits: Sequence[RidgeFit]) -> FloatArray:
    scored = training.scored
    coefs = np.stack([fit.coef for fit in fits], axis=-1)
    levels = np.stack([fit.level for fit in fits], axis=-1)
    out = table[scored] @ coefs.reshape(len(coefs), levels.size)
    return out.reshape(scored.size, *levels.shape) + training.response.one[scored][:, None, None] * levels


def _unit(training: Training, squares: float) -> float:
    """The unit of penalties: the mean eigenvalue of the inner products times the curvature of the null model."""
    mean = squares / max(training.posed.n_rows(training.split), 1.0) or 1.0
    return mean * training.response.null_curvature(training.posed.intercept)


def _ridge(
    training: Training,
    B: FloatArray,
    penalty: FloatArray,
    curvature: Curvature,
    start: tuple[FloatArray, FloatArray] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Intercepts and coefficients of the penalised minimiser."""
    response, i = training.response, int(training.posed.intercept)
    level, coef = (response.null, np.zeros((B.shape[1], response.n_outputs))) if start is None else start
    begin = np.vstack([level[None, :], coef]) if i else coef
    A = np.hstack([response.one[:, None], B]) if i else B
    penalties = np.concatenate([np.zeros(i), penalty])
    fit = minimise(response, A, begin, penalties, curvature=curvature, rough=training.rough)
    return (fit.coef[0] if i else np.zeros(response.n_outputs)), fit.coef[i:]


def _wide_ridges(
    training: Training, inner: FloatArray, penalties: Sequence[float]
) -> list[tuple[FloatArray, FloatArray]]:
    """Intercepts and multipliers of the rows, for ridges on more columns than rows.

    Parameters
    ----------
    inner : ndarray, shape (n_rows, n_rows)
        Inner products of the rows.
    """
    response, intercept = training.response, training.posed.intercept
    if not response.loss.quadratic:
        root = RowRoot(inner)
        curvature, last = Curvature(), None
        solved = []
        for penalty in penalties:
            last = _ridge(training, root.L, np.full(root.L.shape[1], penalty), curvature, last)
            solved.append((last[0], root.multipliers(last[1])))
        return solved
    # the normal equations in the rows; the direction of the intercept is projected out
    used = np.flatnonzero(response.used)
    weight = np.sqrt(response.weight[used])
    M = inner[np.ix_(used, used)] * weight * weight[:, None]
    y = response.y.reshape(len(response.weight), -1)[used] * weight[:, None]
    one = weight * response.one[used] / np.sqrt(response.total_weight) * intercept
    y = y - np.outer(one, one @ y)
    shift = M @ one
    M -= np.outer(shift, one)
    M -= np.outer(one, shift - one * (one @ shift))
    out: list[tuple[FloatArray, FloatArray]] = []
    for penalty in penalties:
        S = M.copy()
        S.flat[:: len(S) + 1] += penalty
        multipliers = dposv(S.T, y, lower=1, overwrite_a=1)[1]
        full = np.zeros((len(inner), y.shape[1]))
        full[used] = (multipliers - np.outer(one, one @ multipliers)) * weight[:, None]
        fitted = inner @ full
        left = (response.weight * response.one) @ (response.y.reshape(fitted.shape) - fitted)
        out.append((left / response.total_weight * intercept, full))
    return out


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
        self.always = np.asarray(trainings[0].always, dtype=np.intp)
        self.noise = noise_norms(self.posed.working.layout.sizes)
        self.recipes: list[Recipe] = []
        self._fits: dict[tuple[Reweighted, int], RidgeFit] = {}
        self._norms: dict[tuple[Reweighted, int], FloatArray] = {}
        self._kept: NDArray[np.intp] | None = None
        for training in trainings:
            training.dense = weakref.proxy(self)  # a cycle would keep tensors alive

    @cached_property
    def plain(self) -> ScaledColumns | RowCoordinates:
        """The coordinates of ridges that are not reweighted."""
        if self.table.all_near:
            return ScaledColumns(self.table, self.table.groups, self.penalties)
        shares = np.ones(self.posed.ranks.size)
        shares[self.always] = ALWAYS
        return RowCoordinates(self.table, self.penalties, shares)

    @cached_property
    def largest(self) -> ScaledColumns:
        """The coordinates of reweighted ridges: all groups, or those of largest norm in the plain ones."""
        if isinstance(self.plain, ScaledColumns):
            return self.plain
        assert self._kept is not None
        return ScaledColumns(self.table, self._kept, self.penalties)

    def coordinates(self, recipe: Reweighted) -> ScaledColumns | RowCoordinates:
        """The coordinates of a recipe."""
        return self.largest if recipe.round else self.plain

    def search(self, judge: Judge) -> None:
        """Score plain ridges; then reweight the best penalty and its neighbours as long as that helps."""
        settings, scored = self.settings, [training for training in self.trainings if training.split.test]
        self.penalties.learn(np.arange(self.posed.ranks.size))
        recipes = [Reweighted(penalty, 0) for penalty in settings.penalties]
        if not self.posed.response.loss.quadratic:
            # these fits are slow: first a few on one fold
            first = [recipes[i] for i in settings.first_penalties if i < len(recipes)]
            predictors = self.plain.predictors(scored[0], self.fits(first, scored[0]))
            if judge.scores[0].errors(predictors).min() > settings.hopeless * judge.least_error(0):
                return
        least = np.inf
        for round_ in range(settings.reweightings + 1):
            for at, training in enumerate(scored):
                predictors = self.coordinates(recipes[0]).predictors(training, self.fits(recipes, training))
                judge.add(at, recipes, predictors, [NOMINAL_SIZE - round_] * len(recipes))
                tell("ridges on all groups", "fold", at + 1, len(scored))
            self.recipes += recipes
            errors = judge.errors()
            best = min(recipes, key=lambda r: errors[r])
            if errors[best] > settings.within * min(errors.values()):
                return
            if errors[best] > (1 - settings.improvement) * least:
                return
            least = errors[best]
            # the best penalty grows with the number of reweightings
            at = recipes.index(best)
            lowest = max(0, at - 1) if round_ == 0 else at
            recipes = [replace(r, round=round_ + 1) for r in recipes[lowest : at + 2]]
            if round_ == 0 and isinstance(self.plain, RowCoordinates):
                self._keep_largest(self.plain, recipes)

    def fits(self, recipes: Sequence[Reweighted], training: Training) -> list[RidgeFit]:
        """Fits of recipes of one round on a split; models on all rows are fitted only when requested."""
        new = [recipe for recipe in recipes if (recipe, training.number) not in self._fits]
        if new:
            coordinates, shares = self.coordinates(new[0]), [self._shares(recipe, training) for recipe in new]
            unit = coordinates.unit(training)
            fits = coordinates.fits(training, [recipe.penalty * unit for recipe in new], shares)
            for recipe, fit in zip(new, fits, strict=True):
                self._fits[recipe, training.number] = fit
                if isinstance(coordinates, ScaledColumns):
                    norms = np.zeros(self.posed.ranks.size)
                    norms[coordinates.groups] = fit.norms
                    self._norms[recipe, training.number] = norms
        return [self._fits[recipe, training.number] for recipe in recipes]

    def _shares(self, recipe: Reweighted, training: Training) -> FloatArray:
        """Factors that multiply the penalties of the groups in the coordinates of a recipe."""
        shares: FloatArray = np.ones(self.posed.ranks.size)
        if recipe.round:
            before = replace(recipe, round=recipe.round - 1)
            if (before, training.number) not in self._norms:
                self.fits([before], training)
            norms = self._norms[before, training.number]
            # large for groups of small norm
            shares = self.noise / np.maximum(norms / (float(norms.mean()) or 1.0), self.settings.least_share)
        shares[self.always] = ALWAYS
        coordinates = self.coordinates(recipe)
        return shares[coordinates.groups] if isinstance(coordinates, ScaledColumns) else shares

    def _keep_largest(self, plain: RowCoordinates, recipes: Sequence[Reweighted]) -> None:
        """Keep the groups of largest norm on some split."""
        layout, before = self.posed.working.layout, [replace(r, round=0) for r in recipes]
        fits = [fit for training in self.trainings for fit in self.fits(before, training)]
        norms = plain.norms(plain.coefficients(fits)).reshape(len(self.trainings), len(before), -1)
        kept = np.zeros(layout.sizes.size, dtype=bool)
        kept[self.always] = True
        for training, by_recipe in zip(self.trainings, norms, strict=True):
            most = self.settings.columns_per_row * self.posed.n_rows(training.split)
            order = np.argsort(-(by_recipe / self.noise).max(axis=0), kind="stable")
            some = order[: int(np.searchsorted(np.cumsum(layout.sizes[order]), most)) + 1]
            for recipe, full in zip(before, by_recipe, strict=True):
                self._norms[recipe, training.number] = np.zeros(layout.sizes.size)
                self._norms[recipe, training.number][some] = full[some]
            kept[some] = True
        self._kept = np.flatnonzero(kept)

    def model(self, recipe: Reweighted, training: Training) -> Model:
        """The model of a recipe on a split."""
        (fit,) = self.fits([recipe], training)
        coordinates = self.coordinates(recipe)
        if isinstance(coordinates, ScaledColumns):
            groups, norms = coordinates.groups, fit.norms
        else:
            groups, norms = np.arange(self.posed.ranks.size), coordinates.norms(coordinates.coefficients([fit]))[0]
        order = np.argsort(-norms, kind="stable")
        return Model(
            [int(groups[i]) for i in order if norms[i] > 0], coordinates.predictors(training, [fit])[:, :, 0],
            NOMINAL_SIZE - recipe.round, lambda: coordinates.on_columns(fit),
        )  # fmt: skip
