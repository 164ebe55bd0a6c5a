"""Rough minimisers for many models at once, good enough to be scored.

The candidates of a split are models on sets of columns of one table, each with several ridges. Gradients and losses of
all of them are computed together, and they share one second derivative, scaled to the curvature at each of them, as
long as it serves them. A model that is not done after a few steps, as where the minimum lies at infinity, is left to
`covey.search.newton.minimise`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv, dpotrs

from covey.arrays import host, like, namespace
from covey.search.constraints.cone import Rows
from covey.search.curvature import JITTER, factorised
from covey.search.newton import DECREASE, EPS, FAR, KEPT_ROUGH, KEPT_SHRINKS, ROUGH, SHRINKS
from covey.search.observations import Observations
from covey.validation import ArrayOrTensor, FloatArray

__all__ = ["ModelSet", "in_batches", "minimise_together"]

MOST_STEPS = 8

# How often a step is halved where the loss does not fall enough.
MOST_HALVINGS = 4

# The most linear predictors of models that are computed together: 16 MiB.
MOST_NUMBERS = 2**21


class ModelSet:
    """Models on the same columns, and the second derivatives of the loss that their steps use.

    Parameters
    ----------
    columns : ndarray of int
    models : ndarray of int
        Positions among all models, from the smallest ridge to the largest.
    penalty : ndarray, shape (k, k)
        On these columns.
    rows : Rows, optional
        Constraints on these columns.

    Attributes
    ----------
    shrunk : float
        The largest norm of a gradient at the last step; zero if the second derivatives have had their time.
    """

    def __init__(
        self, columns: NDArray[np.intp], models: NDArray[np.intp], penalty: FloatArray, rows: Rows | None = None
    ) -> None:
        self.columns, self.models, self.penalty, self.rows = columns, models.tolist(), penalty, rows
        self.shrunk = np.inf
        self._grams: dict[int, tuple[FloatArray, float]] = {}
        self._factors: dict[int, FloatArray] = {}
        self._shares = True

    def begin(self, K: FloatArray, scales: FloatArray) -> None:
        """Take the second derivative, on all columns, that all models share at first, and a scale for each of them."""
        self._use(self.models, [K[self.columns[:, None], self.columns]] * len(self.models), scales[self.models])

    def _use(self, models: list[int], grams: list[FloatArray], scales: FloatArray) -> None:
        self._grams, self._factors = dict(zip(models, zip(grams, scales.tolist(), strict=True), strict=True)), {}

    def step(
        self, steps: Steps, models: list[int], response: Observations, A: ArrayOrTensor, eta: ArrayOrTensor
    ) -> None:
        """Write the steps of those models that still move; `eta` has the predictors of all models that do."""
        moving = np.array([steps.place[model] for model in models], dtype=np.intp)
        inside, solved = steps.gradient[self.columns[:, None], moving], None
        left = inside
        if self.rows is not None:  # what constraints hold back is no reason to go on
            solved, left = self._solved(steps, models, inside)
        with np.errstate(over="ignore"):  # on columns of 1e150
            steps.sizes[moving] = np.linalg.norm(left, axis=0)
        size = float(steps.sizes[moving].max())
        if size > KEPT_SHRINKS * self.shrunk:
            # the first time one for all of them, later one for each
            which = [len(models) // 2] if self._shares else list(range(len(models)))
            here = eta[:, moving.tolist()]
            grams = response.grams(here[:, which], A[:, self.columns])
            for K in grams:
                K.flat[:: len(K) + 1] *= 1 + JITTER
            scales = response.relative_curvatures(here, which[0]) if self._shares else np.ones(len(models))
            self._use(models, grams * len(models) if self._shares else grams, scales)
            steps.exact[moving[which]], steps.fresh[moving], self._shares, solved = True, True, False, None
        self.shrunk = size
        if solved is None:
            solved, _ = self._solved(steps, models, inside)
        steps.direction[self.columns[:, None], moving] = solved

    def _solved(self, steps: Steps, models: list[int], right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The steps of some models, under inequalities if there are any, and the gradients left after them."""
        if self.rows is None:
            solved = np.empty_like(right)
            for i, model in enumerate(models):
                solved[:, i] = self._solution(model, steps.ridges, right[:, i])
            return solved, right
        K = np.array([self._penalised(model, steps.ridges) for model in models])
        return self.rows.step(K, steps.coefs[self.columns[:, None], models], right)

    def _solution(self, model: int, ridges: FloatArray, right: FloatArray) -> FloatArray:
        if model in self._factors:
            return dpotrs(self._factors[model], right)[0]
        factor, solution, failed = dposv(K := self._penalised(model, ridges), right)
        if failed:  # no row has curvature in some direction
            return factorised(K)(right)
        self._factors[model] = factor
        return solution

    def _penalised(self, model: int, ridges: FloatArray) -> FloatArray:
        """The second derivative of a model's penalised loss."""
        K, scale = self._grams[model]
        return K * scale + ridges[model] * self.penalty


@dataclass(frozen=True)
class Steps:
    """The next steps of the models that still move.

    Attributes
    ----------
    coefs, ridges : ndarray, shape (n_columns, n_models) and (n_models,)
        Of all models.
    place : dict
        The position of each model that still moves among them.
    gradient, direction : ndarray, shape (n_columns, n_moving)
    sizes : ndarray, shape (n_moving,)
        The norm of the gradient: its largest entry would depend on the order of the columns that span a group.
    fresh, exact : ndarray of bool, shape (n_moving,)
        Whether the second derivative was computed for this step, and whether that was at this model.
    """

    coefs: FloatArray
    ridges: FloatArray
    place: dict[int, int]
    gradient: FloatArray
    direction: FloatArray
    sizes: FloatArray
    fresh: NDArray[np.bool_]
    exact: NDArray[np.bool_]


def in_batches(sets: Sequence[ModelSet], n_rows: int) -> Iterator[list[ModelSet]]:
    """The sets, as many at a time as memory allows."""
    batch: list[ModelSet] = []
    for one in sets:
        batch.append(one)
        if sum(len(each.models) for each in batch) * n_rows >= MOST_NUMBERS:
            yield batch
            batch = []
    if batch:
        yield batch


def minimise_together(
    response: Observations,
    A: ArrayOrTensor,
    coefs: FloatArray,
    sets: Sequence[ModelSet],
    penalty: FloatArray,
    ridges: FloatArray,
) -> NDArray[np.bool_]:
    """Move models, in place, to the minimum of the loss of one output plus ``ridge coef' penalty coef / 2``.

    Parameters
    ----------
    response : Observations
        Without rows of weight zero: every model would be computed there, too.
    A : array, shape (n_rows, n_columns)
        Where X lives.
    coefs : ndarray, shape (n_columns, n_models)
        Zero outside the columns of a model.
    sets : sequence of ModelSet
        The models to move.
    penalty : ndarray, shape (n_columns, n_columns)
    ridges : ndarray, shape (n_models,)

    Returns
    -------
    ndarray of bool, shape (n_models,)
        The models that have come near their minimum.
    """
    response = response.near(A)
    done = np.zeros(coefs.shape[1], dtype=bool)
    at = np.concatenate([one.models for one in sets])  # the models that still move
    before, moved = np.full(coefs.shape[1], np.inf), np.zeros(coefs.shape[1])
    eta = response.predictor(A, coefs[:, at])
    values = _totals(response, eta, coefs[:, at], penalty, ridges[at])
    _share(response, A, eta, sets, at, coefs.shape[1])
    for _ in range(MOST_STEPS):
        # 1. the steps to the minima of quadratic models
        score = response.for_models.score(response.shifted(eta))
        gradient = host(A.T @ like(score, A)) - ridges[at] * (penalty @ coefs[:, at])
        place, none = {model: i for i, model in enumerate(at.tolist())}, np.zeros(at.size, dtype=bool)
        steps = Steps(
            coefs, ridges, place, gradient, np.zeros_like(gradient), np.zeros(at.size), none.copy(), none.copy()
        )
        for one in sets:
            if models := [model for model in one.models if model in place]:
                one.step(steps, models, response, A, eta)
        # 2. shorter ones where the loss does not fall enough; none if it does not fall at all
        direction, length = steps.direction, np.ones(at.size)
        move, promised = response.predictor(A, direction), (gradient * direction).sum(axis=0)
        ahead = eta + move
        tried = _totals(response, ahead, coefs[:, at] + direction, penalty, ridges[at])
        for _ in range(1 + MOST_HALVINGS):
            lower = tried <= values - DECREASE * length * promised + 4 * EPS * np.abs(values)
            short = np.flatnonzero(~lower & steps.fresh)
            if not short.size:
                break
            length[short] /= 2
            there = coefs[:, at[short]] + length[short] * direction[:, short]
            image = eta[:, short] + like(length[short], eta) * move[:, short]
            tried[short] = _totals(response, image, there, penalty, ridges[at[short]])
        coefs[:, at] += np.where(lower, length * direction, 0.0)
        full, length = lower & (length == 1), np.where(lower, length, 0.0)
        eta = ahead if full.all() else eta + like(length, move) * move
        values = np.where(lower, tried, values)
        # 3. the models that are done; without a penalty, slow steps that move rows far may lead to infinity
        free, reach = ridges[at] == 0, np.zeros(at.size)
        if free.any():
            reach[free] = host(namespace(move).amax(abs(move[:, free]), 0))
        slow = (steps.sizes > SHRINKS * before[at]) | (before[at] == np.inf)  # nothing is known of the first step
        receding = free & (slow | (reach > SHRINKS * moved[at])) & (reach > FAR)
        totals = values - _bends(coefs[:, at], penalty, ridges[at])
        enough = ROUGH * _scales(response, totals) * np.where(steps.exact, 1.0, KEPT_ROUGH)
        ends = full & (promised <= enough) & ~receding
        done[at[ends]] = True
        before[at], moved[at] = steps.sizes, reach
        for one in sets:
            if any(model in place and not full[place[model]] for model in one.models):
                one.shrunk = 0.0
        moves = ~ends & (lower | ~steps.fresh)
        if not moves.any():
            break
        at, eta, values = at[moves], eta[:, moves], values[moves]
    return done


def _share(
    response: Observations,
    A: ArrayOrTensor,
    eta: ArrayOrTensor,
    sets: Sequence[ModelSet],
    at: NDArray[np.intp],
    n_models: int,
) -> None:
    """Give all models the second derivative at one of those with most columns; `eta` has the predictors of `at`."""
    widest = max(sets, key=lambda one: one.columns.size)
    one = int(np.flatnonzero(at == widest.models[len(widest.models) // 2])[0])
    every = np.unique(np.concatenate([one.columns for one in sets]))
    K, scales = np.zeros((A.shape[1],) * 2), np.ones(n_models)
    (K[every[:, None], every],) = response.grams(eta[:, [one]], A[:, every])
    K.flat[:: len(K) + 1] *= 1 + JITTER
    scales[at] = response.relative_curvatures(eta, one)
    for each in sets:
        each.begin(K, scales)


def _totals(
    response: Observations, eta: ArrayOrTensor, coefs: FloatArray, penalty: FloatArray, ridges: FloatArray
) -> FloatArray:
    """The penalised loss of every model."""
    return host(response.for_models.total(response.shifted(eta))) + _bends(coefs, penalty, ridges)


def _bends(coefs: FloatArray, penalty: FloatArray, ridges: FloatArray) -> FloatArray:
    """What the penalty adds to the loss of every model."""
    # on columns of 1e-150, coefficients are so large that their squares overflow: such models are left to Newton
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(0.5 * ridges * (coefs * (penalty @ coefs)).sum(axis=0))


def _scales(response: Observations, totals: FloatArray) -> FloatArray:
    """The total weight times the dispersion of every model."""
    return np.array([response.scale(total) for total in totals.tolist()])
