"""GroupPathDisplay: which groups woke up, when, and how strong they became."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from sklearn.base import BaseEstimator

from covey.path import Path
from covey.plots.style import GREY, MARK, Display, colour, fitted_step, label_ends, make_axes, plain, quiet

# Distance of the fitted model from the end of a limit path, relative to the path's length.
GAP = 0.1

# The top of the plot, relative to the strongest group of the fitted model.
MOST_OUTGROWN = 2.0


class GroupPathDisplay(Display):
    """The strength of every group against time, with the fitted model marked and the selected groups labelled.

    A limit path is drawn in steps, since nothing changes between its events. The fitted model, from which groups may
    have been dropped again, is at the right of it. The strength (`Path.strengths`) is the group's norm in the
    coordinates of the fit, so that groups are comparable; for paths without strengths, such as those of the baselines,
    it is the norm of the coefficients.

    Parameters
    ----------
    path : Path
    time : float, optional
        A time to mark; an estimator's path ends with the fitted model.

    Attributes
    ----------
    figure_, ax_
        After `plot`.

    Examples
    --------
    >>> from covey import GroupSparseRegressor
    >>> from covey.datasets import make_group_sparse
    >>> from covey.plots import GroupPathDisplay
    >>> data = make_group_sparse(random_state=0)
    >>> model = GroupSparseRegressor(groups=3).fit(data.X, data.y)
    >>> display = GroupPathDisplay.from_estimator(model)
    >>> display.ax_.get_xlabel()
    'time'
    """

    def __init__(self, path: Path, time: float | None = None) -> None:
        self.path = path
        self.time = time

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, *, ax: Axes | None = None, n_labels: int = 8) -> GroupPathDisplay:
        """Draw the path of a fitted estimator."""
        path = fitted_step(estimator).path_
        return cls(path, float(path.times[-1])).plot(ax=ax, n_labels=n_labels)

    @classmethod
    def from_path(
        cls, path: Path, *, time: float | None = None, ax: Axes | None = None, n_labels: int = 8
    ) -> GroupPathDisplay:
        """Draw a path."""
        return cls(path, time).plot(ax=ax, n_labels=n_labels)

    def plot(self, *, ax: Axes | None = None, n_labels: int = 8) -> GroupPathDisplay:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
        n_labels : int
            How many of the largest selected groups to label, each in a colour.
        """
        self.figure_, (self.ax_,) = make_axes(ax, 1, width=6.4, height=4.0)
        ax, path, times = self.ax_, self.path, np.array(self.path.times, dtype=float)
        norms = path.group_norms if path.strengths is None else path.strengths.toarray()
        at = len(path) - 1 if self.time is None else path.index(self.time)
        selected = np.flatnonzero(norms[at])
        named = selected[np.argsort(-norms[at, selected])][:n_labels]
        x, lines = times, norms
        if path.ends_apart:
            if len(times) > 2:  # the fitted model lies at a visible distance
                times[-1] = times[-2] + GAP * (times[-2] - times[1]) or times[-1]
            # the last level of the path extends a little
            x, lines = np.append(times[:-1], times[-2:].mean()), np.vstack([norms[:-1], norms[-2:-1]])
        style = "steps-post" if path.stepwise else "default"
        for l in np.setdiff1d(np.flatnonzero(norms.any(axis=0)), named):
            ax.plot(x, lines[:, l], color=GREY, lw=0.8, drawstyle=style)
        for i, l in enumerate(named):
            ax.plot(x, lines[:, l], color=colour(i), lw=1.6, drawstyle=style)
            if path.ends_apart:
                ax.plot(times[-1], norms[-1, l], "o", ms=5, color=colour(i))
        if path.ends_apart and norms[-1].any():
            # least squares on many similar groups can make their strengths arbitrarily large
            ax.set_ylim(0, min(1.05 * norms.max(), MOST_OUTGROWN * norms[-1].max()))
        label_ends(ax, [plain(path.groups.names[l]) for l in named], norms[-1, named])
        if self.time is not None:
            text = "the model" if at == len(path) - 1 else f"time {self.time:g}"
            ax.axvline(times[at], color=MARK, lw=1, ls="--")
            ax.annotate(
                text, (times[at], 1.0), xycoords=("data", "axes fraction"), xytext=(-4, -4),
                textcoords="offset points", ha="right", va="top", rotation=90, fontsize=8, color=MARK,
            )  # fmt: skip
        ylabel = "norm of the group's coefficients" if path.strengths is None else "strength of the group"
        title = f"{selected.size} of {path.groups.n_groups} groups"
        quiet(ax, title=title, xlabel="time" if path.stepwise else "iteration", ylabel=ylabel)
        return self
