"""The response of a table and its family: numbers, counts, classes, survival times, or several columns."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from covey.losses import Cox, Loss, MultiQuantile, Ordinal, Quantile, Tweedie, get_loss
from covey.losses.ordinal import known_order
from covey.settings import TableSettings
from covey.tables.columns import labels, number_column, to_numbers
from covey.tables.complaint import Column, TableError, listed, near, refuse_rows, shown
from covey.tables.marks import are_codes
from covey.tables.unreadable import disguise_of
from covey.validation import Array, FloatArray
from covey.workflow.survival import read_survival_times, survival_facts, survival_title

CLASSES = ("binomial", "multinomial", "ordinal")

# Options of a single family, which they imply.
OF_FAMILY = {"quantile": "quantile", "power": "tweedie", "order": "ordinal"}

# Text with more distinct values than this is probably a name or a comment, not a class.
MOST_CLASSES = 30

# Integers with at most this many distinct values may be classes.
FEW_VALUES = 10

# What a family requires of numbers, and the rows that violate it.
DOMAINS = {
    "poisson": ("not be negative", lambda y: y < 0),
    "negative-binomial": ("not be negative", lambda y: y < 0),
    "gamma": ("be above zero", lambda y: y <= 0),
    "tweedie": ("not be negative", lambda y: y < 0),
    "binomial": ("have two classes, or shares between 0 and 1", lambda y: (y < 0) | (y > 1)),
}


@dataclass(frozen=True)
class Response:
    """The response in the form that an estimator expects."""

    targets: tuple[str, ...]  # the columns of the table
    y: Array  # numbers, of shape (n_rows,) or (n_rows, n_targets), labels, or survival times made by `covey.survival`
    family: str  # as in the settings, other than "auto"
    reason: str  # why this family was chosen; empty if the user set it
    hint: str  # another family that may fit; empty if none suggests itself
    title: str  # its name, for sentences
    loss: Loss
    survival: Mapping[str, object] | None = None  # the facts about survival times that predictions need

    @property
    def has_classes(self) -> bool:
        """Whether `y` holds labels."""
        return self.family in CLASSES and self.y.dtype.kind != "f"


def read_response(
    frame: pd.DataFrame, settings: TableSettings, where: str = "The table", squared: str = ""
) -> Response:
    """Read the response, and determine its family if it is "auto".

    Messages call the table `where`; `squared` names the command that needs squared loss, if any.
    """
    family = _given_family(settings)
    if settings.time is not None:
        y = read_survival_times(frame, settings, where)
        targets, title, facts = (
            (settings.time, str(settings.event)),
            survival_title(settings),
            survival_facts(settings, y),
        )
        return Response(targets, y, "cox", "", "", title, Cox(settings.ties or "efron"), facts)
    _check_targets(frame, settings.target, where)
    columns = [frame[name] for name in settings.target]
    reason = hint = ""
    if len(columns) == 1:
        if family == "auto":
            family, reason, hint = _find_family(columns[0], squared)
        y = _values(columns[0], family)
        family = _classes(columns[0].nunique()) if family == "multinomial" else family
    else:
        if squared:
            raise TableError(f"{squared} supports a single response: give one --target.")
        if family not in ("auto", "gaussian"):
            raise TableError(f"--family {family} is for one response: give one --target, or --family gaussian.")
        reason = f"{len(columns)} responses are fitted with squared loss" if family == "auto" else ""
        y, family = np.column_stack([number_column(column, "--target") for column in columns]), "gaussian"
    if not settings.offset and y.dtype.kind == "f":
        for name, values in zip(settings.target, np.atleast_2d(y.T), strict=True):
            if np.ptp(values) == 0:
                raise TableError(f"The target {name!r} is {values[0]:g} in every row: there is nothing to predict.")
    title = ", ".join(settings.target)
    return Response(settings.target, y, family, reason, hint, title, _loss(family, settings, columns[0], y))


def _check_targets(frame: pd.DataFrame, targets: tuple[str, ...], where: str) -> None:
    for target in targets:
        if target not in frame.columns:
            hint = " If these are several, give the separator with --sep." if frame.shape[1] == 1 else ""
            if any(name.startswith("Unnamed: ") for name in frame.columns):
                hint = " Some columns have no name: if the first line is not the header, remove it."
            elif to_numbers(frame.columns.to_series()).notna().any():
                hint = " Some columns have numbers as names: if the first line is not the header, add one."
            raise TableError(
                f"{where} has no column {target!r} for --target; {near(target, list(frame.columns))}{hint}"
            )
    if len(set(targets)) < len(targets):
        raise TableError(f"--target names {listed(sorted({t for t in targets if targets.count(t) > 1}))} twice.")


def _given_family(settings: TableSettings) -> str:
    """The family, which an option may imply."""
    family: str = settings.family
    for name, wanted in OF_FAMILY.items():
        if getattr(settings, name):
            if family not in ("auto", wanted):
                raise TableError(f"--{name} is for --family {wanted}, but the family is {family}: leave it out.")
            family = wanted
    return family


def _loss(family: str, settings: TableSettings, column: Column, y: Array) -> Loss:
    """The loss of a family, with the parameters that options give."""
    words = ",".join(settings.quantile)
    try:
        if family == "tweedie":
            return Tweedie(settings.power)
        if family == "quantile" and words:
            levels = sorted({float(word) for word in words.split(",")})
            return Quantile(levels[0]) if len(levels) == 1 else MultiQuantile(levels)
    except ValueError as reason:
        given = f"--power {settings.power}" if family == "tweedie" else f"--quantile {words}"
        raise TableError(f"{given}: {reason}") from None
    return Ordinal(_order(settings, column, y)) if family == "ordinal" else get_loss(family)


def _order(settings: TableSettings, column: Column, y: Array) -> list[object] | None:
    """The labels from the lowest to the highest, as --order or the table's own categories say; None for numbers."""
    present = {str(label): label for label in np.unique(y).tolist()}
    named = [word.strip() for text in settings.order for word in text.split(",")]
    if not named and _has_order(column):
        named = [str(label) for label in column.cat.categories if str(label) in present]
    if not named:
        if y.dtype.kind in "iub":
            return None
        raise TableError(
            f"--family ordinal: the target {str(column.name)!r} holds text, whose order is not known: give --order "
            f"with {listed(list(present))} from the lowest to the highest."
        )
    unknown = [label for label in present if label not in named]
    if unknown:
        raise TableError(f"--order lacks {listed(unknown)}, which the target {str(column.name)!r} holds.")
    if len(set(named)) < len(named):
        raise TableError("--order names a class twice.")
    return [present[label] for label in named if label in present]


def _has_order(column: Column) -> bool:
    return isinstance(column.dtype, pd.CategoricalDtype) and bool(column.dtype.ordered)


def _find_family(column: Column, squared: str) -> tuple[str, str, str]:
    """The family of a column, the reason, and a hint at another; classes only if it can hardly be anything else."""
    name = str(column.name)
    if not _is_number(column):
        if found := disguise_of(column):
            first = shown(column.dropna().iloc[0])
            raise TableError(f"The target {name!r} holds {first}, {found[0]}; {found[1]}.")
        if squared:
            raise TableError(f"{squared} needs numbers, but the target {name!r} holds text.")
        n = column.nunique()
        if n > MOST_CLASSES:
            raise TableError(
                f"The target {name!r} holds text with {n} different values, too many for classes: is it the right "
                "column? --family multinomial treats them as classes anyway."
            )
        kind = "booleans" if pd.api.types.is_bool_dtype(column) else "text"
        return _classes(n), f"{name} holds {kind} with {n} different values", _hint_at_order(column)
    known = to_numbers(column).dropna()
    values, n = known.to_numpy(dtype=float), known.nunique()
    finite = bool(np.isfinite(values).all())
    if n == 2 and known.value_counts().min() > 1 and finite and not squared:
        return "binomial", f"{name} has only two values; --family gaussian treats them as numbers", ""
    hint = ""
    if n > 2 and finite and (values == np.rint(values)).all():
        if values.min() == 0:
            hint = f"{name} looks like counts: --family poisson fits their rates"
        elif n <= FEW_VALUES:
            hint = f"{name} has {n} different whole numbers: if they are classes, give --family multinomial"
    return "gaussian", f"{name} holds numbers", hint


def _hint_at_order(column: Column) -> str:
    """A hint if text has an order: that of a category, or of words such as low, medium and high."""
    found = column.dropna().unique().tolist()
    if _has_order(column):
        named = "--family ordinal" if len(found) > 2 else ""
    else:
        order = known_order(found)
        named = f"--order {shlex.quote(','.join(map(str, order)))}" if order else ""
    return f"{column.name} seems to have an order, which these classes ignore: {named} uses it" if named else ""


def _classes(n: int) -> str:
    return "binomial" if n <= 2 else "multinomial"


def _is_number(column: Column) -> bool:
    """Whether a column is numeric, except perhaps for a few misspelt entries; codes such as 00731 are not."""
    if pd.api.types.is_bool_dtype(column):
        return False
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column):
        return True
    known = column.dropna()
    if are_codes(known.astype(str).unique()):
        return False
    return len(known) > 0 and float(to_numbers(known).notna().mean()) > 0.5


def _values(column: Column, family: str) -> Array:
    """The column's values in the form that the family needs."""
    name, n = str(column.name), column.nunique()
    shares = family == "binomial" and n > 2  # not of two classes
    if shares and not _is_number(column):
        raise TableError(f"--family binomial: the target {name!r} has {n} classes; give --family multinomial.")
    if family not in CLASSES or shares:
        y = number_column(column, "--target")
        if family in DOMAINS:
            must, is_bad = DOMAINS[family]
            rule = f"--family {family}: the target {name!r} must {must}"
            refuse_rows(is_bad(y), y, rule, "--family gaussian accepts any numbers")
        return y
    y = labels(column, "--target")
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise TableError(f"The target {name!r} is {y[0]} in every row: there is nothing to predict.")
    if counts.min() < 2:
        rare = listed([str(label) for label in classes[counts < 2]])
        raise TableError(
            f"The target {name!r} is {rare} in a single row, which cannot be used for both fitting and testing: "
            "combine rare classes, or drop such rows."
        )
    return y


def read_offset(frame: pd.DataFrame, given: str) -> tuple[str, FloatArray]:
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
