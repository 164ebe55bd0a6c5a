"""Ridges on all columns for any loss, in whichever coordinates are fewer: columns or rows.

If there are more columns than rows, the linear predictor is ``L a``, where ``L L'`` is the matrix of inner products of
the rows, and the coefficients have the same norm as ``a``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from covey.limit.kernel import RowProducts
from covey.limit.loss_rows import LossRows
from covey.limit.newton import ROUGH_TOLERANCE, TOLERANCE, minimise
from covey.limit.posed_loss import PosedLoss
from covey.limit.response import Response
from covey.limit.reweighted import inverse_roots, scaled, unscaled
from covey.limit.ridges import Penalties
from covey.limit.rows import Split
from covey.validation import FloatArray

__all__ = ["DenseLossRows", "LossKernel"]

# The factorisation of the inner products stops at this share of the largest: the rest is round-off error.
ROUNDING = 1e-12


@dataclass(frozen=True)
class LossFit:
    """A penalised fit.

    Attributes
    ----------
    coef : ndarray, shape (r, n_outputs)
        On scaled columns, or in the coordinates of a `RowRoot`.
    intercept : ndarray, shape (n_outputs,)
    norms : ndarray, shape (n_groups,)
    """

    coef: FloatArray
    intercept: FloatArray
    norms: FloatArray


class RowRoot:
    """L with ``L L'`` the inner products of some rows, and the map back to the columns."""

    def __init__(self, inner: FloatArray) -> None:
        factor, pivots, rank, _ = dpstrf(
            inner, lower=1, tol=ROUNDING * max(float(np.diag(inner).max(initial=0.0)), 0.0)
        )
        self.pivots = pivots[:rank] - 1
        self.L = np.zeros((len(inner), rank))
        self.L[pivots - 1] = np.tril(factor)[:, :rank]

    def alphas(self, a: FloatArray) -> FloatArray:
        """Multipliers of the rows, shape (n_rows, n_outputs): the coefficients are the rows' sum weighted by them."""
        out = np.zeros((len(self.L), a.shape[1]))
        if len(a):
            out[self.pivots] = solve_triangular(self.L[self.pivots].T, a, lower=False)
        return out


@dataclass(frozen=True)
class Training:
    """The training response of a split, the unit of its penalties, and the tolerance of its fits."""

    response: Response
    unit: float
    tolerance: float


class DenseLossRows:
    """Rows of scaled columns ``V_l = Z_l C_l`` with ``C_l C_l'`` the inverse of the group's penalty.

    Parameters
    ----------
    rows : LossRows
    groups : ndarray of int
        Positions of these groups among all groups.
    penalties : Penalties
    intercept : bool
    """

    def __init__(self, rows: LossRows, groups: NDArray[np.intp], penalties: Penalties, intercept: bool) -> None:
        self.rows, self.groups, self.ones = rows, groups, np.ones((len(rows.Z), int(intercept)))
        self.roots = inverse_roots(penalties.of(groups))
        (self.V,) = scaled(rows, self.roots, [rows.Z])

    def training(self, split: Split, n_rows: float) -> Training:
        """The training rows of a split."""
        response = self.rows.training(split)
        q = response.weight / response.total_weight
        squares = float(q @ (self.V * self.V).sum(axis=1))
        if self.ones.size:
            squares -= float(((q @ self.V) ** 2).sum())
        return Training(response, _unit(response, squares, n_rows, self.ones.size > 0), self.rows.tolerance(split))

    def fits(self, training: Training, penalties: Sequence[float], shares: FloatArray) -> list[LossFit]:
        """Minimise the loss plus ``penalty / 2 sum_l share_l norm(b_l)^2``, for each penalty and its row of shares."""
        return [self._fit(training, penalty, own) for penalty, own in zip(penalties, shares, strict=True)]

    def _fit(self, training: Training, penalty: float, shares: FloatArray) -> LossFit:
        gain = np.repeat(1.0 / shares, self.rows.ranks)
        response, B = training.response, self.V * np.sqrt(gain)
        if B.shape[1] <= B.shape[0]:
            levels, a = _ridge(response, self.ones, B, penalty, training.tolerance)
        else:
            root = RowRoot(B @ B.T)
            levels, own = _ridge(response, self.ones, root.L, penalty, training.tolerance)
            a = B.T @ root.alphas(own)
        coef = a * np.sqrt(gain)[:, None]
        squares = np.add.reduceat(np.append((coef * coef).sum(axis=1), 0.0), self.rows.starts[:-1])
        return LossFit(coef, levels, np.sqrt(np.where(self.rows.ranks > 0, squares, 0.0)))

    def predictions(self, split: Split, fits: Sequence[LossFit]) -> FloatArray:
        """Linear predictors on the rows that a split is scored on; shape (n_rows, n_outputs, n_models)."""
        V = self.V[self.rows.judging(split)]
        return np.stack([V @ fit.coef + fit.intercept for fit in fits], axis=-1)

    def working(self, fit: LossFit) -> tuple[FloatArray, FloatArray]:
        """A model in working coordinates: coefficients of shape (n_outputs, r), and intercepts."""
        return unscaled(self.rows, self.roots, fit.coef.T), fit.intercept


class LossKernel(RowProducts):
    """Inner products of the rows over all scaled columns, for any loss."""

    def __init__(self, posed: PosedLoss, penalties: Penalties, shares: FloatArray) -> None:
        super().__init__(posed, penalties, shares)
        observed = posed.observed
        self.observations = observed.response.rows(self.used[0]).weighted(self.weight[: self.used[0].size])
        if posed.validation is not None:
            other = posed.validation
            judges = observed.read(other.y, np.asarray(other.weight, dtype=float), other.offset).rows(self.used[1])
            own = self.observations
            self.observations = Response(
                own.loss,
                np.concatenate([own.y, judges.y]),
                self.weight,
                np.concatenate([own.offset, judges.offset]),
            )
        self.root = RowRoot(self.inner)
        self.ones = np.ones((len(self.inner), int(posed.intercept)))

    def fits(self, split: Split, penalties: Sequence[float]) -> list[LossFit]:
        """Ridges on the training rows of a split, with penalties in units of the mean eigenvalue."""
        response = self.observations.weighted(np.where(np.isin(self.part, split.train), self.weight, 0.0))
        q = response.weight / response.total_weight
        plain = self.inner if self.excess is None else self.inner - self.excess
        squares = float(q @ np.diag(plain)) - (float(q @ plain @ q) if self.ones.size else 0.0)
        unit = _unit(response, squares, self.posed.n_rows(split), self.ones.size > 0)
        tolerance = TOLERANCE if split == self.posed.splits[-1] else ROUGH_TOLERANCE
        out: list[LossFit] = []
        start = None
        for penalty in sorted(penalties, reverse=True):
            levels, a = _ridge(response, self.ones, self.root.L, penalty * unit, tolerance, start)
            start = np.vstack([levels[None, :][: self.ones.shape[1]], a])
            out.append(LossFit(a, levels, np.empty(0)))
        by_penalty = dict(zip(sorted(penalties, reverse=True), out, strict=True))
        return [by_penalty[penalty] for penalty in penalties]

    def predictions(self, split: Split, fits: Sequence[LossFit]) -> FloatArray:
        """Linear predictors on the rows that a split is scored on; shape (n_rows, n_outputs, n_models)."""
        L = self.root.L[np.isin(self.part, split.judging(self.observations.loss.coupled))]
        return np.stack([L @ fit.coef + fit.intercept for fit in fits], axis=-1)

    def coefficients(self, fits: Sequence[LossFit]) -> FloatArray:
        """Coefficients of the scaled columns, in the groups' contiguous layout; (n_models, n_outputs, n_columns)."""
        alphas = np.concatenate([self.root.alphas(fit.coef).T for fit in fits])
        return self.combine(alphas).reshape(len(fits), -1, self.gains.size)

    def level(self, fit: LossFit) -> FloatArray:
        """The predictor of a model at the means of the columns; shape (n_outputs,)."""
        return fit.intercept


def _unit(response: Response, squares: float, n_rows: float, intercept: bool) -> float:
    """The unit of penalties: the mean eigenvalue of the inner products times the curvature at the null model."""
    return (squares / max(n_rows, 1.0) or 1.0) * float(response.curvature(response.at_null(intercept)).sum())


def _ridge(
    response: Response,
    ones: FloatArray,
    B: FloatArray,
    penalty: float,
    tolerance: float,
    start: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Intercepts and coefficients of the penalised minimiser."""
    i = ones.shape[1]
    if start is None:
        start = np.zeros((i + B.shape[1], response.n_outputs))
        start[:i] = response.null
    weights = np.full(i + B.shape[1], penalty)
    weights[:i] = 0.0
    fit = minimise(response, np.hstack([ones, B]), np.diag(weights), start, tolerance)
    return (fit.coef[0] if i else np.zeros(response.n_outputs)), fit.coef[i:]
