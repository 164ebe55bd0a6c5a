"""Parts: terms that are shown together, and the values of a variable at which they are shown.

A part is a line with its curve and its detail, the levels of a category, a season of a date, or a pair with its
surface. The parts of a model add up to its linear predictor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from covey.terms.dates import DAY, WEEKDAYS, Date
from covey.terms.expansion import Expansion
from covey.terms.levels import MISSING, Category
from covey.validation import Array, FloatArray, IntArray

# Values of a variable as they are in a table: numbers, dates, or texts with None for missing ones.
Raw: TypeAlias = Array | Sequence[str | None]

# A year without a leap day that begins on a Monday, for seasons and days of the week.
YEAR_SHOWN = np.datetime64("2001-01-01")


@dataclass(frozen=True)
class Part:
    """The selected terms of a variable (or of one season of a date), or of a pair of them."""

    name: str  # such as ``age``, ``date[week]`` or ``age:sex``
    variables: tuple[str, ...]
    roots: tuple[int, ...]  # the main terms that it consists of, or that are multiplied: one or two
    terms: tuple[int, ...]  # all of its terms that are in the model


@dataclass(frozen=True)
class Axis:
    """The values at which a variable's effect is evaluated, and where the rows of fit are."""

    name: str
    kind: str  # number, levels, date, season
    values: Array  # as they are shown: numbers, labels, or dates (of one year, or one day, for a season)
    raw: Raw  # as they would stand in a table
    quantiles: Array | None = None  # evenly spaced quantiles of a number or a date in the table of fit
    counts: IntArray | None = None  # rows per level
    flagged: bool = False  # whether missing values have an effect besides these values

    @property
    def has_levels(self) -> bool:
        """Whether the values are levels: those of a category, or the two of a number."""
        return self.kind == "levels" or (self.kind == "number" and len(self.values) <= 2)

    @property
    def labels(self) -> list[str]:
        """The values as text."""
        return [f"{value:g}" if self.kind == "number" else str(value) for value in self.values]

    def commonest(self, most: int) -> IntArray:
        """Positions of the most common levels, in their order."""
        counts = np.zeros(len(self.values)) if self.counts is None else self.counts
        return np.sort(np.argsort(-counts, kind="stable")[:most])

    @classmethod
    def of(cls, expansion: Expansion, root: int, n: int) -> Axis:
        """The grid of a main term: `n` values over the range, or all levels."""
        term = expansion.encoding.terms[root]
        fitted = expansion.encoding.variable(term.variables[0])
        if isinstance(fitted, Date):
            return _date_axis(fitted, term.name, term.kind, n)
        values = fitted.grid(n)
        if isinstance(fitted, Category):
            labels, counts = np.array(fitted.labels, object), np.array(fitted.counts, dtype=np.intp)
            return cls(term.name, "levels", labels, values, counts=counts)
        if fitted.labels is not None:
            shown = [MISSING if value is None else value for value in values]
            return cls(term.name, "levels", np.array(shown, object), values)
        quantiles, flagged = np.array(fitted.quantiles), fitted.share_missing > 0
        return cls(term.name, "number", np.asarray(values), values, quantiles, flagged=flagged)

    @classmethod
    def at(cls, expansion: Expansion, root: int, values: Any) -> Axis:
        """The given values of a variable, or a single one."""
        raw, grid = [values] if np.ndim(values) == 0 else values, cls.of(expansion, root, 2)
        return cls(grid.name, grid.kind, np.asarray(raw), raw, grid.quantiles)


def _date_axis(date: Date, name: str, kind: str, n: int) -> Axis:
    """The grid of the trend, a season or the days of the week of a date."""
    if kind == "season":
        season = next(one for one in date.seasons if one.name == name)
        step = "h" if season.period > DAY else "m"
        n_steps = round(season.period * (24 if step == "h" else 1440))
        steps = np.unique(np.linspace(0, n_steps, n, endpoint=False).round().astype(int))
        values = YEAR_SHOWN.astype("datetime64[m]") + steps.astype(f"timedelta64[{step}]")
        return Axis(name, "season", values, values)
    if kind == "levels":
        assert date.week is not None
        days = np.array([YEAR_SHOWN + WEEKDAYS.index(text) for text in date.week.labels])
        counts = np.array(date.week.counts, dtype=np.intp)
        return Axis(name, "levels", np.array(date.week.labels, object), days, counts=counts)
    quantiles = (np.array(date.trend.quantiles) * 86_400).round().astype("int64").astype("datetime64[s]")
    return Axis(name, "date", date.grid(n), date.grid(n), quantiles, flagged=date.trend.share_missing > 0)


def roots_of(expansion: Expansion, term: int) -> tuple[int, ...]:
    """The main terms at the root of a term: itself, the line of a curve, the two terms of a pair."""
    one = expansion.terms[term]
    if not one.parents:
        return (term,)
    return one.parents if one.kind in ("curve", "pair") else roots_of(expansion, one.parents[0])


def find_parts(expansion: Expansion, selected: Iterable[int]) -> list[Part]:
    """The parts of a model: single variables first, in the order of the selected terms."""
    members: dict[tuple[int, ...], list[int]] = {}
    for term in selected:
        members.setdefault(roots_of(expansion, term), []).append(term)
    found = []
    for roots, terms in members.items():
        named = min(terms) if len(roots) > 1 else roots[0]
        one = expansion.terms[named]
        name = one.name if one.kind != "surface" else expansion.terms[one.parents[0]].name
        found.append(Part(name, one.variables, roots, tuple(sorted(terms))))
    return sorted(found, key=lambda part: len(part.roots))


def part_columns(expansion: Expansion, part: Part) -> IntArray:
    """The expanded columns of a part's terms."""
    return np.concatenate([np.empty(0, dtype=np.intp), *(expansion.terms[term].places for term in part.terms)])


def main_columns(expansion: Expansion, root: int, raw: Raw) -> tuple[int, FloatArray]:
    """The encoded columns of a main term and its curve for raw values, and the position of the first."""
    encoding = expansion.encoding
    name = encoding.terms[root].variables[0]
    first = encoding.terms[encoding.terms_of(name)[0]].columns.start
    start, stop = encoding.terms[root].columns.start, encoding.terms[encoding.last_of(root)].columns.stop
    return start, encoding.encode(name, raw)[:, start - first : stop - first]


def grid_rows(expansion: Expansion, roots: Sequence[int], raw: Sequence[Raw]) -> tuple[FloatArray, list[int]]:
    """The encoded columns at raw values of a main term, or at all pairs of two; and how many values each has."""
    sides = [main_columns(expansion, root, values) for root, values in zip(roots, raw, strict=True)]
    sizes = [len(columns) for _, columns in sides]
    # all other columns stay untouched zeros, which take no memory
    rows = np.zeros((int(np.prod(sizes)), len(expansion.encoding.column_names)), order="F")
    for (start, columns), at in zip(sides, np.indices(sizes), strict=True):
        rows[:, start : start + columns.shape[1]] = columns[at.ravel()]
    return rows, sizes


def evaluate(expansion: Expansion, coef: FloatArray, part: Part, raw: Sequence[Raw]) -> FloatArray:
    """The contribution of a part at raw values of its variables, or at all pairs of them; outputs last, not centred."""
    rows, sizes = grid_rows(expansion, part.roots, raw)
    places = part_columns(expansion, part)
    return np.asarray((expansion.on(rows).take(places) @ coef[:, places].T).reshape(*sizes, len(coef)))


def empty_cells(expansion: Expansion, roots: Sequence[int], raw: Sequence[Raw]) -> NDArray[np.bool_]:
    """Which pairs of raw values of two main terms are levels that no row of fit has together."""
    rows, sizes = grid_rows(expansion, roots, raw)
    return expansion.is_new_combination(rows, roots).reshape(sizes)
