"""StabilityDisplay: how often each group is found."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from covey.evidence import StabilitySelection
from covey.plots.style import GREY, MARK, Display, colour, label_ends, make_axes, plain, quiet


class StabilityDisplay(Display):
    """The frequency of every group against the number of groups selected per half-sample, with the threshold.

    Parameters
    ----------
    selection : StabilitySelection

    Attributes
    ----------
    figure_, ax_
        After `plot`.

    Examples
    --------
    >>> from covey import stability_selection
    >>> from covey.datasets import make_group_sparse
    >>> from covey.plots import StabilityDisplay
    >>> data = make_group_sparse(100, 60, 3, active=2, random_state=0)
    >>> found = stability_selection(data.X, data.y, 3, n_pairs=5, random_state=0)
    >>> StabilityDisplay.from_selection(found).ax_.get_ylabel()
    'share of half-samples'
    """

    def __init__(self, selection: StabilitySelection) -> None:
        self.selection = selection

    @classmethod
    def from_selection(
        cls, selection: StabilitySelection, *, ax: Axes | None = None, n_labels: int = 8
    ) -> StabilityDisplay:
        """Draw the result of `stability_selection`."""
        return cls(selection).plot(ax=ax, n_labels=n_labels)

    def plot(self, *, ax: Axes | None = None, n_labels: int = 8) -> StabilityDisplay:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
        n_labels : int
            How many of the most frequent selected groups to label, each in a colour.
        """
        self.figure_, (self.ax_,) = make_axes(ax, 1, width=6.4, height=4.0)
        ax, found = self.ax_, self.selection
        counts = np.arange(0, found.n_first + 1)
        shares = np.stack([found.frequencies_of(int(k)) for k in counts])
        named = [found.groups.position(name) for name in found.selected_groups[:n_labels]]
        for l in np.setdiff1d(np.flatnonzero(shares.any(axis=0)), named):
            ax.plot(counts, shares[:, l], color=GREY, lw=0.8)
        for i, l in enumerate(named):
            ax.plot(counts, shares[:, l], color=colour(i), lw=1.6)
        ax.axhline(found.threshold, color=MARK, lw=1, ls="--")
        ax.set_ylim(-0.02, 1.02)
        ax.set_xlim(0, max(1, found.n_first))
        label_ends(ax, [plain(found.groups.names[l]) for l in named], shares[-1, named])
        bound = f"mistakes expected: at most {found.expected_false:.2g}"
        title = f"{found.n_selected} of {found.n_groups} groups selected; {bound}"
        quiet(ax, title=title, xlabel="groups selected by a half-sample", ylabel="share of half-samples")
        return self
