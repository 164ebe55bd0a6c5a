"""KnockoffSelection: which groups beat their copies, and by how much."""

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
    """Groups that woke up faster than their copies.

    Attributes
    ----------
    groups : Groups
    statistics : ndarray, shape (n_groups,)
        By which groups are selected: for one draw W, for several the mean e-value. Not a number for groups that are
        always in the model.
    threshold : float
        From which on a group is selected; infinite where none is.
    fdr : float
        The target: at most this share of the selected groups has no effect, on average.
    draws : ndarray, shape (n_draws, n_groups)
        W of each draw: one over the time that the faster of group and copy needed to wake up, negative where it was the
        copy; zero where neither did.
    kind : {"gaussian", "fixed"}
    distance : float
        How far copies are from their groups: 1 where they are unrelated, 0 where they are the same and nothing can be
        found.
    always_groups : tuple
        Names of groups that were in every model.
    remarks : tuple of str
        What to mind when reading the selection.
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
        """How many sets of copies were drawn."""
        return self.draws.shape[0]

    @property
    def n_groups(self) -> int:
        """How many groups there were to select from."""
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
        """Every group with its size and statistic, the share of draws in which it beat its copy, and if it is in."""
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
        """What is known of mistakes, in words."""
        return f"On average at most {self.fdr:.0%} of the groups selected so have no effect beside the others, if " + (
            "rows are independent and normal, with the covariance that was estimated."
            if self.kind == "gaussian"
            else "the response is linear in the columns with independent normal noise of one variance."
        )

    def __repr__(self) -> str:
        how = f"{self.n_draws} draw{'' if self.n_draws == 1 else 's'} of {self.kind} knockoffs"
        return (
            f"KnockoffSelection({int(self.is_selected.sum())} of {self.n_groups} groups, false discovery rate "
            f"{self.fdr:g}, {how})"
        )

    def summary(self) -> Summary:
        """The selected groups, the promise, and what to mind; ``print`` it, or let a notebook show it."""
        chosen = self.to_frame().query("selected")
        what = "copy" if self.n_draws == 1 else f"copies of {self.n_draws} draws"
        head = f"Knockoffs: {len(chosen)} of {self.n_groups} groups wake up so much faster than their {what}."
        shown = chosen[["size", "statistic", "before_copy"]]
        shown = shown.assign(**{name: shown[name].map("{:.3g}".format) for name in ("statistic", "before_copy")})
        notes = tuple(f"Mind: {remark}" for remark in self.remarks)
        return Summary((head, self.promise()), shown.reset_index(), notes, "to_frame()")

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()
