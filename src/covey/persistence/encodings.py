"""Check the expansion of a table that comes from a file: everything that encodes a variable later."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from covey.persistence.annotations import check_fields, has_type, require
from covey.terms import Encoding, Expansion
from covey.terms.dates import Date
from covey.terms.expansion import CHILDREN
from covey.terms.levels import Category
from covey.terms.numbers import Number

__all__ = ["check_expansion"]


def check_expansion(expansion: Expansion) -> None:
    """Refuse an expansion with parts that are damaged or do not match each other.

    Raises
    ------
    ValueError
        Names the variable.
    """
    check_fields(expansion)
    encoding, ranges = expansion.encoding, expansion.ranges
    _check_encoding(encoding)
    fits = ranges.shape == (2, len(encoding.column_names)) and (ranges[0] <= ranges[1]).all()
    require(fits, "the ranges of the encoded columns are not as they were written")
    known = 1 <= expansion.depth <= len(CHILDREN) and _are_pairs(expansion.pairs, len(encoding.terms))
    require(known, "the pairs of the expansion are not as they were written")
    known = expansion.unlisted in ((), encoding.pairs.members)
    require(known, "the expansion has unlisted pairs of terms that do not exist")


def _check_encoding(encoding: Encoding) -> None:
    fitted = {name: encoding.variable(name) for name in encoding.variables if name not in encoding.dropped}
    texts = (*encoding.variables, *encoding.dropped, *encoding.dropped.values(), *encoding.remarks)
    known = has_type(texts, tuple[str, ...]) and _differ(encoding.variables)
    known = known and set(encoding.dropped) < set(encoding.variables)
    require(known, "the variables of the encoding are not as they were written")
    for name, variable in fitted.items():
        require(variable.name == name and _fits(variable), f"the encoding of {name!r} is not as it was written")
    n, pairs = len(encoding.terms), encoding.pairs
    require(sum(len(encoding.terms_of(name)) for name in fitted) == n, "the encoding has terms of no variable")
    check_fields(pairs)
    known = all(place < n for place in pairs.members) and _differ(pairs.members)
    known = known and _are_pairs([*pairs.listed, *pairs.left_out], n)
    require(known, "the pairs of the encoding are not as they were written")


def _fits(variable: Any) -> bool:
    """Whether all parts of a fitted variable have their types, lengths and order."""
    check_fields(variable)
    if isinstance(variable, Number):
        return _number_fits(variable)
    if isinstance(variable, Category):
        return _category_fits(variable)
    assert isinstance(variable, Date)
    for season in variable.seasons:
        check_fields(season)
        if season.period <= 0 or len(season.centres) % 2 or not season.centres:
            return False
    return _fits(variable.trend) and (variable.week is None or _fits(variable.week))


def _number_fits(number: Number) -> bool:
    knots, values = number.knots, number.values
    return (
        number.sd > 0
        and 0 <= number.share_missing < 1
        and len(number.quantiles) > 1
        and _ascend(number.quantiles)
        and knots.ndim == 1
        and _ascend(knots, strictly=True)
        and values.ndim == 2
        and (values.size == 0 or (values.shape[0] == len(knots) >= 3 and values.shape[1] <= len(knots)))
        and number.n_smooth <= values.shape[1]
        and (number.labels is None or _differ(number.labels))
    )


def _category_fits(category: Category) -> bool:
    labels, shares = category.labels, np.array(category.shares)
    special = {category.other, category.missing} - {None}
    return (
        len(labels) == len(category.counts) == len(category.shares) > 0
        and _differ(labels)
        and special <= set(labels)
        and (category.other is not None or not category.joined)
        and category.n_rows >= 0
        and bool((shares >= 0).all() and (shares <= 1 + 1e-9).all())
    )


def _are_pairs(pairs: Iterable[tuple[int, int]], n_terms: int) -> bool:
    """Whether all are pairs of two terms, the first one first."""
    return all(first < second < n_terms for first, second in pairs)


def _ascend(values: ArrayLike, strictly: bool = False) -> bool:
    steps = np.diff(np.asarray(values))
    return bool((steps > 0).all() if strictly else (steps >= 0).all())


def _differ(values: Sequence[object]) -> bool:
    return len(set(values)) == len(values)
