"""Models written as formulas, parsed by formulaic: every term is a group."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pandas as pd
from numpy.typing import ArrayLike

from covey.groups import Groups
from covey.losses import survival
from covey.optional import optional
from covey.tables.complaint import near
from covey.validation import Array, Stored, pandas_frame

if TYPE_CHECKING:
    from formulaic import ModelSpec

# All columns except the response: a point that is part of no name and no number.
DOT = re.compile(r"(?<![\w.`)])\.(?![\w.(`])")
SURVIVAL = re.compile(r"survival\(\s*`?([^,`]+?)`?\s*,\s*`?([^,`]+?)`?\s*\)")


def read_formula(
    formula: str, data: Stored, response: Callable[[str, pd.DataFrame], ArrayLike]
) -> tuple[pd.DataFrame, ArrayLike, Groups, ModelSpec, bool]:
    """Return the columns, the response, a group per term, the specification, and whether there is an intercept.

    `response` reads the left-hand side.
    """
    with optional("A formula"):
        from formulaic import Formula
    if not isinstance(formula, str) or formula.count("~") != 1:
        raise ValueError(
            f"formula must be text with a response and terms, such as 'y ~ bs(age) + C(site)': {formula!r}."
        )
    left, right = (side.strip() for side in formula.split("~"))
    frame = pandas_frame(data, "data")
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(f"data must be a DataFrame, because a formula names columns, not a {type(data).__name__}.")
    if not left:
        raise ValueError(f"The formula {formula!r} has no response: write its column before the ~.")
    with _explained(frame):
        found = SURVIVAL.fullmatch(left)
        responses = found.groups() if found else set(map(str, Formula(left).required_variables))
        names = [f"`{name}`" for name in frame.columns if name not in responses]
        right = DOT.sub(f"({' + '.join(names)})", right)
        spec = Formula(right).get_model_matrix(frame, na_action="raise").model_spec
    terms = {str(term): range(at.start, at.stop) for term, at in spec.term_slices.items()}
    constant = terms.pop("1", range(0))
    if not terms:
        raise ValueError(f"The formula {formula!r} has no terms: name at least one column after the ~.")
    names = spec.column_names[len(constant) :]
    lists = [[j - len(constant) for j in columns] for columns in terms.values()]
    groups = Groups.from_lists(lists, len(names), names=list(terms), columns=names)
    return formula_columns(spec, frame), response(left, frame), groups, spec, len(constant) > 0


def formula_columns(spec: ModelSpec, data: Any) -> Any:
    """The columns of a fitted formula for the rows of a table; a table that has these columns already is unchanged."""
    names = [name for name in spec.column_names if name != "Intercept"]
    if not isinstance(data, pd.DataFrame) or list(data.columns) == names:
        return data
    with _explained(data):
        matrix = spec.get_model_matrix(data)
    return pd.DataFrame(matrix)[names].astype(float)


def number_response(left: str, data: pd.DataFrame) -> pd.Series | pd.DataFrame:
    """A column, or an expression for formulaic such as ``log(y)``, or ``a + b`` for several responses."""
    if left in data.columns:
        return data[left]
    from formulaic import Formula

    with _explained(data):
        responses = pd.DataFrame(Formula(f"{left} - 1").get_model_matrix(data, na_action="raise"))
    return responses.iloc[:, 0] if responses.shape[1] == 1 else responses


def column_response(left: str, data: pd.DataFrame) -> pd.Series:
    """A column of labels."""
    name = left.strip("`")
    if name not in data.columns:
        raise ValueError(f"The response of a classifier is one column of labels; data has no column {name!r}.")
    return data[name]


def survival_response(left: str, data: pd.DataFrame) -> Array:
    """Times and events, written as ``survival(time, event)``."""
    found = SURVIVAL.fullmatch(left)
    if found is None:
        raise ValueError(
            f"The response of a survival model is written survival(time, event), with columns of data, not {left!r}."
            " For entry times and strata, make y with covey.survival and call fit."
        )
    missing = [name for name in found.groups() if name not in data.columns]
    if missing:
        raise ValueError(f"data has no column {missing[0]!r} for {left}.")
    time, event = found.groups()
    return survival(data[time], data[event])


@contextmanager
def _explained(data: pd.DataFrame) -> Iterator[None]:
    """Formulaic's errors as ours, with the remedy if it is known."""
    from formulaic.errors import FormulaicError

    try:
        yield
    except (FormulaicError, ValueError) as reason:
        text = " ".join(re.sub(r"\x1b\[[0-9;]*m|[⧛⧚]", "", str(reason)).split())
        message = f"The formula cannot be read: {text}"
        if found := re.search(r"`([^`]+)` contains null values", text):
            message = (
                f"{found[1]!r} in the formula has missing values: drop or impute these rows first, or fit with "
                "terms='auto', which takes missing values."
            )
        elif found := re.search(r"`([^`]+)` is not present in the dataset|(?<=NameError: name ')([^']+)", text):
            name = found[1] or found[2]
            message = f"The formula names {name!r}, which the data lack: {near(name, list(map(str, data.columns)))}"
        elif "beyond upper and/or lower bounds" in text:
            message = f"{text} Use bs(x, extrapolation='extend') to extrapolate beyond the range of the fitted rows."
        raise ValueError(message) from None
