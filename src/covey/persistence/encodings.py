"""Check the expansion of a table that comes from a file: everything that encodes a variable later."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from covey.terms import Encoding, Expansion
from covey.terms.dates import Date
from covey.terms.encoding import Variable
from covey.terms.expansion import CHILDREN
from covey.terms.levels import Category
from covey.terms.numbers import Number
from covey.validation import FloatArray

__all__ = ["check_expansion"]


def check_expansion(expansion: Expansion) -> None:
    """Refuse an expansion with parts that are damaged or do not match each other.

    Raises
    ------
    ValueError
        Names the variable.
    """
    encoding, ranges = expansion.encoding, expansion.ranges
    _check_encoding(encoding)
    if ranges.shape != (2, len(encoding.column_names)) or not _are_numbers(ranges) or (ranges[0] > ranges[1]).any():
        raise ValueError("the ranges of the encoded columns are not as they were written")
    is_known = _is_count(expansion.depth) and 1 <= expansion.depth <= len(CHILDREN)
    if not is_known or not _are_pairs(expansion.pairs, len(encoding.terms)):
        raise ValueError("the pairs of the expansion are not as they were written")
    if expansion.unlisted not in ((), encoding.pairs.members):
        raise ValueError("the expansion has unlisted pairs of terms that do not exist")


def _check_encoding(encoding: Encoding) -> None:
    fitted = {name: encoding.variable(name) for name in encoding.variables if name not in encoding.dropped}
    texts = [*encoding.variables, *encoding.dropped, *encoding.dropped.values(), *encoding.remarks]
    if not _are_texts(texts) or not _differ(encoding.variables) or not set(encoding.dropped) < set(encoding.variables):
        raise ValueError("the variables of the encoding are not as they were written")
    for name, variable in fitted.items():
        if variable.name != name or not _is_variable(variable):
            raise ValueError(f"the encoding of {name!r} is not as it was written")
    if sum(len(encoding.terms_of(name)) for name in fitted) != len(encoding.terms):
        raise ValueError("the encoding has terms of no variable")
    pairs, n = encoding.pairs, len(encoding.terms)
    if not all(_is_count(place) and place < n for place in pairs.members) or not _differ(pairs.members):
        raise ValueError("the encoding has pairs of terms that do not exist")
    if not _are_pairs((*pairs.listed, *pairs.left_out), n):
        raise ValueError("the pairs of the encoding are not as they were written")


def _is_variable(variable: Variable) -> bool:
    if isinstance(variable, Number):
        return _is_number(variable)
    if isinstance(variable, Category):
        return _is_category(variable)
    return _is_date(variable)


def _is_number(number: Number) -> bool:
    """Whether all parts of a fitted number have their types and shapes."""
    knots, values, labels = number.knots, number.values, number.labels
    single = np.array([number.mean, number.sd, number.share_missing, *number.quantiles])
    return (
        _are_numbers(single)
        and number.sd > 0
        and 0 <= number.share_missing < 1
        and len(number.quantiles) > 1
        and bool((np.diff(number.quantiles) >= 0).all())
        and _is_count(number.n_missing)
        and _is_count(number.n_distinct)
        and knots.ndim == 1
        and _are_numbers(knots)
        and bool((np.diff(knots) > 0).all())
        and values.ndim == 2
        and _are_numbers(values)
        and (values.size == 0 or (values.shape[0] == len(knots) >= 3 and values.shape[1] <= len(knots)))
        and _is_count(number.n_smooth)
        and number.n_smooth <= values.shape[1]
        and (labels is None or (_are_texts(labels) and _differ(labels)))
        and _are_flags((number.integer, number.always))
    )


def _is_category(category: Category) -> bool:
    """Whether all parts of a fitted category have their types and lengths."""
    labels, shares = category.labels, np.array([*category.shares, category.n_rows])
    special = [text for text in (category.other, category.missing) if text is not None]
    return (
        isinstance(category.name, str)
        and len(labels) > 0
        and _are_texts([*labels, *category.joined, *special])
        and _differ(labels)
        and set(special) <= set(labels)
        and (category.other is not None or not category.joined)
        and len(labels) == len(category.counts) == len(category.shares)
        and all(_is_count(count) for count in category.counts)
        and _are_numbers(shares)
        and bool((shares >= 0).all() and (shares[:-1] <= 1 + 1e-9).all())
        and _are_flags((category.always,))
    )


def _is_date(date: Date) -> bool:
    """Whether all parts of a fitted date have their types and lengths."""
    return (
        _is_number(date.trend)
        and (date.week is None or _is_category(date.week))
        and _are_texts(season.name for season in date.seasons)
        and all(
            _are_numbers(np.array([season.period, *season.centres]))
            and season.period > 0
            and len(season.centres) % 2 == 0 < len(season.centres)
            for season in date.seasons
        )
    )


def _are_numbers(array: FloatArray) -> bool:
    return array.dtype.kind in "fiu" and bool(np.isfinite(array).all())


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_pairs(pairs: Iterable[tuple[int, ...]], n_terms: int) -> bool:
    """Whether all are pairs of two terms, the first one first."""
    return all(len(pair) == 2 and all(map(_is_count, pair)) and pair[0] < pair[1] < n_terms for pair in pairs)


def _are_texts(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def _are_flags(values: Iterable[object]) -> bool:
    return all(isinstance(value, bool) for value in values)


def _differ(values: tuple[object, ...]) -> bool:
    return len(set(values)) == len(values)
