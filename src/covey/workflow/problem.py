"""Turn a table into a regression problem: the response, and the variables or the groups of columns that predict it."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from covey.evidence.reading import variable_groups
from covey.groups import Groups
from covey.progress import enter
from covey.settings import VARIABLES, PredictSettings, TableSettings
from covey.tables.columns import (
    apart,
    complete_rows,
    find_columns,
    missing_values,
    number_column,
    numeric_frame,
    refuse_missing,
)
from covey.tables.complaint import TableError, listed, near, refuse_rows
from covey.tables.grouping import read_groups
from covey.tables.reading import find_files, read_table
from covey.tables.text import pipe_content
from covey.terms import Encoding, Terms
from covey.validation import Array, FloatArray
from covey.workflow.response import Response, read_offset, read_response
from covey.workflow.survival import check_survival, survival_columns
from covey.workflow.variables import read_terms


@dataclass(frozen=True)
class Problem:
    """A table as a regression problem: of variables, which become terms, or with groups of columns."""

    X: pd.DataFrame  # the variables or columns that predict
    response: Response
    weight: FloatArray | None
    offset: FloatArray | None
    terms: Terms | None  # how variables become terms; None with --groups
    given_groups: Groups | None  # None without --groups
    inputs: list[dict[str, object]]  # the path, size in bytes and hash of each file
    settings: TableSettings  # with lists of columns split
    notices: tuple[str, ...] = ()  # changes to the table that the user should know about

    @property
    def y(self) -> Array:
        """The response in the form that the estimator expects."""
        return self.response.y

    @property
    def n_rows(self) -> int:
        """The number of rows that count: those of weight zero take no part."""
        return len(self.y) if self.weight is None else int(np.count_nonzero(self.weight))

    @property
    def n_events(self) -> int | None:
        """The number of events among these rows; None if the response has no survival times."""
        if self.response.survival is None:
            return None
        return int(np.count_nonzero(self.y["event"] if self.weight is None else self.y["event"] * self.weight))

    @cached_property
    def columns(self) -> pd.DataFrame:
        """The columns of numbers: those of the table with --groups, otherwise the encoded ones, without pairs."""
        if self.terms is None:
            return self.X
        return pd.DataFrame(self.encoding.transform(self.X), columns=list(self.encoding.column_names))

    @cached_property
    def encoding(self) -> Encoding:
        """How the variables are encoded; only without --groups."""
        assert self.terms is not None
        return self.terms.fit(self.X, self.weight)

    @cached_property
    def groups(self) -> Groups:
        """The groups of `columns`: those given with --groups, or one per variable."""
        return variable_groups(self.encoding) if self.given_groups is None else self.given_groups

    def find_groups(self, wanted: tuple[str, ...]) -> list[Hashable]:
        """The groups of `columns` with these names, or with a column of these names, for ``--always``."""
        names = {str(name): name for name in self.groups.names}  # with --groups SIZE names are numbers
        known = dict.fromkeys([*names, *self.X.columns])
        found: list[Hashable] = []
        for given in apart(wanted, known):
            if given not in known:
                what = "variable" if self.given_groups is None else "group or column"
                hint = near(given, list(known)).replace("the columns are", "there are")
                raise TableError(f"--always: there is no {what} {given!r}; {hint}")
            if self.given_groups is None and given not in names:
                raise TableError(f"--always: the variable {given!r} is left out: {self.encoding.dropped[given]}.")
            found.append(names.get(given, given))  # a column stands for its group
        return list(dict.fromkeys(found))

    def find_terms(self, wanted: tuple[str, ...]) -> list[Hashable]:
        """The names of groups, or of the first terms of variables: a number's line, but not its curve."""
        found = self.find_groups(wanted)
        if self.given_groups is not None:
            return found
        return [self.encoding.terms[self.encoding.terms_of(str(name))[0]].name for name in found]


def pose(settings: TableSettings, squared: str = "") -> Problem:
    """Read and check a table, and say what its columns are; `squared` names the command that needs squared loss."""
    check_survival(settings)
    for one in settings.table().values():
        if settings.groups and one.panel == VARIABLES and getattr(settings, one.name):
            raise TableError(f"{one.flag} is for tables of variables: it has no effect with --groups.")
    enter("reading")
    files = find_files(settings.data)
    frame, notices = read_files(files, settings)
    inputs = [_hashed(file) for file in files]
    columns = list(frame.columns)
    settings = replace(
        settings, target=tuple(apart(settings.target, columns)), strata=tuple(apart(settings.strata, columns))
    )
    used = dict.fromkeys(settings.target, "--target") | dict(survival_columns(settings))
    dropped = {name: "--drop" for given in settings.drop for name in find_columns(given, columns, "--drop")}
    if settings.drop_missing:
        frame, said = _without_missing(frame, settings, dropped, used)
        notices += said
    if len(frame) == 1:
        raise TableError("The table has 1 row; a fit needs at least 2.")
    response = read_response(frame, settings, listed(map(str, files)), squared)
    weight = offset = terms = groups = None
    if settings.weights is not None:
        weight, used[settings.weights] = _weight(frame, settings.weights), "--weights"
    if settings.offset is not None:
        if response.family == "multinomial":
            raise TableError(
                "--offset: with more than two classes each needs its own offset, which one column cannot give."
            )
        name, offset = read_offset(frame, settings.offset)
        used[name] = "--offset"
    used = dropped | used
    X = frame[[name for name in columns if name not in used]]
    if X.shape[1] == 0:
        raise TableError(f"No column is left to predict {response.title!r} from.")
    if settings.groups:
        X = _matrix(X)
        groups = read_groups(settings.groups, list(X.columns))
    else:
        terms = read_terms(settings, X, elsewhere=used)
    return Problem(X, response, weight, offset, terms, groups, inputs, settings, tuple(notices))


def read_files(
    sources: Sequence[str | Path], settings: TableSettings | PredictSettings
) -> tuple[pd.DataFrame, list[str]]:
    """A table, read as the options say, and remarks on how it was read."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        frame = read_table(
            sources, sep=settings.sep, decimal=settings.decimal, thousands=settings.thousands,
            na_values=settings.missing,
        )  # fmt: skip
    return frame, [str(one.message) for one in caught if one.category is UserWarning]


def _hashed(file: Path) -> dict[str, object]:
    """The path of an input file, with its size and hash, for which it is read again."""
    content = pipe_content(file)
    if content is not None:
        return {"path": str(file), "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    with open(file, "rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
    return {"path": str(file), "bytes": file.stat().st_size, "sha256": digest.hexdigest()}


def _weight(frame: pd.DataFrame, name: str) -> FloatArray:
    if name not in frame.columns:
        raise TableError(f"--weights: there is no column {name!r}; {near(name, list(frame.columns))}")
    weight = number_column(frame[name], "--weights")
    refuse_rows(weight < 0, weight, f"--weights {name!r} must not be negative", "correct them, or drop such rows")
    if not weight.any():
        raise TableError(f"--weights {name!r} is zero in every row.")
    return weight


def _matrix(X: pd.DataFrame) -> pd.DataFrame:
    """The columns of a matrix as numbers, none of which is missing."""
    nameless = [name for name in X.columns if not name.strip() or name.startswith("Unnamed: ")]
    if nameless:
        raise TableError(
            f"The table has a column without a name, perhaps row numbers: name it, or --drop {nameless[0]!r}."
        )
    numbers = numeric_frame(X)
    refuse_missing(numbers)
    return numbers


def _without_missing(
    frame: pd.DataFrame, settings: TableSettings, dropped: Collection[str], response: Collection[str]
) -> tuple[pd.DataFrame, list[str]]:
    """Leave out rows with missing values; those of variables are a level or flagged, so that such rows stay."""
    used = [name for name in frame.columns if name not in dropped]
    if not settings.groups:
        offset = settings.offset or ""
        needed = {*response, settings.weights, offset, offset.removeprefix("log:")}
        used = [name for name in used if name in needed]
    complete, notices = complete_rows(frame, used)
    if complete.empty:
        counts = missing_values(frame[used])
        most = max(counts, key=lambda name: counts[name])
        remedy = "Leave out such columns with --drop, or leave out --groups: then missing values are allowed."
        raise TableError(
            f"--drop-missing leaves no row: every row lacks a value, {counts[most]} of them in {most!r}. "
            + (remedy if settings.groups else "Is it the right column?")
        )
    return complete, notices
