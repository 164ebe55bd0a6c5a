"""Selected groups with their evidence: the results of stability selection, knockoffs and tests of groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covey.evidence.bounds import Assumption, expected_false
from covey.groups import Groups
from covey.summary import Summary
from covey.validation import FloatArray

# What tests control, in words.
CONTROLS = {"fwer": "familywise error", "fdr": "false discovery rate"}

# What a summary shows if no group is selected.
MOST_NEAREST, NEAREST = 5, "None is selected; the table has those with the strongest evidence:"


@dataclass(frozen=True, repr=False)
class GroupSelection(ABC):
    """What these results have in common."""

    groups: Groups
    always_groups: tuple[Hashable, ...] = field(default=(), kw_only=True)
    remarks: tuple[str, ...] = field(default=(), kw_only=True)
    _number_format: ClassVar[str] = "{:.3g}"
    _least_first: ClassVar[bool] = False

    @property
    @abstractmethod
    def is_selected(self) -> NDArray[np.bool_]:
        """Whether each group is at or above the threshold; shape (n_groups,)."""

    @abstractmethod
    def promise(self) -> str:
        """The guarantee on mistakes, in words."""

    @abstractmethod
    def _evidence(self) -> dict[str, FloatArray]:
        """The figures by which groups are sorted, the most important first; each of shape (n_groups,)."""

    @abstractmethod
    def _headline(self) -> str:
        """How many groups are selected, and how."""

    @property
    def n_groups(self) -> int:
        """The number of groups to select from."""
        return self.groups.n_groups - len(self.always_groups)

    @property
    def n_selected(self) -> int:
        """The number of selected groups."""
        return int(self.is_selected.sum())

    @property
    def selected_groups(self) -> list[Hashable]:
        """Names of the selected groups, the strongest evidence first."""
        return self.to_frame().query("selected").index.tolist()

    def to_frame(self) -> pd.DataFrame:
        """Every group to select from with its size, its evidence and whether it is selected; strongest first."""
        evidence = self._evidence()
        columns = {"size": self.groups.sizes, **evidence, "selected": self.is_selected}
        frame = pd.DataFrame(columns, index=pd.Index(list(self.groups.names), name="group"))
        frame = frame.drop(index=list(self.always_groups))
        return frame.sort_values(list(evidence), ascending=self._least_first, kind="stable")

    def summary(self) -> Summary:
        """The selected groups, the guarantee and the caveats; ``print`` it, or let a notebook show it.

        If none is selected, the table has the groups that come nearest to it.
        """
        every = self.to_frame()
        table = (every.query("selected") if self.n_selected else every.head(MOST_NEAREST)).drop(columns="selected")
        table = table.assign(**{name: table[name].map(self._number_format.format) for name in self._evidence()})
        notes = tuple(f"Note: {remark}" for remark in self.remarks)
        head = self._headline(), self.promise() if self.n_selected else NEAREST
        return Summary(head, table.reset_index(), notes, "to_frame()")

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


@dataclass(frozen=True, repr=False)
class StabilitySelection(GroupSelection):
    """The result of `stability_selection`: how often each group was selected over half-samples of the rows.

    Attributes
    ----------
    groups : Groups
    orders : ndarray of int, shape (2 * n_pairs, n_first)
        The groups that each half-sample selected, starting with the one that elimination keeps longest; -1 if there
        were fewer. Rows ``2 b`` and ``2 b + 1`` are a complementary pair.
    threshold : float
        The share of half-samples that a group needs to be selected.
    assumption : {"r-concave", "none"}
        The assumption under which `expected_false` holds.
    always_groups : tuple
        Names of groups that were in every model; they are not selected.
    remarks : tuple of str
        Caveats about the selection.
    """

    orders: NDArray[np.intp]
    threshold: float
    assumption: Assumption = "r-concave"
    _number_format: ClassVar[str] = "{:.2f}"

    @property
    def n_first(self) -> int:
        """The largest number of groups that a half-sample selects."""
        return self.orders.shape[1]

    @property
    def n_pairs(self) -> int:
        """The number of complementary pairs."""
        return self.orders.shape[0] // 2

    @property
    def frequencies(self) -> FloatArray:
        """The share of half-samples in which each group was selected; shape (n_groups,)."""
        return self.frequencies_of(self.n_first)

    def frequencies_of(self, n_first: int) -> FloatArray:
        """The frequencies if each half-sample had selected this many groups."""
        chosen = self.orders[:, :n_first]
        counts = np.bincount(chosen[chosen >= 0], minlength=self.groups.n_groups)
        return counts / self.orders.shape[0]

    @property
    def is_selected(self) -> NDArray[np.bool_]:
        """Whether each group is at or above the threshold; shape (n_groups,)."""
        # compared as counts, so that round-off error does not exclude a share equal to the threshold
        n = len(self.orders)
        return np.round(self.frequencies * n) >= self.threshold * n - 1e-9

    @property
    def expected_false(self) -> float:
        """An upper bound on the expected number of groups selected by mistake; see `stability_selection`."""
        return expected_false(
            self.chance * self.n_groups, self.threshold, self.n_groups, n_pairs=self.n_pairs, assumption=self.assumption
        )

    @property
    def chance(self) -> float:
        """The mean frequency of groups that are not selected: groups that are found no more often are mistakes."""
        left = self.n_groups - self.n_selected
        by_chance = self.n_first / self.n_groups
        # never above a random draw, and never zero, because half-samples that found nothing could have
        least = 1 / (len(self.orders) * self.n_groups)
        return (
            max(min(float(self.frequencies[~self.is_selected].sum()) / left, by_chance), least) if left else by_chance
        )

    def _evidence(self) -> dict[str, FloatArray]:
        return {"frequency": self.frequencies}

    def promise(self) -> str:
        """The guarantee on mistakes, in words."""
        condition = ", if its tails are r-concave" if self.assumption == "r-concave" else ""
        return (
            f"Expected number of mistakes: at most {self.expected_false:.3g}{condition}. A mistake is a "
            f"selected group that random halves of the rows name, in the long run, no more often than the average "
            f"group that is not selected ({self.chance:.1%} of the halves)."
        )

    def __repr__(self) -> str:
        return (
            f"StabilitySelection({self.n_selected} of {self.n_groups} groups in at least "
            f"{self.threshold:.0%} of {len(self.orders)} half-samples; mistakes expected: at most "
            f"{self.expected_false:.3g})"
        )

    def _headline(self) -> str:
        return (
            f"Stability selection: {self.n_selected} of {self.n_groups} groups are selected. Each of "
            f"{len(self.orders)} random halves of the rows names at most {self.n_first} groups, and these are named by "
            f"at least {self.threshold:.0%} of the halves."
        )


@dataclass(frozen=True, repr=False)
class KnockoffSelection(GroupSelection):
    """The result of `knockoffs`: groups that woke up faster than their copies.

    Attributes
    ----------
    groups : Groups
    statistics : ndarray, shape (n_groups,)
        The statistic by which groups are selected: W for one draw, the mean e-value for several. NaN for groups that
        are always in the model.
    threshold : float
        The least statistic of a selected group; infinite if none is selected.
    fdr : float
        The target: on average, at most this share of the selected groups has no effect.
    draws : ndarray, shape (n_draws, n_groups)
        W of each draw: one over the time that the faster of group and copy needed to wake up, negative if it was the
        copy; zero if neither woke up.
    kind : {"gaussian", "fixed"}
    distance : float
        How far copies are from their groups: 1 if they are unrelated, 0 if they are identical and nothing can be found.
    always_groups : tuple
        Names of groups that were in every model.
    remarks : tuple of str
        Caveats about the selection.
    """

    statistics: FloatArray
    threshold: float
    fdr: float
    draws: FloatArray
    kind: Literal["gaussian", "fixed"]
    distance: float

    @property
    def n_draws(self) -> int:
        """The number of draws of copies."""
        return self.draws.shape[0]

    @property
    def is_selected(self) -> NDArray[np.bool_]:
        """Whether each group is at or above the threshold; shape (n_groups,)."""
        return np.nan_to_num(self.statistics, nan=-np.inf) >= self.threshold

    def _evidence(self) -> dict[str, FloatArray]:
        return {"statistic": self.statistics, "before_copy": (self.draws > 0).mean(axis=0)}

    def promise(self) -> str:
        """The guarantee on mistakes, in words."""
        condition = {
            "gaussian": "rows are independent and normal and the covariance estimated from them is right.",
            "fixed": "the response is linear in the columns with independent normal noise of one variance.",
        }[self.kind]
        return (
            f"On average at most {self.fdr:.0%} of the selected groups have no effect given all other groups, if "
            f"{condition}"
        )

    def __repr__(self) -> str:
        how = f"{self.n_draws} draw{'' if self.n_draws == 1 else 's'} of {self.kind} knockoffs"
        return (
            f"KnockoffSelection({self.n_selected} of {self.n_groups} groups, false discovery rate {self.fdr:g}, {how})"
        )

    def _headline(self) -> str:
        copies = "copy" if self.n_draws == 1 else f"copies of {self.n_draws} draws"
        return f"Knockoffs: {self.n_selected} of {self.n_groups} groups wake up clearly faster than their {copies}."


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
        always = [self.groups.position(name) for name in self.always_groups]
        free = np.setdiff1d(np.arange(self.groups.n_groups), always)
        order = free[np.argsort(self.raw[free], kind="stable")]
        sorted_p, ranks, values = self.raw[order], np.arange(free.size), np.full(self.groups.n_groups, np.nan)
        if self.control == "fwer":  # Holm's method
            values[order] = np.maximum.accumulate(sorted_p * (free.size - ranks))
        else:  # Benjamini and Hochberg's
            values[order] = np.minimum.accumulate((sorted_p * free.size / (ranks + 1))[::-1])[::-1]
        values = np.minimum(values, 1.0)
        for child in sorted(self.parents, reverse=True):
            for parent in self.parents[child]:
                values[parent] = min(values[parent], values[child])
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
