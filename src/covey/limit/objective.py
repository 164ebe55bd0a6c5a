"""What the events have to know of a loss: two functions, and a way back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from covey.validation import FloatArray

__all__ = ["Objective"]


class Objective(ABC):
    """A loss on some rows, at its minimiser on the awake groups.

    Attributes
    ----------
    n_groups : int
        Awake and sleeping ones together.
    """

    n_groups: int

    @abstractmethod
    def gradient_norms(self) -> FloatArray:
        """The norm of each group of the gradient at the present model; shape (n_groups,)."""

    @abstractmethod
    def refit(self, group: int) -> None:
        """Let a group join, and go to the minimiser on all that are awake."""

    @abstractmethod
    def truncate(self, n_awake: int) -> None:
        """Go back to the minimiser on the first so many groups that joined."""

    def refit_all(self, groups: Sequence[int]) -> None:
        """Let groups join one after another."""
        for group in groups:
            self.refit(group)
