"""GroupTests: the p-values of all groups, adjusted for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from covey.evidence.selections import GroupSelection
from covey.validation import FloatArray

__all__ = ["CONTROLS", "GroupTests"]

# What tests control, in words.
CONTROLS = {"fwer": "familywise error", "fdr": "false discovery rate"}


@dataclass(frozen=True, repr=False)
class GroupTests(GroupSelection):
    """The result of `test_groups`: p-values of all groups.

    Attributes
    ----------
    groups : Groups
    raw : ndarray, shape (n_groups,)
        The p-value of each group alone, not adjusted for the others; one if it was not tested.
    tested : ndarray of bool, shape (n_groups,)
        Which groups were tested; the others are too far from being found.
    together : bool
        Whether every group was tested in the model of all groups, rather than beside selected controls.
    control : {"fwer", "fdr"}
    level : float
        The largest acceptable familywise error or false discovery rate.
    parents : mapping
        The parents of terms, by position: a term that has an effect gives its parents one.
    always_groups : tuple
        Names of groups that were in every model; they are not tested.
    remarks : tuple of str
        Caveats about the tests.
    """

    raw: FloatArray
    tested: NDArray[np.bool_]
    together: bool
    control: Literal["fwer", "fdr"] = "fwer"
    level: float = 0.05
    parents: Mapping[int, Sequence[int]] = field(default_factory=dict)
    _number_format: ClassVar[str] = "{:.2g}"
    _least_first: ClassVar[bool] = True

    @cached_property
    def p_values(self) -> FloatArray:
        """The p-value of each group, adjusted for all groups; NaN for groups that are always in the model.

        With ``control="fwer"``, the probability that any group without an effect has a p-value of at most p is at most
        p. With "fdr", on average at most a share p of the groups with a p-value of at most p have no effect. The
        p-value of a term is at most that of the terms that need it.
        """
        order = np.argsort(self.raw, kind="stable")
        sorted_p, ranks = self.raw[order], np.arange(self.groups.n_groups)
        values = np.empty_like(sorted_p)
        if self.control == "fwer":  # Holm's method
            values[order] = np.maximum.accumulate(sorted_p * np.maximum(self.n_groups - ranks, 1))
        else:  # Benjamini and Hochberg's
            values[order] = np.minimum.accumulate((sorted_p * self.n_groups / (ranks + 1))[::-1])[::-1]
        values = np.minimum(values, 1.0)
        for child in sorted(self.parents, reverse=True):
            for parent in self.parents[child]:
                values[parent] = min(values[parent], values[child])
        values[[self.groups.position(name) for name in self.always_groups]] = np.nan
        return values

    @property
    def is_selected(self) -> NDArray[np.bool_]:
        """Whether each group has an effect at the level; shape (n_groups,)."""
        return np.nan_to_num(self.p_values, nan=np.inf) <= self.level

    def _evidence(self) -> dict[str, FloatArray]:
        return {"p_value": self.p_values, "unadjusted": self.raw}

    def promise(self) -> str:
        """The guarantee on mistakes, in words."""
        what = (
            f"The probability that any of them has no effect given all other groups is at most {self.level:.3g}"
            if self.control == "fwer"
            else f"On average at most {self.level:.0%} of them have no effect given all other groups"
        )
        condition = "" if self.together else ", if few groups have one and few predict each group"
        return f"{what}{condition}. p-values are adjusted for all groups."

    @property
    def _beside(self) -> str:
        return "beside all others" if self.together else "beside selected controls"

    def __repr__(self) -> str:
        return (
            f"GroupTests({self.n_selected} of {self.n_groups} groups, {CONTROLS[self.control]} {self.level:g}, "
            f"{self._beside})"
        )

    def _headline(self) -> str:
        return (
            f"Tests of groups {self._beside}: {self.n_selected} of {self.n_groups} groups have an effect, at a "
            f"{CONTROLS[self.control]} of {self.level:.3g}."
        )
