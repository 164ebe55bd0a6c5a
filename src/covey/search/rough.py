"""Rough minimisers for many models at once, good enough to be scored.

The candidates of a split are models on sets of columns of one table, each with several ridges. Gradients and losses of
all of them are computed together, and models on the same columns share a second derivative as long as it serves them. A
model that is not done after a few steps, as where the minimum lies at infinity, is left to
`covey.search.newton.minimise`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from covey.losses.arrays import namespace
from covey.search.arrays import host, like
from covey.search.constraints.cone import Rows, root
from covey.search.newton import (
    DECREASE,
    EPS,
    FAR,
    JITTER,
    KEPT_ROUGH,
    KEPT_SHRINKS,
    ROUGH,
    SHRINKS,
    factorised,
)
from covey.search.observations import Observations
from covey.validation import FloatArray

__all__ = ["Alike", "minimise_together"]

MOST_STEPS = 8

# How often a step is halved where the loss does not fall enough.
MOST_HALVINGS = 4

# The most linear predictors of models that are computed together: 16 MiB.
MOST_NUMBERS = 2**21


@dataclass(frozen=True)
class Alike:
    """Models on the same columns, given by their positions, from the smallest ridge to the largest.

    With constraints, `rows` are the inequalities on these columns.
    """

    columns: NDArray[np.intp]
    models: NDArray[np.intp]
    rows: Rows | None = None


def minimise_together(
    response: Observations,
    A: Any,
    starts: FloatArray,
    sets: Sequence[Alike],
    penalty: FloatArray,
    ridges: FloatArray,
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Minimise the loss of one output plus ``ridge coef' penalty coef / 2``, for each model on its columns.

    Parameters
    ----------
    response : Observations
    A : array, shape (n_rows, n_columns)
        Where X lives.
    starts : ndarray, shape (n_columns, n_models)
        Zero outside the columns of a model.
    sets : sequence of Alike
    penalty : ndarray, shape (n_columns, n_columns)
    ridges : ndarray, shape (n_models,)

    Returns
    -------
    coefs, done : ndarray, shape (n_columns, n_models) and (n_models,)
        Models that are not done have not come near their minimum.
    """
    coefs, done = starts.copy(), np.zeros(starts.shape[1], dtype=bool)
    for some in _in_batches(sets, max(1, MOST_NUMBERS // len(response.weight))):
        _descend(response, A, coefs, done, some, penalty, ridges)
    return coefs, done


def _in_batches(sets: Sequence[Alike], most: int) -> Iterator[list[Alike]]:
    """The sets, as many at a time as have about the most models together."""
    batch: list[Alike] = []
    for one in sets:
        batch.append(one)
        if sum(len(each.models) for each in batch) >= most:
            yield batch
            batch = []
    if batch:
        yield batch


def _descend(
    response: Observations,
    A: Any,
    coefs: FloatArray,
    done: NDArray[np.bool_],
    sets: Sequence[Alike],
    penalty: FloatArray,
    ridges: FloatArray,
) -> None:
    """Move models to their minimisers, in place."""
    response = response.near(A)
    at = np.concatenate([one.models for one in sets])  # the models that still move
    curvatures: list[dict[int, FloatArray]] = [{} for _ in sets]  # of each model
    penalties = [penalty[np.ix_(one.columns, one.columns)] for one in sets]
    shrunk, before = np.full(len(sets), np.inf), np.full(coefs.shape[1], np.inf)
    eta = response.predictor(A, coefs[:, at])
    values = _totals(response, eta, coefs[:, at], penalty, ridges[at])
    for _ in range(MOST_STEPS):
        score = response.for_models.score(eta + response.offset)
        gradient = host(A.T @ like(score, A)) - ridges[at] * (penalty @ coefs[:, at])
        place = {model: i for i, model in enumerate(at.tolist())}
        direction, sizes = np.zeros_like(gradient), np.zeros(at.size)
        fresh, exact = np.zeros(at.size, dtype=bool), np.zeros(at.size, dtype=bool)
        for s, one in enumerate(sets):
            moving = np.array([place[model] for model in one.models.tolist() if model in place], dtype=np.intp)
            if not moving.size:
                continue
            inside = left = gradient[np.ix_(one.columns, moving)]
            models, some = at[moving].tolist(), ridges[at[moving]]
            K, steps = curvatures[s], None
            if K and one.rows is not None:  # what constraints hold back is no reason to go on
                inner = np.stack([K[model] for model in models]) + some[:, None, None] * penalties[s]
                steps, left = _held(inner, inside, coefs[np.ix_(one.columns, at[moving])], one.rows)
            sizes[moving] = np.abs(left).max(axis=0, initial=0.0)
            size = float(sizes[moving].max())
            if not K or size > KEPT_SHRINKS * shrunk[s]:
                # one for all of them at first; then each has its own
                middle, columns = moving.size // 2, A[:, one.columns]
                for i in [middle] if not K else range(moving.size):
                    gram = response.gram(eta[:, [moving[i]]], columns)
                    gram.flat[:: len(gram) + 1] *= 1 + JITTER
                    K[models[i]], exact[moving[i]] = gram, True
                if len(K) == 1:
                    K.update(dict.fromkeys(models, K[models[middle]]))
                fresh[moving], steps = True, None
            shrunk[s] = size
            if steps is None:
                inner = np.stack([K[model] for model in models]) + some[:, None, None] * penalties[s]
                steps = (
                    _solved(inner, inside)
                    if one.rows is None
                    else _held(inner, inside, coefs[np.ix_(one.columns, at[moving])], one.rows)[0]
                )
            direction[np.ix_(one.columns, moving)] = steps
        move, promised = response.predictor(A, direction), (gradient * direction).sum(axis=0)
        tried = _totals(response, eta + move, coefs[:, at] + direction, penalty, ridges[at])
        length, lower = np.ones(at.size), np.zeros(at.size, dtype=bool)
        for _ in range(1 + MOST_HALVINGS):
            lower = tried <= values - DECREASE * length * promised + 4 * EPS * np.abs(values)
            short = np.flatnonzero(~lower & fresh)
            if not short.size:
                break
            length[short] /= 2
            there = coefs[:, at[short]] + length[short] * direction[:, short]
            image = eta[:, short] + like(length[short], eta) * move[:, short]
            tried[short] = _totals(response, image, there, penalty, ridges[at[short]])
        coefs[:, at] += np.where(lower, length * direction, 0.0)
        eta = eta + namespace(move).where(like(lower, move) != 0, like(length, move) * move, 0.0)
        values = np.where(lower, tried, values)
        # without a penalty, slow steps that move rows far may lead to infinity
        reach = host(namespace(move).amax(abs(move[response.used]), 0))
        receding = (ridges[at] == 0) & (sizes > SHRINKS * before[at]) & (reach > FAR)
        enough = ROUGH * _scales(response, eta) * np.where(exact, 1.0, KEPT_ROUGH)
        ends = lower & (length == 1) & (promised <= enough) & ~receding
        done[at[ends]] = True
        before[at] = sizes
        full = lower & (length == 1)
        for s, one in enumerate(sets):  # a second derivative that does not lower the loss has had its time
            if any(model in place and not full[place[model]] for model in one.models.tolist()):
                shrunk[s] = 0.0
        moves = ~ends & (lower | ~fresh)
        if not moves.any():
            return
        at, eta, values = at[moves], eta[:, moves], values[moves]


def _solved(K: FloatArray, right: FloatArray) -> FloatArray:
    """Solutions of ``K x = right``, for each K and its column on the right."""
    solved = np.empty_like(right)
    for i, each in enumerate(K):
        _, solved[:, i], failed = dposv(each, right[:, i])
        if failed:  # no row has curvature in some direction
            solved[:, [i]] = factorised(each)(right[:, [i]])
    return solved


def _held(K: FloatArray, right: FloatArray, coefs: FloatArray, rows: Rows) -> tuple[FloatArray, FloatArray]:
    """The same steps under inequalities, and the gradients left after them."""
    both = [
        rows.step(root(each), coef[:, None], one[:, None]) for each, coef, one in zip(K, coefs.T, right.T, strict=True)
    ]
    return np.hstack([step for step, _ in both]), np.hstack([left for _, left in both])


def _totals(response: Observations, eta: Any, coefs: FloatArray, penalty: FloatArray, ridges: FloatArray) -> FloatArray:
    """The penalised loss of every model."""
    totals = host(response.for_models.total(eta + response.offset))
    # on columns of 1e-150, coefficients are so large that their squares overflow: such models are left to Newton
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(totals + 0.5 * ridges * (coefs * (penalty @ coefs)).sum(axis=0))


def _scales(response: Observations, eta: Any) -> FloatArray | float:
    """The total weight times the dispersion of every model."""
    weight = response.total_weight
    if response.loss.known_dispersion:
        return weight * response.loss.dispersion(0.0)
    deviances = host(response.for_models.deviance(eta + response.offset))
    return np.array([weight * response.loss.dispersion(one / weight) for one in deviances.tolist()])
