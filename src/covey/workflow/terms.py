"""Terms: columns that scikit-learn's transformers expand, each into one group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer

from covey.tables import TableError, apart, find_columns

# Default number of spline columns: a cubic with two interior knots.
SPLINE_COLUMNS = 5
DEGREE = 3

# Arrays of text reserve the length of the longest name for every entry.
LONG_NAME = 200


def read_terms(spline: Sequence[str], onehot: Sequence[str], columns: Sequence[str]) -> dict[str, int]:
    """The columns to expand: the number of spline columns, or 0 for one-hot.

    >>> read_terms(["age:7", "b*"], ["sex"], ["age", "bmi", "bp", "sex"])
    {'age': 7, 'bmi': 5, 'bp': 5, 'sex': 0}
    >>> read_terms(["age:7,bmi"], [], ["age", "bmi"])
    {'age': 7, 'bmi': 5}
    """
    terms: dict[str, int] = {}
    commas = {item for item in spline if _split(item)[0] in columns}  # a column may be called a,b
    for item in apart(spline, {*columns, *commas}):
        name, size = (item, SPLINE_COLUMNS) if item in columns else _split(item)
        for column in find_columns(name, columns, "--spline"):
            terms[column] = size
    for item in onehot:
        for column in find_columns(item, columns, "--onehot"):
            if column in terms:
                raise TableError(f"Column {column!r} is given to both --spline and --onehot; choose one.")
            terms[column] = 0
    return terms


def _split(item: str) -> tuple[str, int]:
    name, colon, number = item.rpartition(":")
    if not colon or not number.isdigit():
        return item, SPLINE_COLUMNS
    if int(number) < DEGREE:
        raise TableError(f"--spline {item}: a cubic spline has at least {DEGREE} columns, not {number}.")
    return name, int(number)


def make_transformer(
    columns: Sequence[str], terms: Mapping[str, int], impute: str | None, handle_unknown: str = "error"
) -> ColumnTransformer:
    """The transformer from table columns to columns of the fit: plain ones first, then one block per term."""
    plain = [name for name in columns if name not in terms]
    filled = (SimpleImputer(strategy=impute),) if impute else ()
    blocks: list[tuple[str, Any, list[str]]] = [("plain", filled[0] if filled else "passthrough", plain)]
    for i, (column, size) in enumerate(terms.items()):
        # the intercept already spans the first basis function
        step: Any = (
            SplineTransformer(
                n_knots=size - DEGREE + 2, degree=DEGREE, knots="quantile", include_bias=False, extrapolation="linear"
            )
            if size
            else OneHotEncoder(sparse_output=False, handle_unknown=handle_unknown)
        )
        blocks.append((f"term{i}", make_pipeline(*filled, step) if size and filled else step, [column]))
    return ColumnTransformer(blocks, verbose_feature_names_out=False).set_output(transform="pandas")


def compact(fitted: ColumnTransformer) -> None:
    """Store names as arrays of text, which a file holds as one block instead of name by name.

    Models with ten thousand columns are written and read several times as fast.
    """
    kept: dict[tuple[str, ...], Any] = {}

    def text(names: Any) -> Any:
        key = tuple(map(str, names))
        if max(map(len, key), default=0) > LONG_NAME:
            return names
        return kept.setdefault(key, np.array(key, dtype=str))

    for part in (fitted, *(step for _, step, _ in fitted.transformers_)):
        if "feature_names_in_" in getattr(part, "__dict__", ()):
            part.feature_names_in_ = text(part.feature_names_in_)
    fitted.transformers = [(name, step, text(columns)) for name, step, columns in fitted.transformers]
    fitted.transformers_ = [(name, step, text(columns)) for name, step, columns in fitted.transformers_]


def column_sources(fitted: ColumnTransformer) -> list[str]:
    """The table column behind each column of the fit.

    Taken from the positions of the transformer's blocks. Names are ambiguous: ``a_b_c`` may be the value ``b_c`` of a
    one-hot column ``a``, or the value ``c`` of a column ``a_b``.
    """
    sources: list[str] = []
    for name, _, columns in fitted.transformers_:
        block = fitted.output_indices_[name]
        names = [str(column) for column in columns]
        sources += names if name == "plain" else names * (block.stop - block.start)
    return sources
