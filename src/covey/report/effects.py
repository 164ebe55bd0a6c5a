"""Effects of columns that a pipeline expands: curves and contrasts of levels, with their spread over refits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from covey.evidence import NestedScore
from covey.terms.effects import Effect
from covey.terms.parts import Axis
from covey.validation import Array, FloatArray, MatrixLike, last_step

# The most effects on a page, points on a curve, and levels of a category (the most common ones).
MOST_EFFECTS, N_POINTS, MOST_LEVELS = 24, 60, 20

# Quantiles of the column over which a curve is centred, instead of all rows.
N_QUANTILES = 200


def term_effects(model: BaseEstimator, X: MatrixLike | None, nested: NestedScore | None) -> tuple[Effect, ...]:
    """The effects of columns that a `ColumnTransformer` expands, largest first, with their spread over refits.

    There are none unless `model` is a pipeline of it and an estimator with one linear predictor, and X a DataFrame.
    """
    if not _has_terms(model) or not isinstance(X, pd.DataFrame):
        return ()
    refits = [refit for refit in (nested.estimators if nested is not None else []) if _has_terms(refit)]
    base = X.dropna().iloc[:1]
    base = X.iloc[:1] if base.empty else base
    coef = np.ravel(last_step(model).coef_)
    found = [
        _effect(model, refits, X[column], base, block, is_category=isinstance(last_step(step), OneHotEncoder))
        for block, step, column, place in _expanded(model.steps[0][1])
        if coef[place].any()
    ]
    moving = [one for one in found if one is not None and one.effect.any()]
    return tuple(sorted(moving, key=lambda one: -one.span)[:MOST_EFFECTS])


def _has_terms(model: BaseEstimator) -> bool:
    return (
        isinstance(model, Pipeline)
        and len(model.steps) == 2
        and isinstance(model.steps[0][1], ColumnTransformer)
        and np.size(getattr(model.steps[1][1], "intercept_", 0.0)) == 1
    )


def _expanded(transformer: ColumnTransformer) -> Iterator[tuple[str, BaseEstimator, str, slice]]:
    """For each expanded column: the name of its block, the transformer, the column's name, and the block's slice."""
    for name, step, columns in transformer.transformers_:
        place = transformer.output_indices_[name]
        if isinstance(step, str) or isinstance(columns, str | slice) or not all(isinstance(c, str) for c in columns):
            continue
        if place.stop - place.start > len(columns) or isinstance(last_step(step), OneHotEncoder):
            for column in columns:
                yield name, step, str(column), place


def expanded_columns(model: BaseEstimator) -> frozenset[int]:
    """The columns of the model that are parts of expanded ones, and mean nothing one by one."""
    if not _has_terms(model):
        return frozenset()
    return frozenset(j for *_, place in _expanded(model.steps[0][1]) for j in range(place.start, place.stop))


def _effect(
    model: BaseEstimator, refits: list[BaseEstimator], values: pd.Series, base: pd.DataFrame, block: str, *,
    is_category: bool,
) -> Effect | None:  # fmt: skip
    known, column, counts = values.dropna(), str(values.name), None
    is_curve = pd.api.types.is_numeric_dtype(values.dtype) and not is_category
    if is_curve:
        numbers = known.to_numpy(dtype=float)
        at = np.linspace(numbers.min(), numbers.max(), N_POINTS)
        typical = np.quantile(numbers, (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES)
        points = np.r_[at, typical]
        axis = Axis(column, "number", at, at, np.quantile(numbers, np.arange(1, 10) / 10))
    else:
        common = known.value_counts().head(MOST_LEVELS)
        at = points = common.index.to_numpy()
        counts = np.asarray(common, dtype=np.intp)
        axis = Axis(column, "levels", at, at, counts=counts)

    def centred(fitted: BaseEstimator) -> FloatArray | None:
        part = _predictor(fitted, block, column, points, base)
        if part is None:
            return None
        return part[: len(at)] - (part[len(at) :].mean() if is_curve else np.average(part, weights=counts))

    effect = centred(model)
    if effect is None:
        return None
    again = [one for one in map(centred, refits) if one is not None]
    low, high = (np.min(again, axis=0), np.max(again, axis=0)) if again else (None, None)
    n_in = sum(bool(one.any()) for one in again)
    return Effect(column, (column,), (axis,), effect, low, high, n_refits=len(again), n_in=n_in)


def _predictor(fitted: BaseEstimator, block: str, column: str, values: Array, base: pd.DataFrame) -> FloatArray | None:
    """The block's part of the linear predictor as the column varies; None if a refit does not know a level."""
    transformer, last = fitted.steps[0][1], fitted.steps[-1][1]
    inputs = next(list(names) for name, _, names in transformer.transformers_ if name == block)
    frame = pd.concat([base[inputs]] * len(values), ignore_index=True)
    frame[column] = pd.Series(values).astype(base[column].dtype)
    try:
        expanded = transformer.named_transformers_[block].transform(frame)
    except ValueError:
        return None
    table = np.asarray(expanded.toarray() if sp.issparse(expanded) else expanded, dtype=float)
    return np.asarray(table @ np.ravel(last.coef_)[transformer.output_indices_[block]])
