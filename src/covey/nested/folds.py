"""The outer folds of a nested score, and rows of whatever the data are kept in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, check_cv

from covey.validation import whole

__all__ = ["Rows", "outer_folds", "part", "row_taker"]

Rows = NDArray[np.intp]


def outer_folds(
    cv: Any, y: Any, *, has_classes: bool = False, split_groups: Any = None, random_state: int | None = 0
) -> list[tuple[Rows, Rows]]:
    """Pairs of training and test rows.

    A number gives shuffled folds: `KFold`, `StratifiedKFold` for classes (fewer folds where a class has fewer rows),
    and `GroupKFold` or `StratifiedGroupKFold` where rows have labels that stay together.
    """
    n = len(y)
    splitter = cv
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        splitter = _splitter(
            whole(int(cv), "cv as a number of folds", least=2), y, has_classes, split_groups, random_state
        )
    labels = y if has_classes else np.zeros(n)
    found = [
        (np.asarray(train), np.asarray(test))
        for train, test in check_cv(splitter).split(np.zeros((n, 1)), labels, split_groups)
    ]
    for number, (train, test) in enumerate(found, start=1):
        if train.size == 0 or test.size == 0:
            raise ValueError(f"Fold {number} of cv has no {'test' if train.size else 'training'} rows.")
        if np.intersect1d(train, test).size:
            raise ValueError(f"Fold {number} of cv tests rows that it also trains on: no score of it can be believed.")
    return found


def _splitter(k: int, y: Any, has_classes: bool, split_groups: Any, random_state: int | None) -> Any:
    n = len(y)
    if split_groups is not None:
        n_labels = len(np.unique(np.asarray(split_groups)))
        if n_labels < k:
            raise ValueError(f"split_groups has {n_labels} different labels, too few for {k} folds: use cv={n_labels}.")
        return StratifiedGroupKFold(k, shuffle=True, random_state=random_state) if has_classes else GroupKFold(k)
    if has_classes:
        fewest = int(np.unique(y, return_counts=True)[1].min())
        if fewest < 2:
            raise ValueError("A class with a single row cannot be predicted by a fit without it: leave the row out.")
        return StratifiedKFold(min(k, fewest), shuffle=True, random_state=random_state)
    if n < k:
        raise ValueError(f"There are {n} rows, too few for {k} folds.")
    return KFold(k, shuffle=True, random_state=random_state)


def row_taker(X: Any) -> Callable[[Rows], Any]:
    """A function that takes rows of X."""
    if hasattr(X, "iloc") and not hasattr(X, "dask"):
        return lambda rows: X.iloc[rows]
    if sp.issparse(X):
        table = sp.csr_array(X)
        return lambda rows: table[rows]
    if isinstance(X, np.ndarray | list | tuple):
        values = np.asarray(X)
        return lambda rows: values[rows]
    raise ValueError(
        f"Nested folds take rows of arrays, DataFrames and sparse matrices apart, not of {type(X).__name__}: give some "
        "rows of it in memory."
    )


def part(values: Any, rows: Rows) -> Any:
    """Some entries of a vector or table of one row each; None stays None."""
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    return None if values is None else np.asarray(values)[rows]
