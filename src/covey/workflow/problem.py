"""Turn a table into a regression problem: the response, the columns of the fit, and their groups."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.compose import ColumnTransformer

from covey.groups import Groups
from covey.settings import TableSettings
from covey.tables import (
    TableError,
    apart,
    days_since,
    earliest,
    find_columns,
    find_files,
    is_identifier,
    missing_values,
    numeric_frame,
    read_groups,
    read_tables,
)
from covey.tables.columns import complete_rows, number_column
from covey.tables.complaint import listed, near
from covey.validation import FloatArray, as_sample_weight
from covey.workflow.response import Response, read_offset, read_response
from covey.workflow.survival import check_survival, survival_columns
from covey.workflow.terms import column_sources, compact, make_transformer, read_terms

# Called with the name of the current stage, for a progress bar.
Show = Callable[[str], None]


def show_nothing(stage: str) -> None:
    """Show no progress."""


@dataclass(frozen=True)
class Input:
    """An input file with its hash."""

    path: str
    bytes: int
    sha256: str

    @classmethod
    def of(cls, file: Path) -> Input:
        """Read the file again to compute its hash."""
        with open(file, "rb") as stream:
            digest = hashlib.file_digest(stream, "sha256")
        return cls(str(file), file.stat().st_size, digest.hexdigest())


@dataclass(frozen=True)
class Problem:
    """A table as a regression problem."""

    transformer: ColumnTransformer  # fitted; maps the table's columns to those of the fit
    X: pd.DataFrame  # the columns of the fit
    response: Response
    weight: FloatArray | None
    offset: FloatArray | None
    groups: Groups
    sources: tuple[str, ...]  # the table column behind each column of the fit
    inputs: tuple[Input, ...]
    raw: pd.DataFrame  # the columns of the table before expansion
    terms: Mapping[str, int]  # the expanded columns: the number of spline columns, or 0 for one-hot
    settings: TableSettings  # with lists of columns split
    dates: Mapping[str, str]  # the date columns, and the day from which each is counted
    notices: tuple[str, ...] = ()  # changes to the table that the user should know about

    @property
    def y(self) -> Any:
        """The response in the form that the estimator expects."""
        return self.response.y

    def find_groups(self, wanted: tuple[str, ...]) -> list[Any]:
        """The groups with these names, or with table columns of these names, for ``--always``."""
        groups = self.groups
        names = {str(name): name for name in groups.names}  # with --groups SIZE names are numbers
        found = []
        for given in apart(wanted, {*names, *self.sources, *self.X.columns}):
            if given in names:
                found.append(names[given])
                continue
            columns = [j for j, source in enumerate(self.sources) if source == given]
            columns = columns or [j for j, name in enumerate(self.X.columns) if name == given]
            if not columns:
                hint = near(given, list(dict.fromkeys([*names, *self.sources])))
                hint = hint.replace("the columns are", "there are")
                raise TableError(f"--always: there is no group or column {given!r}; {hint}")
            group = int(groups.labels[columns[0]])
            if groups.sizes[group] > len(columns):
                raise TableError(
                    f"--always: {given!r} is one of several columns of the group {groups.names[group]!r}: name the "
                    "group, or give the column a group of its own."
                )
            found.append(groups.names[group])
        return list(dict.fromkeys(found))


def pose(settings: TableSettings, show: Show = show_nothing, *, squared: str = "") -> Problem:
    """Read, check, expand and group; `squared` names the command that needs squared loss, if any."""
    check_survival(settings)
    show("reading")
    files = find_files(settings.data)
    frame = read_tables(files, sep=settings.sep, decimal=settings.decimal)
    inputs = tuple(Input.of(file) for file in files)
    columns = list(frame.columns)
    settings = replace(
        settings, target=tuple(apart(settings.target, columns)), strata=tuple(apart(settings.strata, columns))
    )
    dropped = {name for given in settings.drop for name in find_columns(given, columns, "--drop")}
    frame, notices = _without_missing(frame, settings, dropped) if settings.drop_missing else (frame, ())
    response = read_response(frame, settings, listed(map(str, files)), squared)
    weight, (offset_column, offset) = _weight(frame, settings.weights), _offset(frame, settings.offset, response)
    unused = {*dropped, *_response_columns(settings), settings.weights, offset_column}
    predictors = frame[[name for name in columns if name not in unused]]
    if predictors.shape[1] == 0:
        raise TableError(f"No column is left to predict {response.title!r} from.")
    _check_names(predictors.columns)
    show("expanding")
    terms = read_terms(settings.spline, settings.onehot, list(predictors.columns))
    predictors, dates = _dates_as_days(predictors, settings.date)
    raw = _typed(predictors, terms)
    if settings.handle_unknown != "error" and 0 not in terms.values():
        raise TableError("--handle-unknown is for columns of categories: name them with --onehot.")
    _check_missing(raw, settings.impute, [name for name, size in terms.items() if size == 0])
    by_column = read_groups(settings.groups, list(raw.columns), ungrouped=list(terms))
    transformer = make_transformer(list(raw.columns), terms, settings.impute, settings.handle_unknown)
    try:
        X = transformer.fit_transform(raw)
    except ValueError as reason:
        raise TableError(f"The columns cannot be expanded: {str(reason).splitlines()[0]}") from None
    compact(transformer)
    sources = column_sources(transformer)
    group_of = dict(zip(raw.columns, by_column.labels, strict=True))
    groups = Groups.from_labels([by_column.names[group_of[name]] for name in sources], columns=list(X.columns))
    return Problem(
        transformer, X, response, weight, offset, groups, tuple(sources), inputs, raw, terms, settings, dates, notices
    )


def _response_columns(settings: TableSettings) -> set[str]:
    return {*settings.target, *(name for names in survival_columns(settings).values() for name in names)}


def _weight(frame: pd.DataFrame, name: str | None) -> FloatArray | None:
    if name is None:
        return None
    if name not in frame.columns:
        raise TableError(f"--weights: there is no column {name!r}; {near(name, list(frame.columns))}")
    return as_sample_weight(number_column(frame[name], "--weights"), len(frame), name="--weights") * len(frame)


def _offset(frame: pd.DataFrame, given: str | None, response: Response) -> tuple[str | None, FloatArray | None]:
    if given is None:
        return None, None
    if response.family == "multinomial":
        raise TableError(
            "--offset: with more than two classes each needs its own offset, which one column cannot give."
        )
    return read_offset(frame, given)


def _without_missing(
    frame: pd.DataFrame, settings: TableSettings, dropped: Collection[str]
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Leave out rows with missing values, except for values that are imputed."""
    used = [name for name in frame.columns if name not in dropped]
    if settings.impute is not None:
        offset = settings.offset or ""
        needed = {*_response_columns(settings), settings.weights, offset, offset.removeprefix("log:")}
        used = [name for name in used if name in needed]
    complete, notices = complete_rows(frame, used)
    if complete.empty:
        counts = missing_values(frame[used])
        most = max(counts, key=lambda name: counts[name])
        raise TableError(
            f"--drop-missing leaves no row: every row lacks a value, {counts[most]} of them in {most!r}. Leave out "
            "such columns with --drop, or fill them with --impute median."
        )
    return complete, notices


def _dates_as_days(frame: pd.DataFrame, wanted: Collection[str]) -> tuple[pd.DataFrame, dict[str, str]]:
    """Convert date columns to days since the earliest date, and return that date for each."""
    names = [name for given in wanted for name in find_columns(given, list(frame.columns), "--date")]
    dates = {name: earliest(frame[name]) for name in names}
    return frame.assign(**{name: days_since(frame[name], day) for name, day in dates.items()}), dates


def _check_names(columns: Any) -> None:
    nameless = [name for name in columns if not name.strip() or name.startswith("Unnamed: ")]
    if nameless:
        raise TableError(
            f"The table has a column without a name, perhaps row numbers: name it, or --drop {nameless[0]!r}."
        )


def _typed(frame: pd.DataFrame, terms: Mapping[str, int]) -> pd.DataFrame:
    """Convert numeric columns to floats, and leave one-hot columns unchanged."""
    hot = [name for name in frame.columns if terms.get(name) == 0]
    for name in hot:
        if is_identifier(frame[name]):
            number = pd.api.types.is_numeric_dtype(frame[name])
            remedy = "use it as a number, without --onehot" if number else f"leave it out with --drop {name}"
            raise TableError(
                f"--onehot {name}: nearly every row has a different value ({frame[name].nunique()} in {len(frame)} "
                "rows), like an identifier or free text. Categories seen only once say nothing about other rows; "
                f"{remedy}."
            )
    numeric = numeric_frame(frame.drop(columns=hot))
    return numeric if not hot else pd.concat([numeric, frame[hot].astype(object)], axis=1)[list(frame.columns)]


def _check_missing(frame: pd.DataFrame, impute: str | None, onehot: Collection[str]) -> None:
    counts = missing_values(frame)
    if counts and impute is None:
        shown = ", ".join(f"{name!r} ({count})" for name, count in list(counts.items())[:6])
        more = f" and {len(counts) - 6} more columns" if len(counts) > 6 else ""
        raise TableError(
            f"Values are missing in {shown}{more}; fill them with --impute median, leave out the rows with "
            "--drop-missing, or --drop the columns."
        )
    empty = [name for name, count in counts.items() if count == len(frame) and name not in onehot]
    if empty:
        raise TableError(f"All values are missing in {listed(empty)}; leave out such columns with --drop.")
