"""Encoding: a fitted description of a table's variables, which turns tables into columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from covey.tables.complaint import TableError, listed, near
from covey.terms.dates import Date
from covey.terms.kinds import Term, free_name
from covey.terms.levels import Category
from covey.terms.numbers import Number
from covey.terms.pairs import Pairs
from covey.terms.reading import as_frame
from covey.validation import Array, FloatArray, MatrixLike

Variable = Number | Category | Date
CLASSES: dict[str, type[Number] | type[Category] | type[Date]] = {"number": Number, "levels": Category, "date": Date}


class Encoding:
    """How a table of variables becomes columns, as fitted by `Terms.fit`.

    Attributes
    ----------
    variables : tuple of str
        All columns of the table, in order.
    terms : tuple of Term
    column_names : tuple of str
        One name per encoded column.
    dropped : dict of str to str
        The variables that are left out, each with the reason.
    n_mains : int
        The number of terms before the details of curves, which come last.
    pairs : Pairs
        Pairs of positions of terms whose products are wanted.
    remarks : tuple of str
        What a user should know: variables left out, levels joined, missing values.
    """

    def __init__(
        self,
        variables: Sequence[str],
        fitted: Mapping[str, Variable],
        dropped: Mapping[str, str],
        pairs: Pairs | None = None,
        remarks: Sequence[str] = (),
    ) -> None:
        self.variables = tuple(variables)
        self.dropped = dict(dropped)
        self.pairs = Pairs() if pairs is None else pairs
        self.remarks = tuple(remarks)
        self._fitted = dict(fitted)
        terms: list[Term] = []
        details: list[Term] = []
        names: list[str] = []
        titles, taken = set(self.variables), set(self.variables)
        for name, variable in self._fitted.items():
            first = len(terms)
            for term, kind, parent, columns in variable.terms:
                parents = () if parent is None else (first + parent,)
                place = slice(len(names), len(names) + len(columns))
                title = term if term == name else _free(term, titles)
                late = kind == "detail"
                (details if late else terms).append(
                    Term(title, kind, (name,), parents, place, variable.always and not late)
                )
                names += [text if text == name else _free(text, taken) for text in columns]
        self.n_mains, self.terms = len(terms), (*terms, *details)
        self._terms_of: dict[str, list[int]] = {name: [] for name in self._fitted}
        for place_, term_ in enumerate(self.terms):
            self._terms_of[term_.variables[0]].append(place_)
        self.column_names = tuple(names)

    def __repr__(self) -> str:
        return (
            f"Encoding({len(self.variables)} variables, {len(self.terms)} terms, {len(self.column_names)} columns, "
            f"{len(self.pairs)} pairs)"
        )

    def with_pairs(self, pairs: Pairs, remark: str) -> Encoding:
        """The same variables with other pairs, and why."""
        return Encoding(self.variables, self._fitted, self.dropped, pairs, [*self.remarks, remark])

    def transform(self, table: MatrixLike) -> FloatArray:
        """The encoded columns of a table: float64, in Fortran order.

        Columns are found by name, in any order; others are ignored. A missing value or a level that was not in the
        data of fit counts as the mean.
        """
        frame = as_frame(table, self.variables)
        lacking = [name for name in self._fitted if name not in frame]
        if len(lacking) == 1:
            hint = near(lacking[0], list(frame.columns))
            raise TableError(f"X has no variable {lacking[0]!r}, with which the model was fitted; {hint}")
        if lacking:
            raise TableError(f"X has no variables {listed(lacking)}, with which the model was fitted.")
        out = np.zeros((len(frame), len(self.column_names)), order="F")
        for name, variable in self._fitted.items():
            places = [self.terms[l].columns for l in self._terms_of[name]]
            encoded = variable.encode(variable.read(frame[name]))  # type: ignore[arg-type]
            out[:, places[0].start : max(one.stop for one in places)] = encoded
        return out

    def terms_of(self, name: str) -> Sequence[int]:
        """Positions of the terms of a variable; none if it is left out."""
        return self._terms_of.get(name, ())

    def stems(self, term: int) -> slice:
        """The columns of a term that are multiplied in a pair: a number without its flag, all levels of a category."""
        one = self.terms[term]
        return slice(one.columns.start, one.columns.start + 1) if one.kind == "linear" else one.columns

    def curve_of(self, term: int) -> int | None:
        """The position of the curve whose parent is this term."""
        after = term + 1
        curved = after < len(self.terms) and self.terms[after].kind == "curve" and self.terms[after].parents == (term,)
        return after if curved else None

    def rows_per_level(self, term: int) -> float:
        """The mean number of rows per level of a main term; of a flag, those of its rarer value; otherwise infinite."""
        one = self.terms[term]
        fitted = self.variable(one.variables[0])
        if isinstance(fitted, Number) and fitted.n_rarer:
            return float(fitted.n_rarer)
        category = fitted.week if isinstance(fitted, Date) else fitted
        if one.kind != "levels" or not isinstance(category, Category):
            return np.inf
        return category.n_rows / len(category.labels)

    def last_of(self, term: int) -> int:
        """The position of the last descendant of a main term: its curve's detail, its curve, or itself."""
        curve = self.curve_of(term)
        details = (j for j in range(self.n_mains, len(self.terms)) if self.terms[j].parents == (curve,))
        return next(details, term if curve is None else curve)

    def variable(self, name: str) -> Variable:
        """What was fitted for a variable: a number, a category or a date."""
        if name in self.dropped:
            raise ValueError(f"The variable {name!r} is left out: {self.dropped[name]}.")
        if name not in self._fitted:
            raise ValueError(f"There is no variable {name!r}; {near(name, self.variables)}")
        return self._fitted[name]

    def grid(self, variable: str, n: int = 200) -> Array | list[str | None]:
        """Values of a variable for drawing its effect: `n` over its range, or all of its levels (None is missing)."""
        return self.variable(variable).grid(n)

    def encode(self, variable: str, values: Any) -> FloatArray:
        """The encoded columns of a variable's terms for raw values."""
        fitted = self.variable(variable)
        column = values if isinstance(values, pd.Series) else pd.Series(values, name=variable)
        return fitted.encode(fitted.read(column.rename(variable)))  # type: ignore[arg-type]

    def table(self) -> pd.DataFrame:
        """What became of each variable: kind, columns, values, missing values, remark."""
        lines = []
        for name in self.variables:
            if name in self.dropped:
                line = {"kind": "left out", "columns": 0, "values": "", "missing": 0, "remark": self.dropped[name]}
            else:
                line = self._fitted[name].describe()
            lines.append({"variable": name} | line)
        return pd.DataFrame(lines)

    def state(self) -> dict[str, object]:
        """Plain numbers, texts and lists, for JSON."""
        return {
            "variables": list(self.variables),
            "fitted": [[name, one.kind, one.state()] for name, one in self._fitted.items()],
            "dropped": dict(self.dropped),
            "pairs": self.pairs.state(),
            "remarks": list(self.remarks),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Encoding:
        """The inverse of `state`."""
        fitted = {name: CLASSES[kind].from_state(values) for name, kind, values in state["fitted"]}
        return cls(state["variables"], fitted, state["dropped"], Pairs.from_state(state["pairs"]), state["remarks"])


def _free(name: str, taken: set[str]) -> str:
    """A name for a term or a column that no variable and no other one has; it is taken from now on."""
    taken.add(name := free_name(name, taken))
    return name
