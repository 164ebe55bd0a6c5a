"""StabilitySelection: how often each group was selected in half of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covey.groups import Groups
from covey.stability.bounds import Assumption, expected_false
from covey.summary import Summary
from covey.validation import FloatArray

__all__ = ["StabilitySelection"]


@dataclass(frozen=True, repr=False)
class StabilitySelection:
    """The result of `stability_selection`: how often each group was selected over half-samples of the rows.

    Attributes
    ----------
    groups : Groups
    orders : ndarray of int, shape (2 * n_pairs, n_first)
        The groups that each half-sample selected, starting with the one that elimination keeps longest; -1 if there
        were fewer. Rows ``2 b`` and ``2 b + 1`` are a complementary pair.
    threshold : float
        The share of half-samples that a group needs to be selected.
    assumption : {"none", "unimodal"}
        The assumption under which `expected_false` holds.
    always_groups : tuple
        Names of groups that were in every model; they are not selected.
    remarks : tuple of str
        Caveats about the selection.
    """

    groups: Groups
    orders: NDArray[np.intp]
    threshold: float
    assumption: Assumption = "none"
    always_groups: tuple[Any, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def n_first(self) -> int:
        """The largest number of groups that a half-sample selects."""
        return self.orders.shape[1]

    @property
    def n_pairs(self) -> int:
        """The number of complementary pairs."""
        return self.orders.shape[0] // 2

    @property
    def n_groups(self) -> int:
        """The number of groups to select from."""
        return self.groups.n_groups - len(self.always_groups)

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
    def selected_groups(self) -> list[Any]:
        """Names of the groups at or above the threshold, most frequent first."""
        return self.to_frame().query("selected").index.tolist()

    @property
    def selected(self) -> list[Any]:
        """The same as `selected_groups`; its name in version 0.1.0."""
        return self.selected_groups

    @property
    def expected_false(self) -> float:
        """An upper bound on the expected number of groups selected by mistake; see `stability_selection`."""
        return expected_false(
            self.n_first, self.threshold, self.n_groups, n_pairs=self.n_pairs, assumption=self.assumption
        )

    def to_frame(self) -> pd.DataFrame:
        """Every group with its size, its frequency and whether it is selected; most frequent first."""
        frame = pd.DataFrame(
            {"size": self.groups.sizes, "frequency": self.frequencies, "selected": self.is_selected},
            index=pd.Index(list(self.groups.names), name="group"),
        )
        return frame.drop(index=list(self.always_groups)).sort_values("frequency", ascending=False, kind="stable")

    def promise(self) -> str:
        """The guarantee on mistakes, in words."""
        return (
            f"Expected number of mistakes: at most {self.expected_false:.3g}"
            f"{' if unimodal' if self.assumption == 'unimodal' else ''}. A mistake is a group that half of the rows "
            f"select no more often than a random draw of {self.n_first} of {self.n_groups} groups would."
        )

    def __repr__(self) -> str:
        return (
            f"StabilitySelection({int(self.is_selected.sum())} of {self.n_groups} groups in at least "
            f"{self.threshold:.0%} of {len(self.orders)} half-samples; mistakes expected: at most "
            f"{self.expected_false:.3g})"
        )

    def summary(self) -> Summary:
        """The selected groups, the bound and the caveats; ``print`` it, or let a notebook show it."""
        chosen = self.to_frame().query("selected")
        head = (
            f"Stability selection: {len(chosen)} of {self.n_groups} groups among the {self.n_first} that half of the "
            f"rows select, in at least {self.threshold:.0%} of {len(self.orders)} half-samples.",
            self.promise(),
        )
        shown = chosen[["size", "frequency"]].assign(frequency=chosen["frequency"].map("{:.2f}".format))
        return Summary(head, shown.reset_index(), tuple(f"Note: {remark}" for remark in self.remarks), "to_frame()")

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()
