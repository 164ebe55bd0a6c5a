"""How a model is chosen: objects for ``selection=`` and ``recipes=`` of the estimators."""

from covey.search.criteria import Discrepancy, InformationCriterion, Size
from covey.search.recipes import Model, Recipe, Training
from covey.search.splits import Folds, HoldOut

__all__ = ["Discrepancy", "Folds", "HoldOut", "InformationCriterion", "Model", "Recipe", "Size", "Training"]
