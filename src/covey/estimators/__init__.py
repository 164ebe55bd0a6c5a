"""The scikit-learn front: validate, pose the path, choose the time, map back."""

from covey.estimators.cv import GroupSparseRegressorCV
from covey.estimators.regressor import GroupSparseRegressor
from covey.estimators.terms import TermGroups

__all__ = ["GroupSparseRegressor", "GroupSparseRegressorCV", "TermGroups"]
