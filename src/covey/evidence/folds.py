"""The outer folds of a nested score, and rows of any kind of table."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, check_cv

from covey.designs import GenotypeDesign
from covey.designs.rows import Unread
from covey.losses.cox import FieldNames, read_survival
from covey.losses.risk_sets import EVENT, START, STOP, STRATUM
from covey.search.splits import SplitsLike, Splitter
from covey.validation import Array, MatrixLike, PerRow, check_sparse, pandas_frame, whole

Rows = NDArray[np.intp]


def outer_folds(
    cv: SplitsLike, y: Array, *, has_classes: bool = False, split_groups: PerRow = None, random_state: int | None = 0,
    events: Array | None = None,
) -> list[tuple[Rows, Rows]]:  # fmt: skip
    """Pairs of training and test rows.

    A number gives shuffled folds: `KFold`, `StratifiedKFold` for classes (with fewer folds if a class has fewer rows),
    and `GroupKFold` or `StratifiedGroupKFold` if `split_groups` labels rows that must stay together. For survival
    times, folds are stratified by the labels `events`, with an event in each.
    """
    n = len(y)
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        n_folds = whole(int(cv), "cv as a number of folds", least=2)
        cv = _splitter(n_folds, y, has_classes, split_groups, random_state, events)
    labels = y if events is None else events
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")  # a stratum may have fewer events than folds
        pairs = check_cv(cv).split(Unread(n), labels, split_groups)
        folds = [(_positions(train, n), _positions(test, n)) for train, test in pairs]
    for number, (train, test) in enumerate(folds, start=1):
        if train.size == 0 or test.size == 0:
            raise ValueError(f"Fold {number} of cv has no {'test' if train.size else 'training'} rows.")
        if np.intersect1d(train, test).size:
            raise ValueError(f"Fold {number} of cv tests rows that it also trains on, so its score would be biased.")
    return folds


def _positions(rows: ArrayLike, n: int) -> Rows:
    """The rows of one side of a fold: positions, or True for each of them."""
    places = np.asarray(rows)
    if places.dtype == bool and places.shape == (n,):
        return np.flatnonzero(places)
    if places.ndim != 1 or (
        places.size and (places.dtype.kind not in "iu" or not 0 <= places.min() <= places.max() < n)
    ):
        raise ValueError(f"The rows of a fold of cv must be positions from 0 to {n - 1}, or one True or False per row.")
    return places.astype(np.intp)


def _splitter(
    k: int, y: Array, has_classes: bool, split_groups: PerRow, random_state: int | None, events: Array | None
) -> Splitter:
    if split_groups is not None:
        n_labels = len(np.unique(np.asarray(split_groups)))
        if n_labels < k:
            raise ValueError(f"split_groups has {n_labels} different labels, too few for {k} folds: use cv={n_labels}.")
        return StratifiedGroupKFold(k, shuffle=True, random_state=random_state) if has_classes else GroupKFold(k)
    if events is not None:
        n_events = int((events % 2).sum())
        if n_events < 2:
            raise ValueError("Nested folds need at least two events: one to fit and one to score.")
        return StratifiedKFold(min(k, n_events), shuffle=True, random_state=random_state)
    if has_classes:
        fewest = int(np.unique(y, return_counts=True)[1].min())
        if fewest < 2:
            raise ValueError("A class with a single row cannot be predicted by a fit without it: leave the row out.")
        return StratifiedKFold(min(k, fewest), shuffle=True, random_state=random_state)
    if len(y) < k:
        raise ValueError(f"There are {len(y)} rows, too few for {k} folds.")
    return KFold(k, shuffle=True, random_state=random_state)


def event_labels(model: BaseEstimator, y: ArrayLike) -> NDArray[np.intp]:
    """Labels by which folds of survival times are stratified, per stratum: odd numbers are events."""
    observed = read_survival(y, "y", FieldNames.of(model)).rows
    return np.asarray(2 * observed[:, STRATUM] + observed[:, EVENT], dtype=np.intp)


def as_table(model: BaseEstimator, y: ArrayLike) -> ArrayLike:
    """Survival times as one table with one line per row; unlike a pair of arrays, it can be split."""
    if not isinstance(y, tuple | list):
        return pandas_frame(y, "y")
    times = read_survival(y, "y", FieldNames.of(model)).rows
    table = pd.DataFrame({model.time: times[:, STOP], model.event: times[:, EVENT] > 0})
    return table.assign(**{model.start: times[:, START]}) if np.isfinite(times[:, START]).any() else table


def indexable(X: MatrixLike) -> Any:
    """A table whose rows can be taken: a pandas DataFrame, a CSR array, an ndarray or genotypes."""
    if isinstance(X, GenotypeDesign) or (hasattr(X, "iloc") and not hasattr(X, "dask")):
        return X
    if sp.issparse(X):
        check_sparse(X, "X")
        return sp.csr_array(X)
    if isinstance(X, np.ndarray | list | tuple):
        return np.asarray(X)
    raise ValueError(
        f"Nested folds need an array, a DataFrame, a sparse matrix or genotypes, not {type(X).__name__}: give some of "
        "its rows in memory."
    )


def take_rows(values: Any, rows: Rows) -> Any:
    """Some rows of a vector or table; None stays None."""
    if isinstance(values, GenotypeDesign):
        return values.on_rows(rows)
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if values is None or sp.issparse(values):
        return None if values is None else values[rows]
    return np.asarray(values)[rows]
