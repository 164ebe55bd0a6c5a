"""Recipes: ways to get a model that can be repeated on other rows."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Cleaned", "Recipe", "Reweighted"]


class Cleaned(NamedTuple):
    """Groups of the limit path, of which some were dropped again, fitted by least squares or a ridge.

    Attributes
    ----------
    round : int
        0 for a path from nothing, 1 for one that went on from the groups that round 0 kept, and so on.
    prefix : int
        How many events of the path were looked at.
    size : int
        How many groups are left.
    ridge : float
        The penalty, in units of the columns; 0 for least squares.
    """

    round: int
    prefix: int
    size: int
    ridge: float

    def text(self, unpenalised: str = "least squares") -> str:
        """In words; `unpenalised` is what a fit without a ridge is called."""
        if self.size == 0:
            return "no group"
        fit = f"ridge {self.ridge:g}" if self.ridge else unpenalised
        again = f", round {self.round + 1}" if self.round else ""
        return f"{fit} on {self.size} of the first {self.prefix} groups{again}"


class Reweighted(NamedTuple):
    """A ridge on all columns, with penalties that were divided by the groups' norms some times.

    Attributes
    ----------
    penalty : float
        In units of the mean eigenvalue of the kernel matrix.
    round : int
        How often the penalties were divided.
    """

    penalty: float
    round: int

    def text(self, unpenalised: str = "") -> str:
        """In words."""
        times = "" if not self.round else ", reweighted" + (f" {self.round} times" if self.round > 1 else " once")
        return f"ridge {self.penalty:.3g} on all groups{times}"


Recipe = Cleaned | Reweighted
