"""What the events have to know of a loss: two functions, and a way back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from covey.validation import FloatArray

__all__ = ["Objective"]


class Objective(ABC):
    """A loss on some rows, at its minimiser on the awake groups.

    Attributes
    ----------
    n_groups : int
        Awake and sleeping ones together.
    separated : sequence of bool
        Whether the minimum of each model so far lies at infinity; empty for a loss of which none does.
    """

    n_groups: int
    separated: Sequence[bool] = ()

    @abstractmethod
    def gradient_norms(self) -> FloatArray:
        """The norm of each group of the gradient at the present model; shape (n_groups,)."""

    @abstractmethod
    def refit(self, group: int) -> None:
        """Let a group join, and go to the minimiser on all that are awake."""

    @abstractmethod
    def truncate(self, n_awake: int) -> None:
        """Go back to the minimiser on the first so many groups that joined."""

    @abstractmethod
    def widen(self, rows: Any) -> None:
        """Go on with the table of more groups, which come after those there were."""

    @abstractmethod
    def models(self, first: int, intercept: bool) -> tuple[FloatArray, FloatArray]:
        """The minimisers on the first m groups that joined, for every m from the first on, without extra columns.

        Returns
        -------
        W, levels : ndarray, shape (n_models, n_outputs, k) and (n_models, n_outputs)
            Columns of the groups in the order in which they joined.
        """

    def refit_all(self, groups: Sequence[int]) -> None:
        """Let groups join one after another."""
        for group in groups:
            self.refit(group)
