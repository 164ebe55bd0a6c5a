"""GroupPathDisplay: which groups woke up, when, and how large they became."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from covey.path import Path
from covey.plots.style import GREY, MARK, PALETTE, make_axes, quiet

__all__ = ["GroupPathDisplay"]


class GroupPathDisplay:
    """Strength of every group against time, with the chosen time marked and the selected groups labelled.

    The strength (`Path.strengths`) is the group's norm in the coordinates in which it was fitted, so that groups can be
    compared; where a path has none, as the baselines' have, it is the norm of the coefficients.

    Parameters
    ----------
    path : Path
    time : float, optional
        The chosen time.

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
    >>> model = GroupSparseRegressor(groups=3, random_state=0).fit(data.X, data.y)
    >>> display = GroupPathDisplay.from_estimator(model)
    >>> display.ax_.get_xlabel()
    'iteration'
    """

    figure_: Figure
    ax_: Axes

    def __init__(self, path: Path, time: float | None = None) -> None:
        self.path = path
        self.time = time

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None, n_labels: int = 8) -> GroupPathDisplay:
        """Draw the path of a fitted estimator."""
        if not hasattr(estimator, "path_"):
            raise ValueError(f"{type(estimator).__name__} is not fitted: call fit first.")
        return cls(estimator.path_, float(estimator.n_iter_)).plot(ax=ax, n_labels=n_labels)

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
            How many of the largest selected groups get their name and a colour of their own.
        """
        self.figure_, (self.ax_,) = make_axes(ax, 1, width=6.4, height=4.0)
        ax, path = self.ax_, self.path
        norms = path.group_norms if path.strengths is None else path.strengths.toarray()
        at = len(path) - 1 if self.time is None else path.index(self.time)
        selected = np.flatnonzero(norms[at])
        named = selected[np.argsort(-norms[at, selected])][:n_labels]
        # a line that is drawn through a restart would show a slope where there is a jump
        breaks = np.searchsorted(path.times, path.restarted)
        times = np.insert(np.asarray(path.times, dtype=float), breaks, np.nan)
        lines = np.insert(norms, breaks, np.nan, axis=0)
        for l in np.setdiff1d(np.flatnonzero(norms.any(axis=0)), named):
            ax.plot(times, lines[:, l], color=GREY, lw=0.8)
        for position, l in enumerate(named):
            ax.plot(times, lines[:, l], color=PALETTE[position % len(PALETTE)], lw=1.6)
        self._label(ax, named, norms[-1])
        for time in path.restarted:
            _mark(ax, time, "restarted", style=":", height=0.7)
        if self.time is not None:
            _mark(ax, self.time, f"stopped at {self.time:g}", style="--", height=1.0)
        ylabel = "norm of the group's coefficients" if path.strengths is None else "strength of the group"
        title = f"{selected.size} of {path.groups.n_groups} groups awake"
        quiet(ax, title=title, xlabel="iteration", ylabel=ylabel)
        return self

    def _label(self, ax: Axes, named: Any, last: Any) -> None:
        """Names at the right end, pushed apart so that they do not overlap."""
        if len(named) == 0:
            return
        top = max(float(last[named].max()), np.finfo(float).tiny)
        gap = 0.05 * top
        heights = np.sort(last[named])
        for i in range(1, heights.size):
            heights[i] = max(heights[i], heights[i - 1] + gap)
        for height, position in zip(heights, np.argsort(last[named], kind="stable"), strict=True):
            ax.annotate(
                str(self.path.groups.names[named[position]]),
                (1.0, height),
                xycoords=("axes fraction", "data"),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                color=PALETTE[position % len(PALETTE)],
                annotation_clip=False,
            )


def _mark(ax: Axes, time: float, text: str, *, style: str, height: float) -> None:
    """A vertical line with its name on the left, from a height downwards."""
    ax.axvline(time, color=MARK, lw=1, ls=style)
    ax.annotate(
        text,
        (time, height),
        xycoords=("data", "axes fraction"),
        xytext=(-4, -4),
        textcoords="offset points",
        ha="right",
        va="top",
        rotation=90,
        fontsize=8,
        color=MARK,
    )
