"""Model selection: candidates, the rows that score them, and the rule that picks one."""

from covey.selection.criteria import Discrepancy, InformationCriterion, Size
from covey.selection.selecting import Problem, Selected, read_selection, select
from covey.selection.splitting import Folds, HoldOut
from covey.selection.thresholds import Thresholds

__all__ = [
    "Discrepancy",
    "Folds",
    "HoldOut",
    "InformationCriterion",
    "Problem",
    "Selected",
    "Size",
    "Thresholds",
    "read_selection",
    "select",
]
