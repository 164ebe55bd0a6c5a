"""What is unusual in new rows of a table, and how they are predicted: Python and the command line say the same."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covey.groups.checks import plural
from covey.tables.complaint import Column, listed
from covey.terms.dates import Date, weekdays
from covey.terms.encoding import Encoding, Variable
from covey.terms.expansion import Expansion
from covey.terms.levels import Category
from covey.terms.numbers import Number
from covey.terms.reading import as_labels, missing_values
from covey.validation import Array, FloatArray

# What is said of values that the fit did not have.
NEW_LEVEL = "a level that the fit did not have: predicted as the mean of its levels."
NEW_COMBINATION = "a combination that the fit did not have: predicted without an effect of its own."
WORD = "where the fit had numbers: predicted as missing."


class NewValuesWarning(UserWarning):
    """Rows to predict have levels, combinations of levels, numbers or missing values that the fit did not have."""


def unusual_values(encoding: Encoding, frame: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """A sentence for each of some variables that has levels, numbers or missing values that the fit did not have."""
    found = []
    for name in names:
        variable, column = encoding.variable(name), frame[name]
        missing = missing_values(column)
        if not isinstance(variable, Date):
            values = variable.read(column)
            odd = (values < 0 if isinstance(variable, Category) else ~np.isfinite(values)) & ~missing
            if odd.any():
                level = isinstance(variable, Category) or variable.ordered
                found.append(_said(name, as_labels(column[odd]), NEW_LEVEL if level else WORD))
            elif isinstance(variable, Number):
                found += _far_outside(variable, np.asarray(values, dtype=float), "{:.6g}".format)
        if missing.any() and not variable.describe()["missing"]:
            rows = plural(int(missing.sum()), "row")
            found.append(f"{name} is missing in {rows}, and never was in the fit: predicted as its mean.")
    return found


def unusual_in_terms(
    expansion: Expansion, frame: pd.DataFrame, columns: FloatArray, used: NDArray[np.bool_]
) -> list[str]:
    """A sentence for each trend with dates far away, each week with new days, and each pair with new combinations.

    `columns` are the encoded columns of the rows, and `used` says which expanded columns the model has.
    """
    found = []
    for term in expansion.terms:
        if not used[term.columns].any():
            continue
        sides = [(expansion.encoding.variable(name), frame[name]) for name in term.variables]
        variable, column = sides[0]
        if term.kind == "linear" and isinstance(variable, Date):
            found += _far_outside(variable.trend, variable.read(column), _day)
        if term.kind == "levels" and isinstance(variable, Date):
            odd = ~columns[:, term.columns].any(axis=1) & ~missing_values(column)
            if odd.any():
                found.append(_said(term.name, weekdays(variable.read(column))[odd], NEW_LEVEL))
        if term.kind == "pair" and (odd := expansion.is_new_combination(columns, term.parents)).any():
            both = zip(*(_levels(one, values[odd]) for one, values in sides), strict=True)
            found.append(_said(term.name, [f"{one}, {other}" for one, other in both], NEW_COMBINATION))
    return found


def _said(name: str, values: Collection[str], what: str) -> str:
    """A sentence on the values of some rows."""
    return f"{name} is {listed(list(dict.fromkeys(values)))} in {plural(len(values), 'row')}, {what}"


def _levels(variable: Variable, column: Column) -> Array:
    """The level of each row as text; of a date, its day of the week."""
    return weekdays(variable.read(column)) if isinstance(variable, Date) else as_labels(column)


def _day(number: float) -> str:
    return str(np.datetime64(int(number // 1), "D"))


def _far_outside(number: Number, values: FloatArray, text: Callable[[float], str]) -> list[str]:
    """A sentence on values as far outside of the fit's range as that is wide; none if there are no such values."""
    far = np.maximum(number.low - values, values - number.high)
    n_far = int((far >= number.high - number.low).sum())
    if not n_far:
        return []
    span = f"{text(number.low)} to {text(number.high)}"
    farthest = f"{text(values[np.nanargmax(far)])} in {plural(n_far, 'row')}"
    return [f"{number.name} is {farthest}, far from {span} in the fit: predicted by extrapolation."]
