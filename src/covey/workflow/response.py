"""The response of a table: numbers, counts, classes or several columns, and which family that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from covey.tables import TableError, has_decimal_commas, numbers
from covey.tables.columns import to_numbers
from covey.tables.complaint import listed, near

__all__ = ["CLASSES", "FAMILIES", "Response", "number_column", "read_labels", "read_offset", "read_response"]

FAMILIES = ("auto", "gaussian", "huber", "poisson", "gamma", "binomial", "multinomial", "cox")
CLASSES = ("binomial", "multinomial")

# Text of more different values than this is rather a name or a remark than a class.
MOST_CLASSES = 30

# Whole numbers of at most so many different values may be classes.
FEW_VALUES = 10


@dataclass(frozen=True)
class Response:
    """What is to be predicted, as an estimator takes it.

    Attributes
    ----------
    targets : tuple of str
        The columns of the table.
    y : ndarray
        Numbers of shape (n_rows,) or (n_rows, n_targets), labels, or survival times as of `covey.survival`.
    family : str
        One of `FAMILIES`, "auto" excepted.
    reason : str
        Why it was taken; empty where it was asked for.
    hint : str
        What else it may be; empty where nothing suggests itself.
    words : str
        What is predicted, where that is more than the columns.
    """

    targets: tuple[str, ...]
    y: Any
    family: str
    reason: str = ""
    hint: str = ""
    words: str = ""

    @property
    def has_classes(self) -> bool:
        """Whether `y` holds labels."""
        return self.family in CLASSES and (self.y.dtype.kind != "f")

    @property
    def title(self) -> str:
        """What is predicted, in words."""
        return self.words or ", ".join(self.targets)


def read_response(frame: pd.DataFrame, targets: Sequence[str], family: str, where: str, squared: str = "") -> Response:
    """Read the response, and find its family where that is to be found.

    Parameters
    ----------
    frame : DataFrame
    targets : sequence of str
    family : str
        One of `FAMILIES`.
    where : str
        What the table is called.
    squared : str
        What can only be done with squared loss, if anything is to be done that can.
    """
    for target in targets:
        if target not in frame.columns:
            raise TableError(f"{where} has no column {target!r} for --target; {near(target, list(frame.columns))}")
    if len(set(targets)) < len(targets):
        raise TableError(f"--target names {listed(sorted({t for t in targets if targets.count(t) > 1}))} twice.")
    if len(targets) > 1:
        if squared:
            raise TableError(f"{squared} has one response: give one --target.")
        return _several(frame, targets, family)
    column = frame[targets[0]]
    if family == "auto":
        family, reason, hint = _find_family(column, squared)
        return Response((targets[0],), _values(column, family), family, reason, hint)
    return Response((targets[0],), _values(column, family), _as_fitted(column, family))


def _several(frame: pd.DataFrame, targets: Sequence[str], family: str) -> Response:
    if family not in ("auto", "gaussian"):
        raise TableError(f"--family {family} is for one response: give one --target, or --family gaussian.")
    y = np.column_stack([_varying(number_column(frame[name], "--target"), name) for name in targets])
    reason = f"{len(targets)} responses are fitted by squared loss" if family == "auto" else ""
    return Response(tuple(targets), y, "gaussian", reason)


def _find_family(column: pd.Series[Any], squared: str) -> tuple[str, str, str]:
    """The family of a column, why, and what else it may be: classes where it can hardly be anything else."""
    name = str(column.name)
    if not _is_number(column):
        if has_decimal_commas(column):
            raise TableError(
                f"The target {name!r} holds numbers with a decimal comma; read the table with --decimal ,."
            )
        if squared:
            raise TableError(f"{squared} needs numbers, and the target {name!r} holds text.")
        n = column.nunique()
        if n > MOST_CLASSES:
            raise TableError(
                f"The target {name!r} holds text of {n} different values, too many for classes: is it the right "
                "column? --family multinomial takes them as classes all the same."
            )
        kind = "truth values" if pd.api.types.is_bool_dtype(column) else "text"
        return _classes(n), f"{name} holds {kind} of {n} different values", ""
    known = to_numbers(column).dropna()
    values, n = known.to_numpy(dtype=float), known.nunique()
    if n == 2 and known.value_counts().min() > 1 and np.isfinite(values).all() and not squared:
        return "binomial", f"{name} has two values only; --family gaussian takes them as numbers", ""
    hint = ""
    if n > 2 and np.isfinite(values).all() and (values == np.rint(values)).all():
        if values.min() == 0:
            hint = f"{name} looks like counts: --family poisson fits their rates"
        elif n <= FEW_VALUES:
            hint = f"{name} has {n} different whole numbers: if they are classes, give --family multinomial"
    return "gaussian", f"{name} holds numbers", hint


def _classes(n: int) -> str:
    return "binomial" if n <= 2 else "multinomial"


def _is_number(column: pd.Series[Any]) -> bool:
    """Whether a column is one of numbers, a few of which may be misspelt."""
    if pd.api.types.is_bool_dtype(column):
        return False
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column):
        return True
    known = column.dropna()
    return len(known) > 0 and float(to_numbers(known).notna().mean()) > 0.5


def _as_fitted(column: pd.Series[Any], family: str) -> str:
    """The family that was asked for; of classes the one that their number makes it."""
    if family == "binomial" and column.nunique() > 2 and not _is_number(column):
        n = column.nunique()
        raise TableError(f"--family binomial: the target {column.name!r} has {n} classes; give --family multinomial.")
    return _classes(column.nunique()) if family == "multinomial" else family


def _values(column: pd.Series[Any], family: str) -> Any:
    """The column as the family takes it."""
    name = str(column.name)
    if family == "multinomial" or (family == "binomial" and (column.nunique() <= 2 or not _is_number(column))):
        labels = read_labels(column, "--target")
        if len(set(labels.tolist())) < 2:
            raise TableError(f"The target {name!r} is {labels[0]} in every row: there is nothing to predict.")
        classes, counts = np.unique(labels, return_counts=True)
        if counts.min() < 2:
            rare = listed([str(label) for label in classes[counts < 2]])
            raise TableError(
                f"The target {name!r} is {rare} in a single row, which cannot be both fitted and judged: put rare "
                "classes together, or drop such rows."
            )
        return labels
    y = _varying(number_column(column, "--target"), name)
    must, bad = _domain(y, family)
    if bad.any():
        row = int(np.argmax(bad))
        raise TableError(
            f"--family {family}: the target {name!r} must {must}, and is {y[row]:g} in row {row + 1} "
            f"({int(bad.sum())} such rows); --family gaussian takes any numbers."
        )
    return y


def _domain(y: Any, family: str) -> tuple[str, Any]:
    """What a response of a family must be, and the rows in which it is not."""
    if family == "poisson":
        return "not be negative", y < 0
    if family == "gamma":
        return "be above zero", y <= 0
    if family == "binomial":
        return "have two classes, or shares between 0 and 1", (y < 0) | (y > 1)
    return "", np.zeros(len(y), dtype=bool)


def _varying(y: Any, name: str) -> Any:
    if np.ptp(y) == 0:
        raise TableError(f"The target {name!r} is {y[0]:g} in every row: there is nothing to predict.")
    return y


def read_labels(column: pd.Series[Any], option: str) -> Any:
    """Labels of classes: whole numbers, truth values, or text."""
    _refuse_missing(column.isna().to_numpy(), column, option)
    if pd.api.types.is_bool_dtype(column):
        return column.to_numpy(dtype=bool)
    if pd.api.types.is_numeric_dtype(column):
        values = number_column(column, option)
        if (values == np.rint(values)).all() and np.abs(values).max() < 2**53:
            return values.astype(np.int64)
    return np.array([str(value) for value in column.tolist()], dtype=str)


def read_offset(frame: pd.DataFrame, given: str) -> tuple[str, Any]:
    """The column of an offset and its values: those of ``COLUMN``, or the logarithms of those of ``log:COLUMN``."""
    name = given if given in frame.columns else given.removeprefix("log:")
    if name not in frame.columns:
        raise TableError(f"--offset: there is no column {name!r}; {near(name, list(frame.columns))}")
    values = number_column(frame[name], "--offset")
    if name == given:
        return name, values
    if (values <= 0).any():
        row = int(np.argmax(values <= 0))
        raise TableError(f"--offset {given}: {name!r} is {values[row]:g} in row {row + 1}, which has no logarithm.")
    return name, np.log(values)


def number_column(column: pd.Series[Any], option: str) -> Any:
    """A column with a finite number in every row."""
    values = numbers(column, f"{option} needs a number in every row").to_numpy(dtype=float)
    _refuse_missing(np.isnan(values), column, option)
    if not np.isfinite(values).all():
        raise TableError(f"{option} {column.name!r} is infinite in row {int(np.argmin(np.isfinite(values))) + 1}.")
    return values


def _refuse_missing(missing: Any, column: pd.Series[Any], option: str) -> None:
    n = int(missing.sum())
    if n:
        rows = f"{n} row{'' if n == 1 else 's'} of {len(missing)}"
        raise TableError(f"{option} {column.name!r} is missing in {rows}; leave them out with --drop-missing.")
