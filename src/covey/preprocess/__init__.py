"""Working coordinates: centred, scaled, orthonormal within groups; and the way back."""

from covey.preprocess.working import Standardize, WorkingProblem, prepare, spans

__all__ = ["Standardize", "WorkingProblem", "prepare", "spans"]
