"""Convert the input of `fit` and `predict` to a design: tables by scikit-learn's rules, other kinds by their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data

from covey.designs import DenseDesign, Design, as_design, is_table
from covey.estimators.formula import formula_columns
from covey.losses import Loss, Squared
from covey.validation import as_response, as_row_weights, name_columns, on_host, pandas_frame, refuse_odd

__all__ = ["read_problem", "read_rows"]

# Weights count rows in the information criteria, and sums over rows must stay finite.
LARGEST_WEIGHT = 1e100

# The largest value of X whose squares, summed over rows, stay finite.
LARGEST_VALUE = 1e150

# The largest array that skips scikit-learn's checks; for larger ones they take a negligible share of the time.
SMALL = 2**16

FLOATS = [np.float64, np.float32]
SPARSE = ["csc", "csr"]


def read_problem(
    estimator: BaseEstimator, X: Any, y: Any, sample_weight: Any, loss: Loss | None = None
) -> tuple[Design, Any, Any]:
    """The design, the response and the row weights; sets ``n_features_in_`` and ``feature_names_in_``.

    Without a loss, the response holds class labels and is returned as given.
    """
    if loss is not None:
        _refuse_text(y)
    X, y = pandas_frame(X), pandas_frame(y, "y")
    if hasattr(estimator, "formula_"):  # of an earlier fit, by `from_formula`
        del estimator.formula_
    refuse_odd(X, "X")
    refuse_odd(y, "y")
    refuse_odd(sample_weight, "sample_weight")
    if loss is None:
        _refuse_missing_labels(y)
    if is_table(X) or sp.issparse(X):
        with np.errstate(invalid="ignore", over="ignore"):  # scikit-learn's check adds infinities of both signs
            table, y = validate_data(
                estimator, X, y, accept_sparse=SPARSE, dtype=FLOATS, y_numeric=loss is not None,
                multi_output=loss is not None, order=None, ensure_min_samples=2,
            )  # fmt: skip
        weight = _check_sample_weight(sample_weight, table, dtype=np.float64, ensure_non_negative=True)
        if weight.max() > LARGEST_WEIGHT:
            raise ValueError(
                f"sample_weight has values up to {weight.max():.3g}; weights count rows: divide them by a constant."
            )
        if loss is None:
            return _check_size(as_design(table)), column_or_1d(y), weight
        response = np.asarray(y, dtype=np.float64)
        squared = isinstance(loss, Squared)
        if squared:
            return as_design(table), response, weight
        return _check_size(as_design(table)), response if response.ndim == 2 else loss.check(response), weight
    design = as_design(X)
    n, p = design.shape
    if n < 2:
        raise ValueError(f"{design.name} has {n} rows; a fit needs at least 2.")
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    estimator.n_features_in_ = p
    if design.columns is not None:
        estimator.feature_names_in_ = np.asarray(design.columns, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    if not isinstance(loss, Squared) or np.ndim(y) == 2:
        # other losses need every row in memory
        weight = as_row_weights(sample_weight, n)
        if loss is None:
            return design, column_or_1d(np.asarray(on_host(y))), weight
        given = np.asarray(on_host(y), dtype=float)
        if len(given) != n:
            raise ValueError(f"y has {len(given)} entries, but {design.name} has {n} rows.")
        return design, given if given.ndim == 2 else loss.check(given), weight
    # weights are not normalised: the information criteria count rows by weight
    return design, as_response(y, n), as_row_weights(None if np.ndim(sample_weight) == 0 else sample_weight, n)


def _is_ready(estimator: BaseEstimator, X: Any) -> bool:
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


def _refuse_missing_labels(y: Any) -> None:
    """Refuse None, NaN and pandas' NA among class labels, which have no order and equal nothing."""
    if isinstance(y, list | tuple | np.ndarray | pd.Series | pd.DataFrame) and len(y):
        labels = y if isinstance(y, pd.Series | pd.DataFrame) else pd.Series(list(y), dtype=object)
        bad = np.flatnonzero(labels.isna().to_numpy().reshape(len(y), -1).any(axis=1))
        if bad.size:
            raise ValueError(
                f"y has missing labels (NaN, None or NA), first in row {bad[0]} ({bad.size} in all): drop these rows, "
                "or give them a label."
            )


def _check_size(design: Design) -> Design:
    """Refuse columns whose squares overflow; only the squared loss scales such columns first."""
    bad = np.flatnonzero(np.asarray(design.largest()) > LARGEST_VALUE)
    if bad.size:
        where = name_columns(bad, design.columns)
        raise ValueError(
            f"{design.name} has values above {LARGEST_VALUE:g} in {where}, whose squares overflow: change the units."
        )
    return design


def _refuse_text(y: Any) -> None:
    """Point to the classifier if the response is text."""
    kind = getattr(getattr(y, "dtype", None), "kind", None)
    if kind not in ("O", "U", "S") and not isinstance(y, list | tuple):
        return
    values = y if isinstance(y, list | tuple) else np.asarray(y).ravel()
    if len(values) and isinstance(values[0], str | bytes):
        raise ValueError("y holds text, and a regressor needs numbers: covey.GroupSparseClassifier takes any labels.")


def read_rows(estimator: BaseEstimator, X: Any) -> Design:
    """Rows to predict, checked to have the same columns as in `fit`."""
    if _is_ready(estimator, X):
        return DenseDesign(X)
    X = pandas_frame(X)
    if hasattr(estimator, "formula_"):
        X = formula_columns(estimator.formula_, X)
    refuse_odd(X, "X")
    if is_table(X) or sp.issparse(X):
        with np.errstate(invalid="ignore", over="ignore"):
            return as_design(validate_data(estimator, X, accept_sparse=SPARSE, dtype=FLOATS, reset=False))
    design = as_design(X)
    expected = estimator.n_features_in_
    if design.shape[1] != expected:
        raise ValueError(
            f"X has {design.shape[1]} features, but {type(estimator).__name__} is expecting {expected} features as "
            "input."
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
