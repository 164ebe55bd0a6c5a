"""Objects for the ``selection=`` of estimators: how a model is chosen."""

from covey.search.criteria import Discrepancy, InformationCriterion, Size
from covey.search.splits import Folds, HoldOut

__all__ = ["Discrepancy", "Folds", "HoldOut", "InformationCriterion", "Size"]
