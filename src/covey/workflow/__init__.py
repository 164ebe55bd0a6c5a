"""The work behind the commands, without a terminal: from a table to a fit in a folder, and to predictions."""

from covey.workflow.fit import Fit, fit_table
from covey.workflow.folder import GROUP_FILES, TERM_FILES, check_out, write_fit
from covey.workflow.predict import predict_table
from covey.workflow.problem import pose

__all__ = [
    "GROUP_FILES",
    "TERM_FILES",
    "Fit",
    "check_out",
    "fit_table",
    "pose",
    "predict_table",
    "write_fit",
]
