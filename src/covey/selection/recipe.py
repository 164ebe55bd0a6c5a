"""Recipes: ways to make a model that can be repeated on other rows."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Cleaned", "Recipe", "Reweighted"]


class Cleaned(NamedTuple):
    """Groups of the limit path that remain after backward elimination, fitted by least squares or a ridge.

    Attributes
    ----------
    round : int
        0 for a path that starts without groups, 1 for one that starts from the groups that round 0 kept, and so on.
    prefix : int
        The length of the path's prefix that elimination started from.
    size : int
        The number of groups left.
    ridge : float
        The penalty on columns of unit variance; 0 for least squares.
    """

    round: int
    prefix: int
    size: int
    ridge: float

    def text(self, unpenalised: str = "least squares") -> str:
        """A description; `unpenalised` is the name of a fit without a ridge."""
        if self.size == 0:
            return "no group"
        fit = f"ridge {self.ridge:g}" if self.ridge else unpenalised
        again = f", round {self.round + 1}" if self.round else ""
        return f"{fit} on {self.size} of the first {self.prefix} groups{again}"


class Reweighted(NamedTuple):
    """A ridge on all columns, possibly reweighted by dividing penalties by the groups' norms.

    Attributes
    ----------
    penalty : float
        In units of the mean eigenvalue of the kernel matrix.
    round : int
        The number of reweightings.
    """

    penalty: float
    round: int

    def text(self, unpenalised: str = "") -> str:
        """A description."""
        times = "" if not self.round else ", reweighted" + (f" {self.round} times" if self.round > 1 else " once")
        return f"ridge {self.penalty:.3g} on all groups{times}"


Recipe = Cleaned | Reweighted
