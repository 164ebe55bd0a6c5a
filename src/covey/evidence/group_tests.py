"""GroupTests: the p-values of all groups, from one model or from many splits of the rows."""

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
    raw : ndarray, shape (n_splits, n_groups)
        The p-value of each group on the half of the rows that tested it, not adjusted; one if it was not selected on
        the other half. Rows ``2 b`` and ``2 b + 1`` are a complementary pair. A single row if all groups were tested in
        one model on all rows.
    tested : ndarray of bool, shape (n_splits, n_groups)
        Which groups were selected by one half, and so tested on the other.
    quantiles : ndarray, shape (n_groups,)
        The quantile of its p-values over splits that counts for each group.
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
    quantiles: FloatArray
    control: Literal["fwer", "fdr"] = "fwer"
    level: float = 0.05
    parents: Mapping[int, Sequence[int]] = field(default_factory=dict)
    _number_format: ClassVar[str] = "{:.2g}"
    _least_first: ClassVar[bool] = True

    @property
    def n_splits(self) -> int:
        """The number of half-samples that selected groups; one if all groups were tested on all rows."""
        return len(self.raw)

    @cached_property
    def p_values(self) -> FloatArray:
        """The p-value of each group, adjusted for all groups; NaN for groups that are always in the model.

        With ``control="fwer"``, the probability that any group without an effect has a p-value of at most p is at most
        p. With "fdr", on average at most a share p of the groups with a p-value of at most p have no effect. The
        p-value of a term is at most that of the terms that need it.
        """
        values = self._step_down() if self.control == "fwer" else self._step_up()
        for child in sorted(self.parents, reverse=True):
            for parent in self.parents[child]:
                values[parent] = min(values[parent], values[child])
        values[[self.groups.position(name) for name in self.always_groups]] = np.nan
        return values

    def _over_splits(self, which: NDArray[np.intp], counts: NDArray[np.intp]) -> FloatArray:
        """The p-values of some groups, each multiplied by the number of groups that count in its split."""
        scaled = np.where(self.tested[:, which], self.raw[:, which] * counts[:, None], np.inf)
        quantiles = self.quantiles[which]
        nth = np.ceil(quantiles * self.n_splits - 1e-9).astype(int) - 1
        return np.asarray(np.sort(scaled, axis=0)[nth, np.arange(which.size)] / quantiles)

    def _step_down(self) -> FloatArray:
        """Adjusted like Holm's: a group that is found no longer counts among the groups of its splits."""
        values, least = np.ones(self.groups.n_groups), 0.0
        left, counts = np.flatnonzero(self.tested.any(axis=0)), self.tested.sum(axis=1)
        while left.size:
            now = self._over_splits(left, counts)
            at = int(np.argmin(now))
            least = max(least, float(now[at]))
            if least >= 1:
                break
            values[left[at]] = least
            counts = counts - self.tested[:, left[at]]
            left = np.delete(left, at)
        return values

    def _step_up(self) -> FloatArray:
        """Adjusted like Benjamini and Hochberg's; with splits, like Benjamini and Yekutieli's for any dependence."""
        ranks = np.arange(1, self.groups.n_groups + 1)
        factor = 1.0 if self.n_splits == 1 else float(np.sum(1 / ranks[: self.n_groups]))
        each = self._over_splits(ranks - 1, self.tested.sum(axis=1))
        order = np.argsort(each, kind="stable")
        values = np.empty_like(each)
        values[order] = np.minimum.accumulate((each[order] / ranks)[::-1])[::-1] * factor
        return np.minimum(values, 1.0)

    @property
    def is_selected(self) -> NDArray[np.bool_]:
        """Whether each group has an effect at the level; shape (n_groups,)."""
        return np.nan_to_num(self.p_values, nan=np.inf) <= self.level

    def _evidence(self) -> dict[str, FloatArray]:
        return {"p_value": self.p_values, "tested": self.tested.mean(axis=0)}

    def promise(self) -> str:
        """The guarantee on mistakes, in words."""
        what = (
            f"The probability that any of them has no effect given all other groups is at most {self.level:.3g}"
            if self.control == "fwer"
            else f"On average at most {self.level:.0%} of them have no effect given all other groups"
        )
        condition = "" if self.n_splits == 1 else ", if half of the rows select every group that has one"
        return f"{what}{condition}. p-values are adjusted for all groups."

    @property
    def _on(self) -> str:
        return "all rows in one model" if self.n_splits == 1 else f"{self.n_splits} half-samples"

    def __repr__(self) -> str:
        return (
            f"GroupTests({self.n_selected} of {self.n_groups} groups, {CONTROLS[self.control]} {self.level:g}, "
            f"{self._on})"
        )

    def _headline(self) -> str:
        return (
            f"Tests of groups on {self._on}: {self.n_selected} of {self.n_groups} groups have an effect, at a "
            f"{CONTROLS[self.control]} of {self.level:.3g}."
        )
