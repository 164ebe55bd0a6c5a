"""Working coordinates (centred, scaled, orthonormal within groups), and the map back to the user's."""

from covey.preprocess.factoring import Standardize, check_standardize
from covey.preprocess.working import WorkingProblem, prepare

__all__ = ["Standardize", "WorkingProblem", "check_standardize", "prepare"]
