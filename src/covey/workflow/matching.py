"""Match a table to a saved model: the columns it needs, with the types it was fitted on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.preprocessing import OneHotEncoder

from covey.tables import TableError, missing_values, numeric_frame
from covey.tables.complaint import listed
from covey.workflow.terms import column_sources

__all__ = ["as_fitted", "columns_needed", "last_step", "one_hot_encoders", "without_missing"]


def last_step(fitted: Any) -> Any:
    """The estimator of a pipeline, or the model itself."""
    return fitted.steps[-1][1] if hasattr(fitted, "steps") else fitted


def columns_needed(fitted: Any) -> list[str]:
    """The columns of the table with nonzero coefficients."""
    names = [str(name) for name in fitted.feature_names_in_]
    coef = getattr(last_step(fitted), "coef_", None)
    if coef is None:
        return names
    first = fitted.steps[0][1] if hasattr(fitted, "steps") and len(fitted.steps) == 2 else None
    sources = column_sources(first) if hasattr(first, "transformers_") else names
    used = (np.atleast_2d(coef) != 0).any(axis=0)
    if len(sources) != len(used) or (first is not None and not hasattr(first, "transformers_")):
        return names  # a pipeline that the user built
    kept = {source for source, own in zip(sources, used, strict=True) if own}
    return [name for name in names if name in kept]


def without_missing(fitted: Any, frame: pd.DataFrame, target: list[str]) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Leave out rows that lack a value the model needs and does not impute."""
    about = getattr(fitted, "table_", {})
    survival = about.get("survival") or {}
    offset = about.get("offset") or ""
    filled = _fills(fitted)
    used = {*target, *survival.get("strata", ()), offset, offset.removeprefix("log:")}
    used |= set() if filled else set(columns_needed(fitted))
    kept = frame.dropna(subset=[name for name in frame.columns if name in used]).reset_index(drop=True)
    if kept.empty:
        raise TableError("--drop-missing leaves no row: every row lacks a value that the model needs.")
    gone = len(frame) - len(kept)
    told = f"--drop-missing left out {gone} of {len(frame)} rows with missing values; {len(kept)} are left."
    return kept, (told,) if gone else ()


def as_fitted(frame: pd.DataFrame, fitted: Any) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """All columns of the fit with the types they had there, and notices for the user.

    Columns that cannot be converted are refused by name. Columns missing from the frame have zero coefficients and are
    filled with an arbitrary value.
    """
    encoders = one_hot_encoders(fitted)
    hot_names = [name for name in encoders if name in frame.columns]
    plain = numeric_frame(frame.drop(columns=hot_names), "the model was fitted on numbers there")
    missing = missing_values(plain)
    if missing and not _fills(fitted):
        shown = ", ".join(f"{name!r} ({count})" for name, count in list(missing.items())[:6])
        raise TableError(
            f"Values are missing in {shown}; leave out such rows with --drop-missing, or fit the model with --impute "
            "median."
        )
    made: dict[str, Any] = {str(name): column for name, column in plain.items()}
    notices: list[str] = []
    for name in hot_names:
        made[name], unknown = _categories(frame[name], encoders[name])
        notices += [unknown] if unknown else []
    for name in map(str, fitted.feature_names_in_):
        if name not in made:
            made[name] = encoders[name].categories_[0][0] if name in encoders else 0.0
    return pd.DataFrame(made, index=frame.index)[list(fitted.feature_names_in_)], tuple(notices)


def _categories(column: pd.Series[Any], encoder: OneHotEncoder) -> tuple[pd.Series[Any], str]:
    """A one-hot column restricted to known categories, and the notice if unknown ones are treated as none of these."""
    known = encoder.categories_[0]
    values = column.astype(object)
    if any(isinstance(value, str) for value in known):
        values = values.map(lambda value: value if pd.isna(value) else str(value)).astype(object)
    has_missing = any(pd.isna(value) for value in known)
    odd = [value for value in values.unique() if not (has_missing if pd.isna(value) else value in known)]
    if not odd:
        return values, ""
    if encoder.handle_unknown == "error":
        raise TableError(
            f"Column {column.name!r} holds {listed(odd)}, which the model has not seen: leave out those rows, or "
            "treat such values as none of the known ones with --handle-unknown ignore."
        )
    rows = int(values.isin(odd).sum())
    return (
        values,
        f"{column.name} holds {listed(odd)} in {rows} rows, which the model has not seen: treated as none of the known "
        "ones.",
    )


def one_hot_encoders(fitted: Any) -> dict[str, OneHotEncoder]:
    """The encoder of each column of categories."""
    return {columns[0]: step for step, columns in _blocks(fitted) if isinstance(step, OneHotEncoder)}


def _fills(fitted: Any) -> bool:
    return any(hasattr(step, "statistics_") or hasattr(step, "steps") for step, _ in _blocks(fitted))


def _blocks(fitted: Any) -> list[tuple[Any, list[str]]]:
    first = fitted.steps[0][1] if hasattr(fitted, "steps") else None
    return [(step, list(columns)) for _, step, columns in getattr(first, "transformers_", ()) if len(columns)]
