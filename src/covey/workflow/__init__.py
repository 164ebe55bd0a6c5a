"""The work behind the commands, without a terminal: from a table to a fit in a folder, and to predictions."""

from covey.settings import FitSettings, PredictSettings, StabilitySettings, TableSettings
from covey.workflow.fit import FOLD_STAGES, Fit, fit_table
from covey.workflow.folder import FILES, GROUP_FILES, TERM_FILES, check_out, write_fit
from covey.workflow.predict import Prediction, predict_table
from covey.workflow.problem import Problem, pose

__all__ = [
    "FILES",
    "FOLD_STAGES",
    "GROUP_FILES",
    "TERM_FILES",
    "Fit",
    "FitSettings",
    "PredictSettings",
    "Prediction",
    "Problem",
    "StabilitySettings",
    "TableSettings",
    "check_out",
    "fit_table",
    "pose",
    "predict_table",
    "write_fit",
]
