"""GroupTestsDisplay: the p-values of groups."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from covey.evidence.selections import CONTROLS, GroupTests
from covey.plots.style import MARK, Display, bars, quiet

# Smaller p-values are drawn here: they would hide all others.
LEAST = 1e-12


class GroupTestsDisplay(Display):
    """The adjusted p-values of the groups with the smallest ones, as bars; selected groups in colour.

    Parameters
    ----------
    tests : GroupTests

    Attributes
    ----------
    figure_, ax_
        After `plot`.

    Examples
    --------
    >>> from covey import GroupSparseRegressor
    >>> from covey.datasets import make_group_sparse
    >>> from covey.evidence import test_groups
    >>> from covey.plots import GroupTestsDisplay
    >>> data = make_group_sparse(100, 60, 3, active=2, random_state=0)
    >>> tests = test_groups(GroupSparseRegressor(groups=3), data.X, data.y)
    >>> GroupTestsDisplay.from_tests(tests).ax_.get_xlabel()
    'adjusted p-value'
    """

    def __init__(self, tests: GroupTests) -> None:
        self.tests = tests

    @classmethod
    def from_tests(cls, tests: GroupTests, *, ax: Axes | None = None, n_bars: int = 20) -> GroupTestsDisplay:
        """Draw the result of `covey.evidence.test_groups`."""
        return cls(tests).plot(ax=ax, n_bars=n_bars)

    def plot(self, *, ax: Axes | None = None, n_bars: int = 20) -> GroupTestsDisplay:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
        n_bars : int
            The most groups to draw, smallest p-values first.
        """
        tests = self.tests
        shown = tests.to_frame().head(n_bars)
        p = np.maximum(shown["p_value"].to_numpy(), LEAST)
        # from one leftwards, so that long bars are small p-values
        self.figure_, self.ax_ = bars(ax, shown.index.tolist(), np.ones(p.size), shown["selected"], left=p)
        self.ax_.set_xscale("log")
        self.ax_.set_xlim(1.0, min(float(p.min(initial=1.0)), tests.level / 10))
        if tests.control == "fwer":
            self.ax_.axvline(tests.level, color=MARK, lw=1, ls="--")
        left = tests.n_groups - len(shown)
        title = f"{tests.n_selected} of {tests.n_groups} groups, {CONTROLS[tests.control]} {tests.level:g}"
        quiet(self.ax_, title=title + (f" ({left} more are not shown)" if left else ""), xlabel="adjusted p-value")
        return self
