"""Effects as plots and tables: of the variables and pairs of a model of terms, and of columns that pipelines expand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from covey.evidence import NestedScore
from covey.report.drawing import Axis, Plot, Ticks
from covey.report.page import MOST_COLOURS, colour, shown
from covey.terms.effects import Effect
from covey.terms.parts import Axis as Values
from covey.validation import Array, FloatArray, IntArray, MatrixLike, PerRow, last_step

# The most effects on a page, levels of a category (the most common ones), and outputs with a plot of a pair each.
MOST_EFFECTS, MOST_LEVELS, MOST_OUTPUTS = 30, 20, 6
# Shades of a heat map: an odd number, so that one stands for no effect. fit.css has their colours.
N_SHADES = 11
# Points on a curve, and cells on each side of a heat map.
N_POINTS, N_SIDE = 80, 28
# Quantiles of a column that a pipeline expands, over which its curve is centred, instead of all rows.
N_QUANTILES = 200


def pipeline_effects(
    model: BaseEstimator, X: MatrixLike | None, nested: NestedScore | None, weight: PerRow = None
) -> tuple[Effect, ...]:
    """The effects of columns that a `ColumnTransformer` expands, largest first, with their spread over refits.

    There are none unless `model` is a pipeline of it and an estimator with one linear predictor, and X a DataFrame.
    """
    if not _expands_columns(model) or not isinstance(X, pd.DataFrame):
        return ()
    refits = [refit for refit in (nested.estimators if nested is not None else []) if _expands_columns(refit)]
    X = X if weight is None else X[np.asarray(weight) > 0]
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


def _expands_columns(model: BaseEstimator) -> bool:
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
    if not _expands_columns(model):
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
        axis = Values(column, "number", at, at, np.quantile(numbers, np.arange(1, 10) / 10))
    else:
        common = known.value_counts().head(MOST_LEVELS)
        at = points = common.index.to_numpy()
        counts = np.asarray(common, dtype=np.intp)
        axis = Values(column, "levels", at, at, counts=counts)

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


@dataclass(frozen=True)
class TermPart:
    """The part of a report that a model of terms adds."""

    found: str  # which variables, straight or curved, and which pairs
    n_variables: int
    n_used: int  # variables in the model
    columns: tuple[dict[str, object], ...]  # a line per column of the table
    remarks: tuple[str, ...]
    effects: tuple[Effect, ...]  # variables first, then pairs together with the effects of their variables
    n_left: int  # smaller effects that are not shown


def term_part(model: BaseEstimator, nested: NestedScore | None) -> TermPart | None:
    """Collect the terms of a fitted estimator; None if it has no terms.

    Effects on several responses are in their standard deviations, so that one scale suits all.
    """
    if not hasattr(model, "expansion_"):
        return None
    encoding = model.encoding_
    refits = [one for one in (nested.estimators if nested is not None else []) if hasattr(last_step(one), "expansion_")]
    effects = []
    for part in model.fitted_terms_.parts:
        names = [encoding.terms[root].name for root in part.roots]
        pair = len(names) == 2
        effect = model.effect(*names, main=pair, n=N_SIDE if pair else N_POINTS, refits=refits)
        effects.append(effect.divided(model.response_deviations_) if model.loss_.several else effect)
    effects.sort(key=lambda one: (len(one.axes), -one.span))
    return TermPart(
        model._variables_in_words(), len(encoding.variables), len(model.variables_),
        tuple(encoding.table().to_dict("records")), encoding.remarks,
        tuple(effects[:MOST_EFFECTS]), max(0, len(effects) - MOST_EFFECTS),
    )  # fmt: skip


def terms_view(part: TermPart | None) -> dict[str, object] | None:
    """Plots of the effects: curves on a common scale, levels as tables, pairs as curves, heat maps or tables."""
    if part is None or not part.effects:
        return None
    pairs = [_pair(f"pair-{i}", one) for i, one in enumerate(part.effects) if len(one.axes) == 2]
    return effect_view(part.effects, "term") | {"part": part, "pairs": [view for views in pairs for view in views]}


def effect_view(effects: Sequence[Effect], id: str = "effect") -> dict[str, object]:
    """The effects of single variables: plots of curves on a common scale, and tables of levels."""
    singles = [one for one in effects if len(one.axes) == 1]
    curved = [one for one in singles if not one.axes[0].has_levels]
    parts = [np.ravel(part) for one in curved for part in (one.effect, one.low, one.high) if part is not None]
    scale = Axis.around(np.concatenate([np.zeros(1), *parts]))
    return {
        "curves": [(one, _curve(f"{id}-{i}", one, scale)) for i, one in enumerate(curved)],
        "levels": [(one, _levels(one)) for one in singles if one.axes[0].has_levels],
        "n_refits": max(one.n_refits for one in effects),
    }


def _numbers(axis: Values, values: ArrayLike) -> FloatArray:
    """Values as numbers: dates in days."""
    if axis.kind in ("date", "season"):
        return np.asarray(values, dtype="datetime64[s]").astype(np.int64) / 86_400
    return np.asarray(values, dtype=float)


def _ticks(axis: Values, across: Axis) -> Ticks:
    """Labels of dates and seasons; none for numbers, which have round ones."""
    if axis.kind == "season":
        days = _numbers(axis, axis.values)
        if across.high - across.low > 2:
            months = [np.datetime64(f"2001-{month:02d}-01") for month in (1, 4, 7, 10)]
            named = zip(months, ("Jan", "Apr", "Jul", "Oct"), strict=True)
            return [(float(across.position(_numbers(axis, when))), name) for when, name in named]
        return [(float(across.position(days[0] + hour / 24)), f"{hour}:00") for hour in (0, 6, 12, 18)]
    if axis.kind == "date":
        unit = "Y" if across.high - across.low > 3 * 365 else "M" if across.high - across.low > 90 else "D"
        ends = (np.array([across.low, across.high]) * 86_400).astype("int64").astype("datetime64[s]")
        every = np.arange(ends[0].astype(f"datetime64[{unit}]") + 1, ends[1].astype(f"datetime64[{unit}]") + 1)
        every = every[:: max(1, -(-len(every) // 4))]
        return [(float(across.position(_numbers(axis, when))), str(when)) for when in every]
    return []


def _span(axis: Values) -> tuple[Axis, FloatArray]:
    """The range of a number, a date or a season, and its values as numbers."""
    x = _numbers(axis, axis.values)
    return Axis(float(x[0]), float(max(x[-1], x[0] + 1e-12))), x


def _plot(id: str, description: str, axis: Values, down: Axis) -> tuple[Plot, FloatArray]:
    """An empty plot over a number, a date or a season, and the positions of its values."""
    across, x = _span(axis)
    return Plot(id, description, across, down, n_ticks=6, n_levels=4, ticks=_ticks(axis, across)), x


def _rug(plot: Plot, axis: Values) -> None:
    """Ticks where the rows are."""
    if axis.quantiles is not None:
        at, low = _numbers(axis, axis.quantiles), plot.down.low
        plot.segments("rug", (at, low), (at, low + 0.03 * (plot.down.high - low)))


def _curve(id: str, one: Effect, scale: Axis) -> Plot:
    axis, values = one.axes[0], one.by_output(one.effect)
    (first, last), labels = values[[0, -1], 0].tolist(), axis.labels
    description = (
        f"Line plot: effect of {one.name}, from {shown(first)} at {labels[0]} to {shown(last)} at {labels[-1]}."
    )
    plot, x = _plot(id, description, axis, scale)
    plot.segments("rule", (x[0], 0.0), (x[-1], 0.0))
    if one.low is not None and one.high is not None and not one.outputs:
        plot.band(x, one.low, one.high)
    for k in range(values.shape[1]):
        plot.line(f"line {colour(k)}", (x, values[:, k]))
    _rug(plot, axis)
    return plot


def _levels(one: Effect) -> dict[str, object]:
    """Per level its name, rows, effects and their range over refits, and where these are drawn (one output only)."""
    axis, keep = one.axes[0], one.axes[0].commonest(MOST_LEVELS)
    values = one.by_output(one.effect)[keep]
    low, high = ((one.effect if band is None else band)[keep] for band in (one.low, one.high))
    every = np.concatenate([np.ravel(values), np.ravel(low), np.ravel(high), [0.0]])
    scale = Axis(float(every.min()), float(every.max()) if np.ptp(every) else float(every.min()) + 1.0)
    labels = axis.labels
    lines = []
    for place, j in enumerate(keep):
        drawn = None if one.outputs else [float(scale.position(part[place])) for part in (values[:, 0], low, high)]
        count = "" if axis.counts is None else int(axis.counts[j])
        lines.append((labels[j], count, values[place].tolist(), low[place], high[place], drawn))
    return {"zero": float(scale.position(0.0)), "lines": lines, "n_more": len(axis.values) - len(keep)}


def _pair(id: str, one: Effect) -> list[dict[str, object]]:
    """Plots or tables of a pair, one per output."""
    first, second = one.axes
    found = []
    for k, output in enumerate(one.outputs[:MOST_OUTPUTS] or [""]):
        values = one.by_output(one.effect)[..., k]
        view: dict[str, object] = {"effect": one, "output": output, "across": first.name, "up": second.name}
        if first.has_levels and second.has_levels:
            view |= {"kind": "table"} | _table(one, values)
        elif first.has_levels or second.has_levels:
            number, levels = (second, first) if first.has_levels else (first, second)
            curves = values if number is second else values.T
            view |= {"kind": "curves", "across": number.name, "up": levels.name}
            view |= {"plot": _curves(f"{id}-{k}", number, levels, curves)}
        else:
            view |= {"kind": "map"} | _map(f"{id}-{k}", one, values)
        found.append(view)
    return found


def _curves(id: str, number: Values, levels: Values, curves: FloatArray) -> Plot:
    """One curve per level, with the names of the most common ones."""
    named, labels = levels.commonest(MOST_COLOURS), levels.labels
    description = f"Line plot: effect of {number.name} for each level of {levels.name}."
    plot, x = _plot(id, description, number, Axis.around(np.append(curves, 0.0)))
    plot.segments("rule", (x[0], 0.0), (x[-1], 0.0))
    for j in np.setdiff1d(np.arange(len(curves)), named):
        plot.line("line grey", (x, curves[j]))
    for i, j in enumerate(named):
        plot.line(f"line {colour(i)}", (x, curves[j]))
    plot.name_ends([(labels[j], float(curves[j, -1]), i) for i, j in enumerate(named)])
    _rug(plot, number)
    return plot


def _shades(values: FloatArray, most: float) -> IntArray:
    """The shade of each value: from 0 for minus the largest effect to the last for plus the largest."""
    half = N_SHADES // 2
    return np.rint(np.clip(values / most, -1, 1) * half).astype(np.intp) + half


def _map(id: str, one: Effect, values: FloatArray) -> dict[str, object]:
    """A heat map: the cells of one shade are one path."""
    first, second = one.axes
    down, y = _span(second)
    description = (
        f"Heat map: effect of {first.name} and {second.name}, from {shown(float(values.min()))} to "
        f"{shown(float(values.max()))}."
    )
    plot, x = _plot(id, description, first, down)
    most = float(np.abs(values).max()) or 1.0
    shades = _shades(values, most)
    across, up = (_edges(axis) for axis in (plot.across.position(x), plot.top(y)))
    for shade in np.unique(shades):
        cells = [
            f"M{across[i]} {up[j]}H{across[i + 1]}V{up[j + 1]}H{across[i]}z"
            for i, j in zip(*np.nonzero(shades == shade), strict=True)
        ]
        plot.paths.append((f"shade s{shade}", "".join(cells), None))
    _rug(plot, first)
    if second.quantiles is not None:
        at, begin = _numbers(second, second.quantiles), plot.across.low
        plot.segments("rug", (begin, at), (begin + 0.02 * (plot.across.high - begin), at))
    left, half = _ticks(second, down), N_SHADES // 2
    levels = [(1 - place, label) for place, label in left] if left else plot.levels
    legend = [(k, shown((k - half) / half * most, 2)) for k in range(N_SHADES)]
    return {"plot": plot, "levels": levels, "legend": legend}


def _edges(places: FloatArray) -> IntArray:
    """The edges of cells around positions, in thousandths."""
    middle = (places[1:] + places[:-1]) / 2
    return np.rint(1000 * np.concatenate([places[:1], middle, places[-1:]])).astype(np.intp)


def _table(one: Effect, values: FloatArray) -> dict[str, object]:
    """Shaded cells with their numbers, and whether they are without rows."""
    first, second = one.axes
    rows, columns = first.commonest(MOST_LEVELS), second.commonest(MOST_LEVELS)
    cells = values[np.ix_(rows, columns)]
    shades = _shades(cells, float(np.abs(cells).max()) or 1.0)
    assert one.empty is not None
    empty = one.empty[np.ix_(rows, columns)]
    tall, wide = first.labels, second.labels
    lines = [
        (tall[j], list(zip(cells[i].tolist(), shades[i].tolist(), empty[i].tolist(), strict=True)))
        for i, j in enumerate(rows.tolist())
    ]
    n_more = sum(one.effect.shape[:2]) - sum(cells.shape)
    return {"heads": [wide[j] for j in columns], "lines": lines, "empty": bool(empty.any()), "n_more": n_more}
