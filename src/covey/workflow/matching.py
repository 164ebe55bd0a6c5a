"""Match a table to a saved model: the columns it needs, with the types it was fitted on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from covey.persistence import ModelFileError, load
from covey.tables import TableError, missing_values, numeric_frame
from covey.tables.columns import complete_rows
from covey.tables.complaint import listed, near
from covey.terms import Encoding
from covey.validation import FloatArray, MatrixLike
from covey.workflow.response import read_offset


class SavedModel:
    """A model from a folder written by ``covey fit``, or from a file.

    Prediction `intervals`, if they are wanted, need the columns of the folds' models too.
    """

    def __init__(self, file: Path, intervals: bool = False) -> None:
        self.file, self.intervals = file, intervals
        self.fitted = load(file / "model.skops" if file.is_dir() else file)
        steps = getattr(self.fitted, "steps", [("model", self.fitted)])
        self.estimator: BaseEstimator = steps[-1][1]
        # what the fit saved about its table; nothing for a model saved by `covey.save`
        self.facts: Mapping[str, Any] = getattr(self.fitted, "table_", {})
        self._steps = self.fitted[:-1] if len(steps) > 1 else None
        expansion = getattr(self.estimator, "expansion_", None)
        self._encoding: Encoding | None = None if expansion is None else expansion.encoding

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
        """The columns of the table that the model uses; all of them for a pipeline that the user built."""
        coef = getattr(self.estimator, "coef_", None)
        if coef is None or self._steps is not None:
            return self.names
        used = (np.atleast_2d(coef) != 0).any(axis=0)
        if self.intervals and self.estimator.held_out_ is not None:
            used[self.estimator.held_out_.columns] = True
        if self._encoding is not None:
            return self.estimator.expansion_.variables_in(used)
        return list(np.array(self.names)[used]) if len(self.names) == len(used) else self.names

    @property
    def strata(self) -> Sequence[str]:
        """The columns of strata of a model of survival times."""
        return (self.facts.get("survival") or {}).get("strata", ())

    @property
    def offset_names(self) -> tuple[str, ...]:
        """The column of the offset, as it was given and without the prefix of logarithms."""
        given = self.facts.get("offset") or ""
        return (given, given.removeprefix("log:")) if given else ()

    def complete_rows(self, frame: pd.DataFrame, target: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
        """Leave out rows that lack a value without which there is no prediction."""
        used = {*target, *self.strata, *self.offset_names}
        used |= set(self.needed) if self._steps is None and self._encoding is None else set()
        complete, notices = complete_rows(frame, [name for name in frame.columns if name in used])
        if complete.empty:
            raise TableError("--drop-missing leaves no row: every row lacks a value that the model needs.")
        return complete, notices

    def offset(self, frame: pd.DataFrame) -> dict[str, FloatArray]:
        """The offset of the fit as a keyword argument; empty if the fit had none."""
        if not self.offset_names:
            return {}
        given, plain = self.offset_names
        if given not in frame.columns and plain not in frame.columns:
            none = "ones" if plain != given else "zeros"
            raise TableError(
                f"The table lacks {plain!r}, the offset of the fit: add that column, all {none} for unit exposure."
            )
        return {"offset": read_offset(frame, given)[1]}

    def transform(self, frame: pd.DataFrame) -> tuple[MatrixLike, list[str]]:
        """The variables or columns that the estimator expects, and notices for the user."""
        absent = [name for name in self.needed if name not in frame.columns]
        if absent:
            raise TableError(
                f"The table lacks {listed(absent)}, which the model needs; {near(absent[0], list(frame.columns))}"
            )
        if self._steps is not None:
            try:
                return self._steps.transform(frame[self.names]), []
            except (ValueError, MemoryError):  # about the table
                raise
            except Exception as reason:
                raise self.unusable(reason) from reason
        if self._encoding is not None:
            return self._variables(frame, self._encoding.variables)
        return self._numbers(frame[self.needed]), []

    def unusable(self, reason: Exception) -> ModelFileError:
        """The error for a model whose file has been tampered with."""
        return ModelFileError(f"{self.file} cannot be used: its steps do not match each other ({reason}).")

    def _numbers(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The columns of a matrix; those with zero coefficients may be missing from the table, and are zero."""
        numeric = numeric_frame(frame, "the model was fitted on numbers there")
        if missing := missing_values(numeric):
            shown = listed({name: str(count) for name, count in missing.items()})
            raise TableError(
                f"Values are missing in {shown}; leave out such rows with --drop-missing, or fit the model without "
                "--groups: then missing values are allowed."
            )
        return numeric.reindex(columns=self.names, fill_value=0.0)

    def _variables(self, frame: pd.DataFrame, variables: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
        """The variables of the fit; those without an effect may be missing. `predict` says what is unusual in them."""
        start = (self.facts.get("survival") or {}).get("start")
        known = {*self.names, *self.facts.get("targets", ()), *self.strata, *self.offset_names, start}
        extra = [name for name in frame.columns if name not in known]
        notices = [f"The model was fitted without {listed(extra)}: ignored."] if extra else []
        others = {name: None for name in variables if name not in self.needed}
        return frame.assign(**others)[list(variables)], notices
