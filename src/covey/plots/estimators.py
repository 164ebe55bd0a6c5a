"""Which estimators displays take."""

from __future__ import annotations

from typing import Any

__all__ = ["fitted_step"]


def fitted_step(estimator: Any) -> Any:
    """The fitted estimator of covey's that was given, or that a pipeline ends in."""
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    if hasattr(last, "path_") and hasattr(last, "selected_groups_"):
        return last
    if hasattr(last, "group_table"):
        raise ValueError(f"{type(last).__name__} is not fitted: call fit first.")
    raise ValueError(
        f"{type(last).__name__} is no estimator that this display takes: give a GroupSparseRegressor, "
        "GroupSparseClassifier or GroupSparseCox, or a pipeline that ends in one."
    )
