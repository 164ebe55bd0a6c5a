"""What is unusual in new rows of a table, and how they are predicted: Python and the command line say the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from covey.groups.checks import plural
from covey.tables.complaint import Column, listed
from covey.terms.encoding import Encoding, Variable
from covey.terms.levels import Category
from covey.terms.numbers import Number
from covey.terms.reading import as_labels, missing_values

__all__ = ["NewValuesWarning", "unusual_values"]


class NewValuesWarning(UserWarning):
    """Rows to predict have levels, numbers or missing values that the fit did not have."""


def unusual_values(encoding: Encoding, frame: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """A sentence for each of some variables that has levels, numbers or missing values that the fit did not have."""
    found = []
    for name in names:
        variable, column = encoding.variable(name), frame[name]
        n_missing = int(missing_values(column).sum())
        if isinstance(variable, Category):
            texts = as_labels(column)
            new = variable.positions(texts) < 0
            levels = list(dict.fromkeys(t for t, is_new in zip(texts, new, strict=True) if is_new and t is not None))
            n_missing = 0 if variable.missing is not None else n_missing
            if levels:
                rows = plural(int(new.sum()) - n_missing, "row")
                found.append(
                    f"{name} is {listed(levels)} in {rows}, a level that the fit did not have: predicted as the mean "
                    "of its levels."
                )
        elif variable.describe()["missing"]:
            n_missing = 0
        if far := _far_outside(variable, column):
            found.append(f"{name} is {far}: predicted by extrapolation.")
        if n_missing:
            found.append(
                f"{name} is missing in {plural(n_missing, 'row')}, and never was in the fit: predicted as its mean."
            )
    return found


def _far_outside(variable: Variable, column: Column) -> str:
    """Numbers further outside of the fit's range than that is wide, in words; empty if there are none."""
    if not isinstance(variable, Number) or variable.labels is not None:
        return ""
    low, high = variable.low, variable.high
    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    far = np.maximum(low - values, values - high)
    n_far = int((far > high - low).sum())
    if not n_far:
        return ""
    return f"{values[np.nanargmax(far)]:.6g} in {plural(n_far, 'row')}, far from {low:.6g} to {high:.6g} in the fit"
