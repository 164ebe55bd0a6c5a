"""CandidatesDisplay: the errors of the candidates, and the chosen one."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from sklearn.base import BaseEstimator

from covey.plots.style import MARK, PALETTE, Display, fitted_step, make_axes, quiet
from covey.search.chosen import Judged, judged

# Errors that span more than this factor get a logarithmic axis.
STEEP = 10.0

# The most numbers below the axis of groups.
MOST_TICKS = 16


class CandidatesDisplay(Display):
    """The error of the best candidate for each number of groups, with one standard error, and the chosen one.

    Parameters
    ----------
    judged : Judged

    Attributes
    ----------
    figure_, ax_
        After `plot`.

    Examples
    --------
    >>> from covey import GroupSparseRegressor
    >>> from covey.datasets import make_group_sparse
    >>> from covey.plots import CandidatesDisplay
    >>> data = make_group_sparse(random_state=0)
    >>> model = GroupSparseRegressor(groups=3).fit(data.X, data.y)
    >>> CandidatesDisplay.from_estimator(model).ax_.get_xlabel()
    'groups'
    """

    def __init__(self, judged: Judged) -> None:
        self.judged = judged

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, *, ax: Axes | None = None) -> CandidatesDisplay:
        """Draw the candidates of a fitted estimator."""
        found = judged(fitted_step(estimator))
        if found is None:
            raise ValueError("There are no candidates to draw: the model was the only one.")
        return cls(found).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> CandidatesDisplay:
        """Draw."""
        self.figure_, (self.ax_,) = make_axes(ax, 1, width=6.4, height=4.0)
        ax, values, band = self.ax_, self.judged.values, self.judged.band
        # numbers of groups are evenly spaced, since 300 may follow 12
        x = np.arange(values.size, dtype=float)
        mark = float(np.interp(self.judged.at, self.judged.x, x))
        if band is not None:
            low = np.maximum(values - band, values.min() / 2) if values.min() > 0 else values - band
            ax.fill_between(x, low, values + band, color=PALETTE[0], alpha=0.2, lw=0, label="one standard error")
        ax.plot(x, values, "o-", ms=3, color=PALETTE[0])
        ax.axvline(mark, color=MARK, lw=1, ls="--")
        ax.plot([mark], [self.judged.value], "o", ms=7, color=PALETTE[1], label=f"chosen: {self.judged.at:g} groups")
        if values.min() > 0 and values.max() > STEEP * values.min():
            ax.set_yscale("log")
        step = -(-x.size // MOST_TICKS)
        ax.set_xticks(x[::step], [f"{k:g}" for k in self.judged.x[::step]])
        ax.legend(fontsize=8, frameon=False)
        quiet(ax, title=f"{self.judged.n_candidates} candidates", xlabel="groups", ylabel=self.judged.label)
        return self
