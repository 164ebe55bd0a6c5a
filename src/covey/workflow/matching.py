"""Match a table to a saved model: the columns it needs, with the types it was fitted on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.preprocessing import OneHotEncoder

from covey.persistence import ModelFileError, load
from covey.tables import TableError, days_since, missing_values, numeric_frame
from covey.tables.columns import complete_rows
from covey.tables.complaint import Column, listed, near
from covey.validation import FloatArray
from covey.workflow.response import read_offset
from covey.workflow.terms import column_sources


class SavedModel:
    """A model from a folder written by ``covey fit``, or from a file.

    Attributes
    ----------
    fitted : estimator
        The complete model, usually a pipeline.
    estimator : GroupSparseEstimator
        Its last step.
    facts : mapping
        What the fit saved about its table; empty for a model saved by `covey.save`.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.fitted = load(file / "model.skops" if file.is_dir() else file)
        steps = getattr(self.fitted, "steps", [("model", self.fitted)])
        self.estimator: Any = steps[-1][1]
        self.facts: Mapping[str, Any] = getattr(self.fitted, "table_", {})
        self._first = steps[0][1] if len(steps) > 1 else None
        blocks = getattr(self._first, "transformers_", ())
        self._blocks = [(step, list(columns)) for _, step, columns in blocks if len(columns)]

    @cached_property
    def names(self) -> list[str]:
        """The columns of the fit's table."""
        names = getattr(self.fitted, "feature_names_in_", None)
        if names is None:
            raise ModelFileError("The model was fitted without column names, so no table can be matched to it.")
        if len(set(names)) < len(names):
            raise ModelFileError("The model has several columns of the same name: its file has been tampered with.")
        return [str(name) for name in names]

    @cached_property
    def needed(self) -> list[str]:
        """The columns of the table with nonzero coefficients."""
        expands = hasattr(self._first, "transformers_") and len(self.fitted.steps) == 2
        coef = getattr(self.estimator, "coef_", None)
        if coef is None or not (expands or self._first is None):
            return self.names  # a pipeline that the user built
        sources = column_sources(self._first) if expands else self.names
        used = (np.atleast_2d(coef) != 0).any(axis=0)
        if len(sources) != len(used):
            return self.names
        kept = {source for source, is_used in zip(sources, used, strict=True) if is_used}
        return [name for name in self.names if name in kept]

    @cached_property
    def encoders(self) -> dict[str, OneHotEncoder]:
        """The encoder of each column of categories."""
        return {columns[0]: step for step, columns in self._blocks if isinstance(step, OneHotEncoder)}

    @property
    def fills(self) -> bool:
        """Whether the model imputes missing numbers."""
        return any(hasattr(step, "statistics_") or hasattr(step, "steps") for step, _ in self._blocks)

    def complete_rows(self, frame: pd.DataFrame, target: Sequence[str]) -> tuple[pd.DataFrame, tuple[str, ...]]:
        """Leave out rows that lack a value the model needs and does not impute."""
        offset, survival = self.facts.get("offset") or "", self.facts.get("survival") or {}
        used = {*target, *survival.get("strata", ()), offset, offset.removeprefix("log:")}
        used |= set() if self.fills else set(self.needed)
        complete, notices = complete_rows(frame, [name for name in frame.columns if name in used])
        if complete.empty:
            raise TableError("--drop-missing leaves no row: every row lacks a value that the model needs.")
        return complete, notices

    def offset(self, frame: pd.DataFrame) -> dict[str, FloatArray]:
        """The offset of the fit as a keyword argument; empty if the fit had none."""
        given = self.facts.get("offset")
        if not given:
            return {}
        name = given if given in frame.columns else given.removeprefix("log:")
        if name not in frame.columns:
            none = "ones" if name != given else "zeros"
            raise TableError(
                f"The table lacks {name!r}, the offset of the fit: add that column, all {none} for unit exposure."
            )
        return {"offset": read_offset(frame, given)[1]}

    def transform(self, frame: pd.DataFrame) -> tuple[Any, tuple[str, ...]]:
        """The columns that the estimator expects, and notices for the user."""
        X, notices = self._match(frame)
        if self._first is None:
            return X, notices
        try:
            return self.fitted[:-1].transform(X), notices
        except MemoryError:
            raise
        except Exception as reason:  # the table has been checked
            raise self.unusable(reason) from reason

    def unusable(self, reason: Exception) -> ModelFileError:
        """The error for a model whose file has been tampered with."""
        return ModelFileError(f"{self.file} cannot be used: its steps do not match each other ({reason}).")

    def _match(self, frame: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
        """All columns of the fit with the types they had there, and notices for the user.

        Columns that cannot be converted are refused by name. Columns with zero coefficients may be missing from the
        frame; they are filled with an arbitrary value.
        """
        absent = [name for name in self.needed if name not in frame.columns]
        if absent:
            raise TableError(
                f"The table lacks {listed(absent)}, which the model needs; {near(absent[0], list(frame.columns))}"
            )
        dates = {name: day for name, day in self.facts.get("dates", {}).items() if name in self.needed}
        frame = frame[self.needed].assign(**{name: days_since(frame[name], day) for name, day in dates.items()})
        categories = [name for name in self.encoders if name in self.needed]
        numeric = numeric_frame(frame.drop(columns=categories), "the model was fitted on numbers there")
        missing = missing_values(numeric)
        if missing and not self.fills:
            shown = ", ".join(f"{name!r} ({count})" for name, count in list(missing.items())[:6])
            raise TableError(
                f"Values are missing in {shown}; leave out such rows with --drop-missing, or fit the model with "
                "--impute median."
            )
        columns: dict[str, Any] = {str(name): column for name, column in numeric.items()}
        notices: list[str] = []
        for name in categories:
            columns[name], unknown = _categories(frame[name], self.encoders[name])
            notices += [unknown] if unknown else []
        for name in self.names:
            if name not in columns:
                columns[name] = self.encoders[name].categories_[0][0] if name in self.encoders else 0.0
        return pd.DataFrame(columns, index=frame.index)[self.names], tuple(notices)


def _categories(column: Column, encoder: OneHotEncoder) -> tuple[Column, str]:
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
    n = int(values.isin(odd).sum())
    notice = f"{column.name} holds {listed(odd)} in {n} rows, which the model has not seen"
    return values, f"{notice}: treated as none of the known ones."
