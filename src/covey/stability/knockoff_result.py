"""KnockoffSelection: which groups beat their knockoff copies, and by how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covey.groups import Groups
from covey.summary import Summary
from covey.validation import FloatArray

__all__ = ["KnockoffSelection"]


@dataclass(frozen=True, repr=False)
class KnockoffSelection:
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

    groups: Groups
    statistics: FloatArray
    threshold: float
    fdr: float
    draws: FloatArray
    kind: Literal["gaussian", "fixed"]
    distance: float
    always_groups: tuple[Any, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def n_draws(self) -> int:
        """The number of draws of copies."""
        return self.draws.shape[0]

    @property
    def n_groups(self) -> int:
        """The number of groups to select from."""
        return self.groups.n_groups - len(self.always_groups)

    @property
    def is_selected(self) -> NDArray[np.bool_]:
        """Whether each group is at or above the threshold; shape (n_groups,)."""
        return np.nan_to_num(self.statistics, nan=-np.inf) >= self.threshold

    @property
    def selected_groups(self) -> list[Any]:
        """Names of the selected groups, largest statistic first."""
        return self.to_frame().query("selected").index.tolist()

    def to_frame(self) -> pd.DataFrame:
        """Every group with its size, its statistic, how often it beat its copy, and whether it is selected."""
        frame = pd.DataFrame(
            {
                "size": self.groups.sizes,
                "statistic": self.statistics,
                "before_copy": (self.draws > 0).mean(axis=0),
                "selected": self.is_selected,
            },
            index=pd.Index(list(self.groups.names), name="group"),
        )
        frame = frame.drop(index=list(self.always_groups))
        return frame.sort_values(["statistic", "before_copy"], ascending=False, kind="stable")

    def promise(self) -> str:
        """The guarantee on mistakes, in words."""
        return (
            f"On average at most {self.fdr:.0%} of the selected groups have no effect given all other groups, if "
            + (
                "rows are independent and normal, with the estimated covariance."
                if self.kind == "gaussian"
                else "the response is linear in the columns with independent normal noise of one variance."
            )
        )

    def __repr__(self) -> str:
        how = f"{self.n_draws} draw{'' if self.n_draws == 1 else 's'} of {self.kind} knockoffs"
        return (
            f"KnockoffSelection({int(self.is_selected.sum())} of {self.n_groups} groups, false discovery rate "
            f"{self.fdr:g}, {how})"
        )

    def summary(self) -> Summary:
        """The selected groups, the guarantee and the caveats; ``print`` it, or let a notebook show it."""
        chosen = self.to_frame().query("selected")
        what = "copy" if self.n_draws == 1 else f"copies of {self.n_draws} draws"
        head = f"Knockoffs: {len(chosen)} of {self.n_groups} groups wake up clearly faster than their {what}."
        shown = chosen[["size", "statistic", "before_copy"]]
        shown = shown.assign(**{name: shown[name].map("{:.3g}".format) for name in ("statistic", "before_copy")})
        notes = tuple(f"Note: {remark}" for remark in self.remarks)
        return Summary((head, self.promise()), shown.reset_index(), notes, "to_frame()")

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()
