"""The response of a table and its family: numbers, counts, classes, or several columns."""

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

# Text with more distinct values than this is probably a name or a comment, not a class.
MOST_CLASSES = 30

# Integers with at most this many distinct values may be classes.
FEW_VALUES = 10


@dataclass(frozen=True)
class Response:
    """The response in the form that an estimator expects.

    Attributes
    ----------
    targets : tuple of str
        The columns of the table.
    y : ndarray
        Numbers of shape (n_rows,) or (n_rows, n_targets), labels, or survival times made by `covey.survival`.
    family : str
        One of `FAMILIES` other than "auto".
    reason : str
        Why this family was chosen; empty if the user set it.
    hint : str
        Another family that may fit; empty if none suggests itself.
    words : str
        Description of the response, if the column names do not suffice.
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
        """The name of the response."""
        return self.words or ", ".join(self.targets)


def read_response(frame: pd.DataFrame, targets: Sequence[str], family: str, where: str, squared: str = "") -> Response:
    """Read the response, and determine its family if it is "auto".

    Parameters
    ----------
    frame : DataFrame
    targets : sequence of str
    family : str
        One of `FAMILIES`.
    where : str
        Name of the table, for messages.
    squared : str
        Name of the command or option that needs squared loss, if any.
    """
    for target in targets:
        if target not in frame.columns:
            raise TableError(f"{where} has no column {target!r} for --target; {near(target, list(frame.columns))}")
    if len(set(targets)) < len(targets):
        raise TableError(f"--target names {listed(sorted({t for t in targets if targets.count(t) > 1}))} twice.")
    if len(targets) > 1:
        if squared:
            raise TableError(f"{squared} supports a single response: give one --target.")
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
    reason = f"{len(targets)} responses are fitted with squared loss" if family == "auto" else ""
    return Response(tuple(targets), y, "gaussian", reason)


def _find_family(column: pd.Series[Any], squared: str) -> tuple[str, str, str]:
    """The family of a column, the reason, and a hint at another; classes only if it can hardly be anything else."""
    name = str(column.name)
    if not _is_number(column):
        if has_decimal_commas(column):
            raise TableError(
                f"The target {name!r} holds numbers with a decimal comma; read the table with --decimal ,."
            )
        if squared:
            raise TableError(f"{squared} needs numbers, but the target {name!r} holds text.")
        n = column.nunique()
        if n > MOST_CLASSES:
            raise TableError(
                f"The target {name!r} holds text with {n} different values, too many for classes: is it the right "
                "column? --family multinomial treats them as classes anyway."
            )
        kind = "booleans" if pd.api.types.is_bool_dtype(column) else "text"
        return _classes(n), f"{name} holds {kind} with {n} different values", ""
    known = to_numbers(column).dropna()
    values, n = known.to_numpy(dtype=float), known.nunique()
    if n == 2 and known.value_counts().min() > 1 and np.isfinite(values).all() and not squared:
        return "binomial", f"{name} has only two values; --family gaussian treats them as numbers", ""
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
    """Whether a column is numeric, except perhaps for a few misspelt entries."""
    if pd.api.types.is_bool_dtype(column):
        return False
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column):
        return True
    known = column.dropna()
    return len(known) > 0 and float(to_numbers(known).notna().mean()) > 0.5


def _as_fitted(column: pd.Series[Any], family: str) -> str:
    """The requested family; for classes, the one that suits their number."""
    if family == "binomial" and column.nunique() > 2 and not _is_number(column):
        n = column.nunique()
        raise TableError(f"--family binomial: the target {column.name!r} has {n} classes; give --family multinomial.")
    return _classes(column.nunique()) if family == "multinomial" else family


def _values(column: pd.Series[Any], family: str) -> Any:
    """The column's values in the form that the family needs."""
    name = str(column.name)
    if family == "multinomial" or (family == "binomial" and (column.nunique() <= 2 or not _is_number(column))):
        labels = read_labels(column, "--target")
        if len(set(labels.tolist())) < 2:
            raise TableError(f"The target {name!r} is {labels[0]} in every row: there is nothing to predict.")
        classes, counts = np.unique(labels, return_counts=True)
        if counts.min() < 2:
            rare = listed([str(label) for label in classes[counts < 2]])
            raise TableError(
                f"The target {name!r} is {rare} in a single row, which cannot be used for both fitting and testing: "
                "combine rare classes, or drop such rows."
            )
        return labels
    y = _varying(number_column(column, "--target"), name)
    must, bad = _domain(y, family)
    if bad.any():
        row = int(np.argmax(bad))
        raise TableError(
            f"--family {family}: the target {name!r} must {must}, but is {y[row]:g} in row {row + 1} "
            f"({int(bad.sum())} such rows); --family gaussian accepts any numbers."
        )
    return y


def _domain(y: Any, family: str) -> tuple[str, Any]:
    """The requirement that a family makes of the response, and the rows that violate it."""
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
    """Class labels: integers, booleans or text."""
    _refuse_missing(column.isna().to_numpy(), column, option)
    if pd.api.types.is_bool_dtype(column):
        return column.to_numpy(dtype=bool)
    if pd.api.types.is_numeric_dtype(column):
        values = number_column(column, option)
        if (values == np.rint(values)).all() and np.abs(values).max() < 2**53:
            return values.astype(np.int64)
    return np.array([str(value) for value in column.tolist()], dtype=str)


def read_offset(frame: pd.DataFrame, given: str) -> tuple[str, Any]:
    """The offset column's name and its values, in logarithms if given as ``log:COLUMN``."""
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
