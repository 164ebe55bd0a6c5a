"""What is unusual in new rows of a table, and how they are predicted: Python and the command line say the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from covey.groups.checks import plural
from covey.tables.complaint import listed
from covey.terms.dates import Date
from covey.terms.encoding import Encoding
from covey.terms.levels import Category
from covey.terms.numbers import Number
from covey.terms.reading import as_labels, missing_values
from covey.validation import FloatArray


class NewValuesWarning(UserWarning):
    """Rows to predict have levels, numbers or missing values that the fit did not have."""


def unusual_values(encoding: Encoding, frame: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """A sentence for each of some variables that has levels, numbers or missing values that the fit did not have."""
    found = []
    for name in names:
        variable, column = encoding.variable(name), frame[name]
        missing = missing_values(column)
        if not isinstance(variable, Date):
            values = variable.read(column)
            odd = (values < 0 if isinstance(variable, Category) else ~np.isfinite(values)) & ~missing
            held, rows = listed(list(dict.fromkeys(as_labels(column[odd])))), plural(int(odd.sum()), "row")
            if odd.any() and (isinstance(variable, Category) or variable.ordered):
                found.append(
                    f"{name} is {held} in {rows}, a level that the fit did not have: predicted as the mean of its "
                    "levels."
                )
            elif odd.any():
                found.append(f"{name} is {held} in {rows}, where the fit had numbers: predicted as missing.")
            elif isinstance(variable, Number) and (far := _far_outside(variable, np.asarray(values, dtype=float))):
                found.append(f"{name} is {far}: predicted by extrapolation.")
        if missing.any() and not variable.describe()["missing"]:
            rows = plural(int(missing.sum()), "row")
            found.append(f"{name} is missing in {rows}, and never was in the fit: predicted as its mean.")
    return found


def _far_outside(number: Number, values: FloatArray) -> str:
    """Numbers as far outside of the fit's range as that is wide, in words; empty if there are none."""
    far = np.maximum(number.low - values, values - number.high)
    n_far = int((far >= number.high - number.low).sum())
    if not n_far:
        return ""
    span = f"{number.low:.6g} to {number.high:.6g}"
    return f"{values[np.nanargmax(far)]:.6g} in {plural(n_far, 'row')}, far from {span} in the fit"
