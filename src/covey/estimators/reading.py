"""Convert the input of `fit` and `predict` to a design, a response and weights: tables by scikit-learn's rules."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeGuard

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import validate_data

from covey.designs import DenseDesign, Design, GenotypeDesign, as_design, is_table
from covey.estimators.formula import formula_columns
from covey.groups import Groups
from covey.losses.base import Response
from covey.tables.columns import named_faults
from covey.tables.complaint import shown
from covey.tables.unreadable import disguise_of
from covey.terms import expand
from covey.terms.reading import as_frame, refuse_storage
from covey.terms.unusual import NewValuesWarning, unusual_in_terms, unusual_values
from covey.validation import (
    Array,
    FloatArray,
    MatrixLike,
    PerRow,
    as_response,
    as_sample_weight,
    name_columns,
    on_host,
    pandas_frame,
    positive,
    refuse_odd,
)

# Weights count rows in the information criteria, and sums over rows must stay finite.
LARGEST_WEIGHT = 1e100

# The largest value of X whose squares, summed over rows, stay finite.
LARGEST_VALUE = 1e150

# The largest array that skips scikit-learn's checks; for larger ones they take a negligible share of the time.
SMALL = 2**16

# Attributes that not every fit sets; those of an earlier fit are deleted.
SOMETIMES = (
    "formula_", "expansion_", "term_means_", "constraints_", "response_names_", "response_strengths_",
    "response_deviations_",
)  # fmt: skip


def read_problem(
    estimator: BaseEstimator, X: MatrixLike, y: ArrayLike, sample_weight: PerRow, read: Callable[[ArrayLike], Response]
) -> tuple[Design, Response, FloatArray]:
    """The design, the response and the row weights; sets ``n_features_in_`` and ``feature_names_in_``.

    `read` reads the response: a method of the loss.
    """
    for name in SOMETIMES:
        vars(estimator).pop(name, None)
    X, y = pandas_frame(X), pandas_frame(on_host(y), "y")
    refuse_odd(X, "X")
    refuse_odd(y, "y")
    refuse_odd(sample_weight, "sample_weight")
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    text = np.asarray(y) if isinstance(y, pd.Series | np.ndarray) else np.empty(0)
    # text such as 1,5 or 12% is not taken for classes; the command line does the same
    if text.ndim == 1 and text.dtype.kind in "OU" and (found := disguise_of(pd.Series(text))):
        raise ValueError(f"y holds {shown(text[0])}, {found[0]}; {found[1]}.")
    design = _read_design(estimator, X) if estimator.terms is None else _read_terms(estimator, X, sample_weight)
    design.check_labels(y, "y")
    design.check_labels(sample_weight, "sample_weight")
    response = read(y)
    if len(response.y) != design.shape[0]:
        raise ValueError(f"y has {len(response.y)} entries, but {design.name} has {design.shape[0]} rows.")
    if response.loss.several and hasattr(y, "columns") and y.columns.is_unique:
        estimator.response_names_ = [str(name) for name in y.columns]
    if not response.loss.quadratic:
        if np.asarray(y).shape[1:] == (1,):
            column = "A column-vector y was passed when a 1d array was expected: use y.ravel()."
            warnings.warn(column, DataConversionWarning, stacklevel=3)
        bad = np.flatnonzero(np.asarray(on_host(design.largest())) > LARGEST_VALUE)
        if bad.size:  # only squared loss scales such columns first
            raise ValueError(
                f"{design.name} has values above {LARGEST_VALUE:g} in {name_columns(bad, design.columns)}, whose "
                "squares overflow: change the units."
            )
    return design, response, read_weight(sample_weight, design.shape[0])


def refuse_constant(
    response: Response, weight: FloatArray, offset: FloatArray | None, names: Sequence[str] | None
) -> None:
    """Refuse numbers that are the same in every row, as the command line does: no column has anything to predict.

    With an offset that differs between rows there is something, and without an intercept as well.
    """
    rows, loss = weight > 0, response.loss
    if rows.sum() < 2:  # the search refuses that
        return
    if loss.coupled or response.labels is not None or (offset is not None and np.ptp(offset[rows], axis=0).any()):
        return
    y = response.y[rows]
    same = np.atleast_1d(np.ptp(y, axis=0) == 0)
    if loss.several and same.any():
        j = int(np.argmax(same))
        name = j if names is None else repr(names[j])
        raise ValueError(f"Column {name} of y is {y[0, j]:g} in every row: there is nothing to predict; leave it out.")
    if same.all():
        raise ValueError(f"y is {y.flat[0]:g} in every row: there is nothing to predict.")


def read_weight(sample_weight: PerRow, n_rows: int) -> FloatArray:
    """The weights of the rows; they are not normalised, because the information criteria count rows by weight."""
    if sample_weight is None:
        return np.ones(n_rows)
    if isinstance(sample_weight, numbers.Real):
        return np.full(n_rows, positive(sample_weight, "sample_weight"))
    weight = as_response(sample_weight, n_rows, name="sample_weight")
    as_sample_weight(weight, n_rows)
    if weight.max() > LARGEST_WEIGHT:
        raise ValueError(
            f"sample_weight has values up to {weight.max():.3g}; weights count rows: divide them by a constant."
        )
    return weight


def read_always(groups: Groups, always: Iterable[Hashable], columns: Iterable[str] | None = None) -> list[int]:
    """The groups that are in every model, given by name or by the name of a column that is a group by itself."""
    named = [always] if isinstance(always, str) else always
    if columns is not None and isinstance(named, Iterable):
        known, places, named = set(groups.names), {str(name): j for j, name in enumerate(columns)}, list(named)
        for k, name in enumerate(named):
            if name in known or not isinstance(name, str) or name not in places:
                continue
            inside = np.repeat(np.arange(groups.n_groups), groups.sizes)[groups.members == places[name]]
            if len(inside) > 1 or groups.sizes[inside[0]] > 1:
                raise ValueError(
                    f"always names the column {name!r}, which is one of several in group "
                    f"{' and '.join(repr(groups.names[l]) for l in inside[:3])}: name the group, or make the column a "
                    "group by itself."
                )
            named[k] = groups.names[inside[0]]
    return groups.positions(named, "always")


def _read_terms(estimator: BaseEstimator, X: Any, sample_weight: PerRow) -> Design:
    """The columns of the terms of a table, which the estimator keeps."""
    refuse_storage(X)
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_rows == 1:
        raise ValueError("X has 1 row; a fit needs at least 2.")
    weight = None if sample_weight is None else read_weight(sample_weight, n_rows)
    estimator.expansion_, design = expand(estimator.terms, estimator.groups, X, weight, estimator.constraints)
    variables = estimator.expansion_.encoding.variables
    estimator.n_features_in_ = len(variables)
    estimator.feature_names_in_ = np.asarray(variables, dtype=object)
    return design


def _read_design(estimator: BaseEstimator, X: MatrixLike) -> Design:
    """The columns of `fit`, whose number and names the estimator keeps."""
    if is_table(X) or sp.issparse(X):
        return _checked(estimator, X, ensure_min_samples=2)
    design = as_design(X)
    if design.shape[0] < 2:
        raise ValueError(f"{design.name} has {design.shape[0]} rows; a fit needs at least 2.")
    estimator.n_features_in_ = design.shape[1]
    if design.columns is not None:
        estimator.feature_names_in_ = np.asarray(design.columns, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    return design


def _checked(estimator: BaseEstimator, X: MatrixLike, **options: object) -> Design:
    """A table, array or sparse matrix by scikit-learn's rules; errors name columns and the remedy."""
    options |= {"accept_sparse": ["csc", "csr"], "dtype": [np.float64, np.float32]}
    with named_faults(X), np.errstate(invalid="ignore", over="ignore"):  # the check adds infinities of both signs
        return as_design(validate_data(estimator, X, **options))


def read_rows(estimator: BaseEstimator, X: MatrixLike) -> Design:
    """Rows to predict, checked to have the same columns as in `fit`."""
    if hasattr(estimator, "expansion_"):
        expansion = estimator.expansion_
        frame = as_frame(X, expansion.encoding.variables)
        columns, used = expansion.encoding.transform(frame), np.asarray(np.atleast_2d(estimator.coef_).any(axis=0))
        said = unusual_values(expansion.encoding, frame, expansion.variables_in(used))
        for sentence in (*said, *unusual_in_terms(expansion, frame, columns, used)):
            warnings.warn(sentence, NewValuesWarning, stacklevel=4)
        return expansion.on(columns)
    if _is_ready(X, estimator):
        return DenseDesign(X)
    X = pandas_frame(X)
    if hasattr(estimator, "formula_"):
        X = formula_columns(estimator.formula_, X)
    refuse_odd(X, "X")
    if is_table(X) or sp.issparse(X):
        return _checked(estimator, X, reset=False)
    design = as_design(X)
    expected = estimator.n_features_in_
    if design.shape[1] != expected:
        hint = " Open new genotypes with like= those of the fit, with the same covariates beside them."
        raise ValueError(
            f"X has {design.shape[1]} features, but {type(estimator).__name__} is expecting {expected} features as "
            f"input.{hint if isinstance(design, GenotypeDesign) else ''}"
        )
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and design.columns is not None:
        wrong = [j for j, (a, b) in enumerate(zip(names, design.columns, strict=True)) if a != b]
        if wrong:
            raise ValueError(
                f"Column {wrong[0]} of X is {design.columns[wrong[0]]!r}, but was {names[wrong[0]]!r} in fit. Give the "
                "columns in the order of fit."
            )
    return design


def _is_ready(X: MatrixLike, estimator: BaseEstimator) -> TypeGuard[Array]:
    """Whether a small array would pass all of scikit-learn's checks, which take longer than predicting."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and 0 < X.size <= SMALL
        and X.shape[1] == estimator.n_features_in_
        and (X.dtype == np.float64 or X.dtype == np.float32)
        and X.dtype.isnative
        and not hasattr(estimator, "feature_names_in_")  # scikit-learn warns of the missing names
        and bool(np.isfinite(X).all())
    )
