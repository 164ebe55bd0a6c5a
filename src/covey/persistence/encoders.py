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

__all__ = ["check_encoder", "check_widths"]


def check_encoder(part: object) -> None:
    """Refuse an encoder that would write outside the matrix that it makes, or makes none; other parts pass.

    Raises
    ------
    ValueError
        Names the attribute.
    """
    if isinstance(part, CountVectorizer | DictVectorizer) and "vocabulary_" in vars(part):
        _check_vocabulary(part)
        _try(part, [{}] if isinstance(part, DictVectorizer) else [""])
    elif isinstance(part, OneHotEncoder) and "categories_" in vars(part):
        _check_categories(part)
        are_numbers = all(values.dtype.kind in "iufb" for values in part.categories_)
        first = [values[:1].astype(values.dtype if are_numbers else object) for values in part.categories_]
        _try(part, np.column_stack(first))
    elif isinstance(part, TfidfTransformer):
        held = vars(part)
        if "idf_" in held and np.shape(held["idf_"]) != (held.get("n_features_in_"),):
            raise ValueError("idf_ does not belong to the columns of the encoder")


def _try(part: CountVectorizer | DictVectorizer | OneHotEncoder, row: Any) -> None:
    """Encode a row: a wrong type, or an attribute that is gone, shows nowhere else."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of names, which the row has not
            found = part.transform(row)
        np.asarray(found if hasattr(found, "columns") else found.dtype.type(0), dtype=float)
    except Exception as reason:
        raise ValueError(f"{type(part).__name__} cannot encode a row: {reason}") from None


def check_widths(pipeline: Pipeline) -> None:
    """Refuse a pipeline with a step that is no transformer, or whose encoder makes other columns than the model has."""
    parts = [step[1] for step in pipeline.steps]
    if not all(hasattr(part, "transform") or part is None or part == "passthrough" for part in parts[:-1]):
        raise ValueError("steps has one that is no transformer")
    for encoder, model in pairwise(parts):
        width = None
        if isinstance(encoder, CountVectorizer | DictVectorizer) and "vocabulary_" in vars(encoder):
            width = len(encoder.vocabulary_)
        elif isinstance(encoder, OneHotEncoder) and "categories_" in vars(encoder):
            width = sum(vars(encoder)["_n_features_outs"])
        if width is not None and getattr(model, "n_features_in_", width) != width:
            raise ValueError(f"{type(encoder).__name__} makes {width} columns, which are not those of the next step")


def _check_vocabulary(part: CountVectorizer | DictVectorizer) -> None:
    table = part.vocabulary_
    if not isinstance(table, dict) or not all(_is_index(place) for place in table.values()):
        raise ValueError("vocabulary_ is not as it was written")
    if sorted(map(int, table.values())) != list(range(len(table))):
        raise ValueError("vocabulary_ has columns that do not exist, or lacks some")
    if isinstance(part, CountVectorizer):
        for name in ("preprocessor", "tokenizer"):
            if not (getattr(part, name) is None or callable(getattr(part, name))):
                raise ValueError(f"{name} is no function")
    if isinstance(part, DictVectorizer):
        names = part.feature_names_
        if (
            not isinstance(names, list)
            or len(names) != len(table)
            or any(table.get(n) != j for j, n in enumerate(names))
        ):
            raise ValueError("vocabulary_ and feature_names_ do not belong together")


def _check_categories(part: OneHotEncoder) -> None:
    """Compute the number of columns per feature again from the categories, dropped and infrequent ones."""
    held = vars(part)
    categories = part.categories_
    if not isinstance(categories, list) or not all(
        isinstance(values, np.ndarray) and values.ndim == 1 for values in categories
    ):
        raise ValueError("categories_ is not as it was written")
    n = len(categories)
    dropped = _per_feature(held, "_drop_idx_after_grouping", n)
    infrequent = _per_feature(held, "_infrequent_indices", n)
    mappings = _per_feature(held, "_default_to_infrequent_mappings", n)
    widths = []
    for values, drop, rare, mapping in zip(categories, dropped, infrequent, mappings, strict=True):
        if values.dtype.kind in "iufb":  # looked up by bisection; a missing value comes last
            known = values[~np.isnan(values)] if values.dtype.kind == "f" else values
            if (known[1:] <= known[:-1]).any() or known.size < values.size - 1:
                raise ValueError("categories_ are not in order")
        size = values.size
        if rare is not None:
            if not _are_indices(rare, values.size) or np.unique(rare).size != rare.size or not rare.size:
                raise ValueError("infrequent categories that do not exist")
            size -= rare.size - 1
        if (rare is None) != (mapping is None) or (
            mapping is not None and (not _are_indices(mapping, size) or mapping.shape != values.shape)
        ):
            raise ValueError("infrequent categories do not belong to categories_")
        if drop is not None and not (_is_index(drop) and 0 <= drop < size):
            raise ValueError("a dropped category that does not exist")
        widths.append(size - (drop is not None))
    if held.get("n_features_in_", n) != n or held.get("_n_features_outs") != widths:
        raise ValueError("categories_ do not belong to the columns of the encoder")


def _per_feature(held: dict[str, Any], name: str, n: int) -> list[Any]:
    """An attribute with one entry per feature, or None for every feature."""
    value = held.get(name)
    if value is None:
        return [None] * n
    if not isinstance(value, list | np.ndarray) or getattr(value, "ndim", 1) != 1 or len(value) != n:
        raise ValueError(f"{name} is not as it was written")
    return list(value)


def _is_index(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _are_indices(values: object, length: int) -> bool:
    return (
        isinstance(values, np.ndarray)
        and values.ndim == 1
        and values.dtype.kind in "iu"
        and bool(((values >= 0) & (values < length)).all())
    )
