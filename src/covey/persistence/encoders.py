"""Checks of what encodes a table and comes from a file: encoders of scikit-learn, and the expansion of variables."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from covey.designs.columns import Within
from covey.persistence.attributes import check_fields, has_type, require
from covey.terms import Encoding, Expansion
from covey.terms.dates import Date
from covey.terms.expansion import CHILDREN
from covey.terms.levels import Category
from covey.terms.numbers import Number


def check_encoder(part: object) -> None:
    """Refuse an encoder that would write outside the matrix that it makes, or makes none; other parts pass.

    Raises
    ------
    ValueError
        Names the attribute.
    """
    if isinstance(part, CountVectorizer | DictVectorizer) and "vocabulary_" in vars(part):
        _check_vocabulary(part)
        _encode(part, [{}] if isinstance(part, DictVectorizer) else [""])
    elif isinstance(part, OneHotEncoder) and "categories_" in vars(part):
        _check_categories(part)
        are_numbers = all(values.dtype.kind in "iufb" for values in part.categories_)
        first = [values[:1].astype(values.dtype if are_numbers else object) for values in part.categories_]
        _encode(part, np.column_stack(first))
    elif isinstance(part, TfidfTransformer) and "idf_" in vars(part):
        belongs = np.shape(part.idf_) == (vars(part).get("n_features_in_"),)
        require(belongs, "idf_ does not belong to the columns of the encoder")


def check_steps(pipeline: Pipeline) -> None:
    """Refuse a pipeline with a step that is no transformer, or whose encoder makes other columns than the next has."""
    are_pairs = all(isinstance(step, tuple) and len(step) == 2 and step[1] is not None for step in pipeline.steps)
    require(are_pairs, "a pipeline without steps")
    parts = [step[1] for step in pipeline.steps]
    transform = all(hasattr(part, "transform") or part == "passthrough" for part in parts[:-1])
    require(transform, "steps has one that is no transformer")
    for encoder, after in pairwise(parts):
        width = None
        if isinstance(encoder, CountVectorizer | DictVectorizer) and "vocabulary_" in vars(encoder):
            width = len(encoder.vocabulary_)
        elif isinstance(encoder, OneHotEncoder) and "categories_" in vars(encoder):
            width = sum(encoder._n_features_outs)
        same = width is None or getattr(after, "n_features_in_", width) == width
        require(same, f"{type(encoder).__name__} makes {width} columns, which are not those of the next step")


def _encode(part: CountVectorizer | DictVectorizer | OneHotEncoder, row: Any) -> None:
    """Encode a row: a wrong type, or an attribute that is gone, shows nowhere else."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of names, which the row has not
            found = part.transform(row)
        np.asarray(found if hasattr(found, "columns") else found.dtype.type(0), dtype=float)
    except Exception as reason:
        raise ValueError(f"{type(part).__name__} cannot encode a row: {reason}") from None


def _check_vocabulary(part: CountVectorizer | DictVectorizer) -> None:
    table = part.vocabulary_
    whole = isinstance(table, dict) and all(_is_index(place) for place in table.values())
    require(whole, "vocabulary_ is not as it was written")
    in_order = sorted(map(int, table.values())) == list(range(len(table)))
    require(in_order, "vocabulary_ has columns that do not exist, or lacks some")
    if isinstance(part, DictVectorizer):
        names = part.feature_names_
        same = isinstance(names, list) and {name: j for j, name in enumerate(names)} == table
        require(same and len(names) == len(table), "vocabulary_ and feature_names_ do not belong together")
    else:
        for name in ("preprocessor", "tokenizer"):
            function = getattr(part, name)
            require(function is None or callable(function), f"{name} is no function")


def _check_categories(part: OneHotEncoder) -> None:
    """Compute the number of columns per feature again from the categories, dropped and infrequent ones.

    Encoding all categories instead would take rows times features for a file that stores their sum.
    """
    categories = part.categories_
    are_arrays = isinstance(categories, list) and all(
        isinstance(values, np.ndarray) and values.ndim == 1 for values in categories
    )
    require(are_arrays, "categories_ is not as it was written")
    per_feature = [
        _per_feature(part, name, len(categories))
        for name in ("_drop_idx_after_grouping", "_infrequent_indices", "_default_to_infrequent_mappings")
    ]
    widths = []
    for values, drop, rare, mapping in zip(categories, *per_feature, strict=True):
        if values.dtype.kind in "iufb":  # looked up by bisection; a missing value comes last
            known = values[~np.isnan(values)] if values.dtype.kind == "f" else values
            ascend = (known[1:] > known[:-1]).all() and known.size >= values.size - 1
            require(ascend, "categories_ are not in order")
        size = values.size
        require((rare is None) == (mapping is None), "infrequent categories do not belong to categories_")
        if rare is not None:
            exist = _are_indices(rare, size) and np.unique(rare).size == rare.size > 0
            require(exist, "infrequent categories that do not exist")
            size -= rare.size - 1
            mapped = _are_indices(mapping, size) and mapping.shape == values.shape
            require(mapped, "infrequent categories do not belong to categories_")
        require(drop is None or (_is_index(drop) and 0 <= drop < size), "a dropped category that does not exist")
        widths.append(size - (drop is not None))
    n_features, outs = getattr(part, "n_features_in_", len(widths)), vars(part).get("_n_features_outs")
    require(n_features == len(widths) and outs == widths, "categories_ do not belong to the columns of the encoder")


def _per_feature(part: OneHotEncoder, name: str, n: int) -> list[Any]:
    """An attribute with one entry per feature, or None for every feature."""
    value = vars(part).get(name)
    if value is None:
        return [None] * n
    one_each = isinstance(value, list | np.ndarray) and getattr(value, "ndim", 1) == 1 and len(value) == n
    require(one_each, f"{name} is not as it was written")
    return list(value)


def _is_index(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _are_indices(values: Any, length: int) -> bool:
    are_whole = isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iu"
    return are_whole and bool(((values >= 0) & (values < length)).all())


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
    known = all(_is_within(one, len(encoding.column_names)) for one in expansion.within)
    known = known and _ascend([one.column * len(encoding.column_names) + one.first for one in expansion.within])
    require(known, "the ranges within levels are not as they were written")
    known = 1 <= expansion.depth <= len(CHILDREN) and _are_pairs(expansion.pairs, len(encoding.terms))
    require(known, "the pairs of the expansion are not as they were written")
    known = expansion.unlisted in ((), encoding.pairs.members)
    require(known, "the expansion has unlisted pairs of terms that do not exist")


def _is_within(one: Within, n_columns: int) -> bool:
    """Whether the columns and the ranges of values within levels belong together."""
    check_fields(one)
    exist = 0 <= one.column < n_columns and 0 <= one.first < one.stop <= n_columns
    return exist and one.ends.shape == (2, 1 + one.stop - one.first) and bool((one.ends[0] <= one.ends[1]).all())


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
