"""The scikit-learn front: validate, pose, select, publish."""

from covey.estimators.classifier import GroupSparseClassifier
from covey.estimators.cox import GroupSparseCox
from covey.estimators.regressor import GroupSparseRegressor
from covey.estimators.terms import TermGroups

__all__ = ["GroupSparseClassifier", "GroupSparseCox", "GroupSparseRegressor", "TermGroups"]
