"""Coordinates of ridges on all columns: scaled columns, or the rows if there are fewer of them.

If there are more columns than rows, the linear predictor is ``L a``, where ``L L'`` is the matrix of inner products of
the rows, and the coefficients have the same norm as ``a``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dposv, dpstrf

from covey.arrays import host
from covey.designs.rows import count_rows
from covey.layout import group_tiles, offsets
from covey.search.curvature import Curvature, factorised
from covey.search.newton import ROUGH, minimise
from covey.search.observations import Observations
from covey.search.recipes import Training
from covey.search.ridges import Penalties, inverse_roots
from covey.search.table import HELD_OF_STREAM, Table
from covey.validation import FloatArray

__all__ = ["RidgeFit", "RowCoordinates", "ScaledColumns"]

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

# Reweighted least-squares fits in the rows: the most of them, the least curvature of a row as a share of the mean, and
# the shortest step that is tried where the loss rises.
MOST_STEPS, LEAST_CURVATURE, LEAST_STEP = 12, 1e-4, 1e-3


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
    """Near groups on scaled columns ``V_l = Z_l C_l``, with ``C_l C_l'`` the inverse of the group's penalty.

    Penalties of groups may be multiplied by factors to begin with.
    """

    def __init__(
        self, table: Table, groups: NDArray[np.intp], penalties: Penalties, factors: FloatArray | None = None
    ) -> None:
        posed = table.posed
        self.posed, self.groups, self.ranks = posed, groups, posed.ranks[groups]
        self.starts = offsets(self.ranks)
        self.roots = inverse_roots(penalties.of(groups))
        if factors is not None:
            self.roots = [root / np.sqrt(factor) for root, factor in zip(self.roots, factors, strict=True)]
        alone = np.array_equal(groups, table.groups)  # or others are near besides
        Z = host(table.Z if alone else table.Z[:, table.columns([table.place[int(l)] for l in groups])])
        self.V = np.empty((len(Z), int(self.starts[-1])), order="F")
        for which, stacked in self._by_rank():
            at = self.starts[which][:, None] + np.arange(stacked.shape[1])
            self.V[:, at] = (Z[:, at].transpose(1, 0, 2) @ stacked).transpose(1, 0, 2)
        # a row counts as often as its weight says: rough fits are not the same in other coordinates
        weight = np.where(table.labels >= 0, table.response.weight, 0.0)
        self._tall = self.V.shape[1] <= max(float(np.count_nonzero(weight)), count_rows(weight))
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
        if self._tall and training.response.loss.quadratic:
            solved = self._normal_equations(training, np.array(penalties)[:, None] * by_column)
        elif self._tall:
            # each fit starts from the one before, the largest penalty first
            curvature, last = self._state.get(training.number, (Curvature(), None))
            solved, A = [None] * len(penalties), V[training.response.used]
            for i in np.argsort(penalties)[::-1].tolist():
                last = solved[i] = _ridge(training, A, penalties[i] * by_column[i], curvature, last)
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
            self._moments[training.number] = self._second_moments(training.response, training.table)
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

    def _second_moments(self, response: Observations, table: Table) -> tuple[FloatArray, FloatArray]:
        """``A'WA`` and ``A'Wy`` of the intercept's column and V; those of all rows less those of the rows left out."""
        everything = np.where(table.labels >= 0, table.response.weight, 0.0)
        if self._total is None:
            self._total = self._moments_of(everything, response)
        rest = everything - response.weight
        n_rest = np.count_nonzero(rest)
        if 2 * n_rest < np.count_nonzero(everything):
            K, c = self._moments_of(rest, response) if n_rest else (np.zeros(()), np.zeros(()))
            K, c = self._total[0] - K, self._total[1] - c
            squares = np.square(response.y).reshape(len(rest), -1)
            enough = (response.weight @ squares >= LEFT * (everything @ squares)).all()
            if enough and (K.diagonal() >= LEFT * self._total[0].diagonal()).all():
                return K, c
        return self._moments_of(response.weight, response)

    def _moments_of(self, weight: FloatArray, response: Observations) -> tuple[FloatArray, FloatArray]:
        rows = np.flatnonzero(weight)
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
        self.share = np.repeat(shares, working.layout.sizes[: shares.size])
        self.gains = penalties.gains(np.arange(shares.size)) / np.sqrt(self.share)
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
        starts = working.layout.starts[: self.posed.n_mains + 1]
        # every tile of an X that is streamed is a pass
        tile = max((TILE if working.design.reads_columns else HELD_OF_STREAM) // max(len(self.table.labels), 1), 1)
        for first, last in group_tiles(starts, tile):
            places = np.arange(starts[first], starts[last])
            B = np.concatenate([np.asarray(design.take(working.layout.members[places])) for design in designs])
            B -= working.mean[places]
            B *= self.gains[places]
            yield places, B

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
        starts = self.posed.working.layout.starts[: self.posed.n_mains]
        return np.sqrt(np.add.reduceat(np.einsum("ijk,ijk->ik", coefs, coefs), starts, axis=1))

    def on_columns(self, fit: RidgeFit) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
        """The model on the columns of X."""
        coef, working = self.coefficients([fit])[0] * self.gains, self.posed.working
        level = self.posed.levels(fit.level - coef @ working.mean[: self.share.size])
        return working.layout.members[: self.share.size], self.posed.outputs(coef), level


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
    """Intercepts and coefficients of the penalised minimiser, for columns B of the training rows."""
    response, i = training.response.training, int(training.posed.intercept)
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
    response = training.response
    if response.loss.quadratic:
        system = WeightedRows(training, inner, response.weight)
        y = response.y.reshape(len(response.weight), -1)
        return [system.ridge(y, penalty) for penalty in penalties]
    if training.rough and response.isotropic and not response.loss.coupled:
        return _rough_wide_ridges(training, inner, penalties)
    root = RowRoot(inner)
    curvature, last = Curvature(), None
    solved, B = [], root.L[response.used]
    for penalty in penalties:
        last = _ridge(training, B, np.full(B.shape[1], penalty), curvature, last)
        solved.append((last[0], root.multipliers(last[1])))
    return solved


class WeightedRows:
    """Ridges under weighted squared loss, by the normal equations in the rows."""

    def __init__(self, training: Training, inner: FloatArray, weight: FloatArray) -> None:
        self.inner, self.weight = inner, weight
        self.used = np.flatnonzero(weight)
        root = self.root = np.sqrt(weight[self.used])
        self.M = inner[np.ix_(self.used, self.used)] * root * root[:, None]
        # the direction of the intercept is projected out
        self.row_ones = training.response.one
        self.total = float(weight @ self.row_ones**2)
        one = self.one = root * self.row_ones[self.used] / np.sqrt(self.total) * training.posed.intercept
        shift = self.M @ one
        self.M -= np.outer(shift, one)
        self.M -= np.outer(one, shift - one * (one @ shift))
        self.intercept = training.posed.intercept

    def ridge(self, y: FloatArray, penalty: float) -> tuple[FloatArray, FloatArray]:
        """Intercepts and multipliers for responses of shape (n_rows, n_outputs)."""
        one, right = self.one, y[self.used] * self.root[:, None]
        right -= np.outer(one, one @ right)
        S = self.M.copy()
        S.flat[:: len(S) + 1] += penalty
        multipliers = dposv(S.T, right, lower=1, overwrite_a=1)[1]
        full = np.zeros((len(self.inner), y.shape[1]))
        full[self.used] = (multipliers - np.outer(one, one @ multipliers)) * self.root[:, None]
        left = (self.weight * self.row_ones) @ (y - self.inner @ full)
        return left / self.total * self.intercept, full


def _rough_wide_ridges(
    training: Training, inner: FloatArray, penalties: Sequence[float]
) -> list[tuple[FloatArray, FloatArray]]:
    """The same under another loss: a few reweighted least-squares fits in the rows, each from the one before."""
    response = training.response
    multipliers = np.zeros((len(inner), 1))
    level = response.null if training.posed.intercept else np.zeros(1)
    eta, norm = np.outer(response.one, level), 0.0
    solved: dict[float, tuple[FloatArray, FloatArray]] = {}
    for penalty in sorted(penalties, reverse=True):
        value = response.total(eta) + 0.5 * penalty * norm
        for _ in range(MOST_STEPS):
            h = response.curvature(eta, bounding=response.bounded or response.loss.coupled)
            h = np.maximum(h, LEAST_CURVATURE * h.sum() / response.total_weight * response.weight)
            target = eta + np.divide(response.score(eta), h[:, None], out=np.zeros_like(eta), where=h[:, None] > 0)
            aim_level, aim = WeightedRows(training, inner, h).ridge(target, penalty)
            fitted, length, lowered = inner @ aim, 1.0, False
            ahead = fitted + np.outer(response.one, aim_level)
            while length > LEAST_STEP and not lowered:
                mixed = (1 - length) * multipliers + length * aim
                there = (1 - length) * eta + length * ahead
                size = float((mixed * (inner @ mixed)).sum()) if length < 1 else float((aim * fitted).sum())
                tried = response.total(there) + 0.5 * penalty * size
                lowered, length = tried < value, length / 2
            if not lowered:
                break
            gain, value, norm = value - tried, tried, size
            eta, multipliers, level = there, mixed, (1 - 2 * length) * level + 2 * length * aim_level
            if gain <= ROUGH * response.scale(value - 0.5 * penalty * norm):
                break
        solved[penalty] = level, multipliers
    return [solved[penalty] for penalty in penalties]
