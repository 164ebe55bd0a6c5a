"""Checks of scikit-learn's encoders that come from a file: their tables become indices of sparse matrices."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from covey.persistence.annotations import require


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
