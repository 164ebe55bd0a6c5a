"""Read a table and pose it: the target, the columns of the fit, and which of them belong together."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.compose import ColumnTransformer

from covey.groups import Groups
from covey.tables import TableError, find_columns, find_files, missing_values, numeric_frame, read_groups
from covey.tables import read_tables as read
from covey.tables.complaint import listed, near
from covey.validation import FloatArray, as_sample_weight
from covey.workflow.response import Response, number_column, read_offset, read_response
from covey.workflow.settings import TableSettings, Told, silent
from covey.workflow.survival import SurvivalColumns, check_survival, read_survival_times
from covey.workflow.terms import column_sources, compact, make_transformer, read_terms

__all__ = ["Input", "Problem", "pose"]

NO_NUMBER = "make its values a group with --onehot, or leave it out with --drop"


@dataclass(frozen=True)
class Input:
    """A file that was read, and how to know it again."""

    path: str
    bytes: int
    sha256: str

    @classmethod
    def of(cls, file: Path) -> Input:
        """Read the file once more for its hash."""
        with open(file, "rb") as stream:
            digest = hashlib.file_digest(stream, "sha256")
        return cls(str(file), file.stat().st_size, digest.hexdigest())


@dataclass(frozen=True)
class Problem:
    """A table, posed.

    Attributes
    ----------
    transformer : ColumnTransformer
        Fitted: from the table's columns to those of the fit.
    X : DataFrame
        The columns of the fit.
    response : Response
    weight, offset : ndarray or None
    offset_column : str or None
    groups : Groups
    sources : tuple of str
        The column of the table that each column of the fit came from.
    inputs : tuple of Input
    raw : DataFrame
        The columns of the table, before they are expanded.
    terms : dict of str to int
        The columns that are expanded: how many columns a spline has, 0 for one-hot.
    """

    transformer: ColumnTransformer
    X: pd.DataFrame
    response: Response
    weight: FloatArray | None
    offset: FloatArray | None
    offset_column: str | None
    groups: Groups
    sources: tuple[str, ...]
    inputs: tuple[Input, ...]
    raw: pd.DataFrame
    terms: dict[str, int]

    @property
    def y(self) -> Any:
        """The response as the estimator takes it."""
        return self.response.y


def pose(settings: TableSettings, told: Told = silent, *, squared: str = "") -> Problem:
    """Read, check, expand and group.

    Parameters
    ----------
    settings : TableSettings
    told : callable
    squared : str
        What can only be done with squared loss, if anything is to be done that can.
    """
    check_survival(settings)
    told("reading")
    files = find_files(settings.data)
    frame = read(files)
    inputs = tuple(Input.of(file) for file in files)
    columns = list(frame.columns)
    survival = SurvivalColumns.of(settings)
    if survival is not None:
        response = read_survival_times(frame, survival, listed(map(str, files)))
    else:
        response = read_response(frame, settings.targets, settings.family, listed(map(str, files)), squared)
    weight = offset = offset_column = None
    if settings.weights is not None:
        if settings.weights not in columns:
            raise TableError(f"--weights: there is no column {settings.weights!r}; {near(settings.weights, columns)}")
        weight = number_column(frame[settings.weights], "--weights")
        weight = as_sample_weight(weight, len(frame), name="--weights") * len(frame)
    if settings.offset is not None:
        if response.family == "multinomial":
            raise TableError("--offset: several classes need an offset each, which one column cannot give.")
        offset_column, offset = read_offset(frame, settings.offset)
    unused = {*settings.targets, *(survival.every if survival else ()), settings.weights, offset_column}
    for name in settings.drop:
        unused.update(find_columns(name, columns, "--drop"))
    predictors = frame[[name for name in columns if name not in unused]]
    if predictors.shape[1] == 0:
        raise TableError(f"No column is left to predict {response.title!r} from.")
    _check_names(predictors.columns)
    told("expanding")
    terms = read_terms(settings.spline, settings.onehot, list(predictors.columns))
    raw = _typed(predictors, terms)
    _check_missing(raw, settings.impute, [name for name, size in terms.items() if size == 0])
    by_column = read_groups(settings.groups, list(raw.columns), own=list(terms))
    transformer = make_transformer(list(raw.columns), terms, settings.impute)
    try:
        X = transformer.fit_transform(raw)
    except ValueError as reason:
        raise TableError(f"The columns cannot be expanded: {str(reason).splitlines()[0]}") from None
    compact(transformer)
    sources = column_sources(transformer)
    group_of = dict(zip(raw.columns, by_column.labels, strict=True))
    labels = [by_column.names[group_of[source]] for source in sources]
    groups = Groups.from_labels(labels, columns=list(X.columns))
    return Problem(transformer, X, response, weight, offset, offset_column, groups, tuple(sources), inputs, raw, terms)


def _check_names(columns: Any) -> None:
    nameless = [name for name in columns if not name.strip() or name.startswith("Unnamed: ")]
    if nameless:
        raise TableError(
            f"The table has a column without a name, perhaps row numbers: name it, or --drop {nameless[0]!r}."
        )


def _typed(frame: pd.DataFrame, terms: dict[str, int]) -> pd.DataFrame:
    """Numbers as floats; columns that become one-hot as they are."""
    hot = [name for name in frame.columns if terms.get(name) == 0]
    made = numeric_frame(frame.drop(columns=hot), NO_NUMBER)
    return made if not hot else pd.concat([made, frame[hot].astype(object)], axis=1)[list(frame.columns)]


def _check_missing(frame: pd.DataFrame, impute: str | None, onehot: Collection[str]) -> None:
    counts = missing_values(frame)
    if counts and impute is None:
        shown = ", ".join(f"{name!r} ({count})" for name, count in list(counts.items())[:6])
        more = f" and {len(counts) - 6} more columns" if len(counts) > 6 else ""
        raise TableError(f"Values are missing in {shown}{more}; fill them with --impute median, or --drop the columns.")
    empty = [name for name, count in counts.items() if count == len(frame) and name not in onehot]
    if empty:
        raise TableError(f"All values are missing in {listed(empty)}; leave out such columns with --drop.")
