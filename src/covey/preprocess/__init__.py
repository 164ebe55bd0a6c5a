"""Working coordinates: centred, scaled, orthonormal within groups; and the way back."""

from covey.preprocess.working import Standardize, WorkingProblem, check_standardize, prepare, spans

__all__ = ["Standardize", "WorkingProblem", "check_standardize", "prepare", "spans"]
