"""Checks of scikit-learn's encoders that come from a file: their tables become indices of sparse matrices."""

from __future__ import annotations

import copy
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from covey.persistence.annotations import require

# A category that no encoder knows.
UNKNOWN = "\0unknown"


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


def _encode(part: CountVectorizer | DictVectorizer | OneHotEncoder, rows: Any) -> Any:
    """Encode rows: a wrong type, or an attribute that is gone, shows nowhere else."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of names and categories that the encoder does not know
            found = part.transform(rows)
        np.asarray(found if hasattr(found, "columns") else found.dtype.type(0), dtype=float)
    except Exception as reason:
        raise ValueError(f"{type(part).__name__} cannot encode a row: {reason}") from None
    return found


def _check_vocabulary(part: CountVectorizer | DictVectorizer) -> None:
    table = part.vocabulary_
    whole = isinstance(table, dict) and all(
        isinstance(place, int | np.integer) and not isinstance(place, bool) for place in table.values()
    )
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
    """Encode every category, and one that is unknown: each makes at most one entry, among its feature's columns.

    The matrix is made sparse, which needs no entry to be in its place; a dense one would be written outside.
    """
    categories = part.categories_
    are_arrays = isinstance(categories, list) and all(
        isinstance(values, np.ndarray) and values.ndim == 1 and values.size for values in categories
    )
    require(are_arrays, "categories_ is not as it was written")
    names = getattr(part, "feature_names_in_", range(len(categories)))
    require(len(names) == len(categories), "categories_ do not belong to the columns of the encoder")
    n_rows = max(values.size for values in categories)
    known = pd.DataFrame({name: np.resize(values, n_rows) for name, values in zip(names, categories, strict=True)})
    unknown = pd.DataFrame([[UNKNOWN] * len(names)] * (part.handle_unknown != "error"), columns=known.columns)
    sparse = copy.copy(part)
    sparse.sparse_output, sparse._sklearn_output_config = True, {}
    ends = np.cumsum([0, *part._n_features_outs])
    for table in (known, unknown)[: 1 + len(unknown)]:
        found = _encode(sparse, table)
        found.check_format(full_check=True)
        for start, end in pairwise(ends):
            alone = (found[:, start:end].sum(axis=1) <= 1).all()
            require(alone, "categories_ do not belong to the columns of the encoder")
    _encode(part, known.head(1))
