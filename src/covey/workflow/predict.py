"""Predict from a table with a saved model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import r2_score
from sklearn.preprocessing import OneHotEncoder

from covey.persistence import ModelFileError, load
from covey.tables import TableError, missing_values, numbers, numeric_frame, read_tables
from covey.tables.complaint import listed, near
from covey.validation import FloatArray
from covey.workflow.settings import Told, silent

__all__ = ["Prediction", "load_fit", "predict_table"]


@dataclass(frozen=True)
class Prediction:
    """Predictions, and how good they are where the truth is known.

    Attributes
    ----------
    table : DataFrame
        The column ``prediction``, after the columns that were to be kept.
    r2, rmse : float or None
    """

    table: pd.DataFrame
    r2: float | None = None
    rmse: float | None = None


def load_fit(model: Path) -> Any:
    """The model of a folder that ``covey fit`` wrote, or of a file."""
    return load(model / "model.skops" if model.is_dir() else model)


def predict_table(
    model: Path, data: Sequence[str], *, target: str | None = None, keep: Sequence[str] = (), told: Told = silent
) -> Prediction:
    """Read a table and predict a value for each of its rows."""
    told("loading")
    fitted = load_fit(model)
    names = getattr(fitted, "feature_names_in_", None)
    if names is None:
        raise ModelFileError(f"{model} was fitted without column names, so that no table can be matched to it.")
    told("reading")
    frame = read_tables(data)
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise TableError(f"The table lacks {listed(absent)}, which the model needs.")
    for name in (*keep, *([target] if target is not None else ())):
        if name not in frame.columns:
            raise TableError(f"The table has no column {name!r}; {near(name, list(frame.columns))}")
    told("predicting")
    predicted = np.asarray(fitted.predict(_as_fitted(frame[list(names)], fitted)), dtype=float)
    table = frame[list(keep)].assign(prediction=predicted)
    if target is None:
        return Prediction(table)
    truth = numbers(frame[target], "--target needs numbers").to_numpy(dtype=float)
    return Prediction(table, *_quality(truth, predicted))


def _quality(truth: FloatArray, predicted: FloatArray) -> tuple[float, float]:
    known = np.isfinite(truth)
    if known.sum() < 2:
        raise TableError("--target has fewer than two known values: there is nothing to score.")
    error = truth[known] - predicted[known]
    return float(r2_score(truth[known], predicted[known])), float(np.sqrt(np.mean(error**2)))


def _as_fitted(frame: pd.DataFrame, fitted: Any) -> pd.DataFrame:
    """The table with the types that the model was fitted on; what cannot be so is refused by name."""
    encoders = _encoders(fitted)
    plain = numeric_frame(frame.drop(columns=list(encoders)), "the model was fitted on numbers there")
    missing = missing_values(plain)
    if missing and not _fills(fitted):
        shown = ", ".join(f"{name!r} ({count})" for name, count in list(missing.items())[:6])
        raise TableError(f"Values are missing in {shown}; fill them first, or fit the model with --impute median.")
    hot = {name: _known(frame[name], encoder) for name, encoder in encoders.items()}
    return pd.concat([plain, pd.DataFrame(hot, index=frame.index)], axis=1)[list(frame.columns)]


def _known(column: pd.Series[Any], encoder: OneHotEncoder) -> pd.Series[Any]:
    """A one-hot column with values that the model knows."""
    known = encoder.categories_[0]
    values = column.astype(object)
    if any(isinstance(value, str) for value in known):
        values = values.map(lambda value: value if pd.isna(value) else str(value)).astype(object)
    has_missing = any(pd.isna(value) for value in known)
    odd = [value for value in values.unique() if not (has_missing if pd.isna(value) else value in known)]
    if odd:
        raise TableError(f"Column {column.name!r} holds {listed(odd)}, which the model has not seen: drop those rows.")
    return values


def _encoders(fitted: Any) -> dict[str, OneHotEncoder]:
    blocks = _blocks(fitted)
    return {columns[0]: step for step, columns in blocks if isinstance(step, OneHotEncoder)}


def _fills(fitted: Any) -> bool:
    return any(hasattr(step, "statistics_") or hasattr(step, "steps") for step, _ in _blocks(fitted))


def _blocks(fitted: Any) -> list[tuple[Any, list[str]]]:
    first = fitted.steps[0][1] if hasattr(fitted, "steps") else None
    return [(step, list(columns)) for _, step, columns in getattr(first, "transformers_", ()) if len(columns)]
