"""The theory as tools."""

from covey.theory.coherence import Coherence, coherence, coherence_matrix

__all__ = ["Coherence", "coherence", "coherence_matrix"]
