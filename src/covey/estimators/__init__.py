"""The scikit-learn front: validate, pose, select, publish."""

from covey.estimators.regressor import GroupSparseRegressor
from covey.estimators.terms import TermGroups

__all__ = ["GroupSparseRegressor", "TermGroups"]
