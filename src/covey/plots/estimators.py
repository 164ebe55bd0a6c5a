"""The estimators that displays accept."""

from __future__ import annotations

from sklearn.base import BaseEstimator

from covey.validation import last_step

__all__ = ["fitted_step"]


def fitted_step(estimator: BaseEstimator) -> BaseEstimator:
    """The fitted covey estimator that was given, or the last step of a pipeline."""
    last = last_step(estimator)
    if hasattr(last, "path_") and hasattr(last, "selected_groups_"):
        return last
    if hasattr(last, "group_table"):
        raise ValueError(f"{type(last).__name__} is not fitted: call fit first.")
    raise ValueError(
        f"{type(last).__name__} is not an estimator that this display accepts: give a GroupSparseRegressor, "
        "GroupSparseClassifier or GroupSparseCox, or a pipeline that ends in one."
    )
