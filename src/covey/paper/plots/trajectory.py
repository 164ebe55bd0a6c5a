"""TrajectoryDisplay: the panels of the paper's figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from covey.paper.dynamics import Trajectory
from covey.paper.dynamics.problem import as_coefficients
from covey.plots.style import GREY, MARK, PALETTE, AxesLike, colour, make_axes, quiet
from covey.validation import FloatArray, IntArray

PANELS = ("error", "entries", "magnitudes", "directions")


class TrajectoryDisplay:
    """Recovery error, entries, magnitudes and directions of a trajectory against time.

    The truth `w_star` determines which groups are drawn in colour, and gives the dashed target lines. Without it,
    groups that are awake at the end are coloured.

    >>> from covey.datasets import make_group_sparse
    >>> from covey.paper.dynamics import normalized_descent
    >>> from covey.paper.plots import TrajectoryDisplay
    >>> data = make_group_sparse(random_state=0)
    >>> path = normalized_descent(data.X, data.y, data.groups, n_steps=800, w_star=data.w_star)
    >>> display = TrajectoryDisplay.from_path(path, w_star=data.w_star)
    >>> len(display.axes_)
    4
    """

    def __init__(self, trajectory: Trajectory, w_star: object = None) -> None:
        self.trajectory = trajectory
        p = trajectory.groups.n_columns
        self.w_star = None if w_star is None else as_coefficients(w_star, "w_star", p)

    @classmethod
    def from_path(
        cls, trajectory: Trajectory, *, w_star: object = None, panels: Sequence[str] | None = None, ax: AxesLike = None
    ) -> TrajectoryDisplay:
        return cls(trajectory, w_star).plot(panels=panels, ax=ax)

    def plot(self, *, panels: Sequence[str] | None = None, ax: AxesLike = None) -> TrajectoryDisplay:
        """Draw the `panels`, by default all that can be drawn: the error needs the truth. `ax` has an axes for each."""
        if panels is None:
            panels = PANELS if self.trajectory.error is not None else PANELS[1:]
        unknown = [panel for panel in panels if panel not in PANELS]
        if unknown:
            raise ValueError(f"Unknown panels: {', '.join(map(repr, unknown))}; there are {', '.join(PANELS)}.")
        self.figure_, self.axes_ = make_axes(ax, len(panels))
        for panel, axes in zip(panels, self.axes_, strict=True):
            getattr(self, f"_{panel}")(axes)
            if self.trajectory.switch is not None:
                axes.axvline(self.trajectory.switch, color=MARK, lw=0.8, ls=":")
        return self

    @property
    def support(self) -> list[int]:
        """The groups drawn in colour."""
        if self.w_star is not None:
            return [int(l) for l in np.flatnonzero(self.trajectory.groups.norms(self.w_star))]
        return [l for l, _ in self.trajectory.woke()]

    def _error(self, ax: Axes) -> None:
        error = self.trajectory.error
        if error is None:
            raise ValueError("The error panel needs the truth: pass w_star= to the dynamics.")
        best, t = self.trajectory.best, self.trajectory.t
        ax.semilogy(t, error, color=PALETTE[0])
        ax.plot(t[best], error[best], "o", color=PALETTE[1], ms=5)
        text, place = f"least: {error[best]:.3g}\nat t = {t[best]:g}", (float(t[best]), float(error[best]))
        ax.annotate(text, place, xytext=(6, 12), textcoords="offset points", ha="left", fontsize=8)
        quiet(ax, title="Recovery error", xlabel="iteration t", ylabel=r"$\|w(t) - w^\star\|^2$")

    def _entries(self, ax: Axes) -> None:
        self._by_group(ax, self.trajectory.w, self.trajectory.groups.labels, self.w_star)
        quiet(ax, title="Entries (grey: off the support)", xlabel="iteration t", ylabel=r"$w_j(t)$")

    def _magnitudes(self, ax: Axes) -> None:
        groups, norms = self.trajectory.groups, self.trajectory.group_norms
        truth = None if self.w_star is None else groups.norms(self.w_star)
        self._by_group(ax, norms, np.arange(groups.n_groups), truth)
        for position, l in enumerate(self.support):
            ax.annotate(
                str(groups.names[l]), (float(self.trajectory.t[-1]), float(norms[-1, l])), xytext=(4, 0), va="center",
                textcoords="offset points", fontsize=8, color=colour(position), annotation_clip=False,
            )  # fmt: skip
        quiet(ax, title="Group magnitudes", xlabel="iteration t", ylabel=r"$\|w_l(t)\|$")

    def _by_group(self, ax: Axes, values: FloatArray, labels: IntArray, truth: FloatArray | None) -> None:
        """Curves with the groups of these labels: those off the support in grey, the true values dashed."""
        support, t = self.support, self.trajectory.t
        ax.plot(t, values[:, ~np.isin(labels, support)], color=GREY, lw=0.6, rasterized=True)
        for position, l in enumerate(support):
            ax.plot(t, values[:, labels == l], color=colour(position), lw=1.3)
            for value in [] if truth is None else truth[labels == l]:
                ax.axhline(value, color=colour(position), lw=0.6, ls="--", alpha=0.6)

    def _directions(self, ax: Axes) -> None:
        """Inner product with the true direction, or with the last one if the truth is unknown."""
        groups = self.trajectory.groups
        target = self.trajectory.w[-1] if self.w_star is None else self.w_star
        for position, l in enumerate(self.support):
            columns = np.flatnonzero(groups.labels == l)
            v, aim = self.trajectory.v[:, columns], target[columns]
            lengths = np.linalg.norm(v, axis=1) * np.linalg.norm(aim)
            cosine = np.divide(v @ aim, lengths, out=np.zeros(len(v)), where=lengths > 0)
            ax.plot(self.trajectory.t, cosine, color=colour(position), lw=1.2)
        ax.axhline(1.0, color=MARK, lw=0.6, ls="--")
        aim_name = r"v_l^\star" if self.w_star is not None else "v_l(T)"
        quiet(ax, title="Directions", xlabel="iteration t", ylabel=rf"$\langle v_l(t), {aim_name}\rangle$")
