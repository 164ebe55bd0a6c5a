"""Working coordinates: centred, scaled, orthonormal within groups; and the way back."""

from covey.preprocess.working import Standardize, WorkingProblem, prepare

__all__ = ["Standardize", "WorkingProblem", "prepare"]
