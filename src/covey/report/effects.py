"""Effects of expanded columns: spline curves and contrasts of categories, with their spread over refits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from covey.evidence import NestedScore
from covey.validation import FloatArray

__all__ = ["Effect", "term_effects"]

# The most effects on a page, points on a curve, and levels of a category (the most common ones).
MOST_EFFECTS, N_POINTS, MOST_LEVELS = 24, 60, 20

# Quantiles of the column over which a curve is centred, instead of all rows.
N_QUANTILES = 200


@dataclass(frozen=True)
class Effect:
    """The effect of one table column on the linear predictor, with all others held fixed.

    Attributes
    ----------
    column : str
    values : ndarray
        Points along a curve, or levels with the most common first.
    effect : ndarray
        For a curve, the difference from its mean over the rows; for levels, the difference from the first level.
    low, high : ndarray or None
        The smallest and largest effect over the refits, each without one outer fold.
    n_in, n_refits : int
        The number of refits that select the column, and of all refits; the effect is zero in the others.
    counts : ndarray of int
        The number of rows per level; empty for a curve.
    deciles : ndarray
        Deciles of the column, for a curve; empty for levels.
    """

    column: str
    values: Any
    effect: FloatArray
    low: FloatArray | None
    high: FloatArray | None
    n_in: int
    n_refits: int
    counts: Any
    deciles: FloatArray

    @property
    def is_curve(self) -> bool:
        """Whether this is a curve rather than a list of levels."""
        return len(self.counts) == 0


def term_effects(model: Any, X: Any, nested: NestedScore | None) -> tuple[Effect, ...]:
    """The effects of columns that a `ColumnTransformer` expands, largest first.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted. Effects need a pipeline of a `ColumnTransformer` and an estimator with one linear predictor.
    X : DataFrame
        The columns before expansion.
    nested : NestedScore, optional
        With `estimators`, for the spread over refits.
    """
    if not _has_terms(model) or not isinstance(X, pd.DataFrame):
        return ()
    refits = [one for one in (nested.estimators if nested is not None else []) if _has_terms(one)]
    base = X.dropna().iloc[:1]
    base = X.iloc[:1] if base.empty else base
    coef = np.ravel(model.steps[-1][1].coef_)
    found = []
    for block, step, column, place in _expanded(model.steps[0][1]):
        if not coef[place].any():
            continue
        made = _effect(model, refits, X[column], base, block, is_curve=_is_curve(step, X[column]))
        if made is not None and made[1].any():
            found.append(Effect(column, *made))
    found.sort(key=lambda one: -float(np.ptp(one.effect)))
    return tuple(found[:MOST_EFFECTS])


def _has_terms(model: Any) -> bool:
    return (
        isinstance(model, Pipeline)
        and len(model.steps) == 2
        and isinstance(model.steps[0][1], ColumnTransformer)
        and np.size(model.steps[1][1].intercept_ if hasattr(model.steps[1][1], "intercept_") else 0.0) == 1
    )


def _expanded(columns: ColumnTransformer) -> Iterator[tuple[str, Any, str, slice]]:
    """For each expanded column: the name of its block, the transformer, the column's name, and the block's slice."""
    for name, step, own in columns.transformers_:
        place = columns.output_indices_[name]
        if isinstance(step, str) or isinstance(own, str | slice) or not all(isinstance(one, str) for one in own):
            continue
        if place.stop - place.start > len(own) or isinstance(_last(step), OneHotEncoder):
            for column in own:
                yield name, step, str(column), place


def _last(step: Any) -> Any:
    return step.steps[-1][1] if isinstance(step, Pipeline) else step


def _is_curve(step: Any, values: Any) -> bool:
    return pd.api.types.is_numeric_dtype(values.dtype) and not isinstance(_last(step), OneHotEncoder)


def _effect(
    model: Any, refits: list[Any], values: Any, base: Any, block: str, is_curve: bool
) -> tuple[Any, ...] | None:
    known = values.dropna()
    if is_curve:
        numbers = known.to_numpy(dtype=float)
        at = np.linspace(numbers.min(), numbers.max(), N_POINTS)
        typical, counts = np.quantile(numbers, (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES), np.empty(0, dtype=int)
        asked, deciles = np.r_[at, typical], np.quantile(numbers, np.arange(1, 10) / 10)
    else:
        common = known.value_counts().head(MOST_LEVELS)
        at = asked = common.index.to_numpy()
        counts, deciles = common.to_numpy(), np.empty(0)

    def own(fitted: Any) -> FloatArray | None:
        part = _predictor(fitted, block, str(values.name), asked, base)
        if part is None:
            return None
        return part[: len(at)] - (part[len(at) :].mean() if is_curve else part[0])

    effect = own(model)
    again = [one for one in map(own, refits) if one is not None]
    if effect is None:
        return None
    low, high = (np.min(again, axis=0), np.max(again, axis=0)) if again else (None, None)
    return at, effect, low, high, sum(bool(one.any()) for one in again), len(again), counts, deciles


def _predictor(fitted: Any, block: str, column: str, values: Any, base: Any) -> FloatArray | None:
    """The block's part of the linear predictor as the column varies; None if a refit does not know a level."""
    columns, last = fitted.steps[0][1], fitted.steps[-1][1]
    step = columns.named_transformers_[block]
    own = next(list(names) for name, _, names in columns.transformers_ if name == block)
    frame = pd.concat([base[own]] * len(values), ignore_index=True)
    frame[column] = pd.Series(values).astype(base[column].dtype)
    try:
        made = step.transform(frame)
    except ValueError:
        return None
    table = np.asarray(made.toarray() if sp.issparse(made) else made, dtype=float)
    return np.asarray(table @ np.ravel(last.coef_)[columns.output_indices_[block]])
