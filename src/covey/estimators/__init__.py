"""The scikit-learn estimators: validate the input, select a model, set the fitted attributes."""

from covey.estimators.classifier import GroupSparseClassifier
from covey.estimators.cox import GroupSparseCox
from covey.estimators.regressor import GroupSparseRegressor
from covey.estimators.terms import TermGroups

__all__ = ["GroupSparseClassifier", "GroupSparseCox", "GroupSparseRegressor", "TermGroups"]
