"""CVCurveDisplay: the cross-validation error along the path."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from covey.plots.style import MARK, PALETTE, make_axes, quiet
from covey.stopping.fold_errors import standard_error
from covey.validation import FloatArray

__all__ = ["CVCurveDisplay"]


class CVCurveDisplay:
    """Mean error of the folds with a band of one standard error, and the times that both rules choose.

    Parameters
    ----------
    times : ndarray of shape (n_times,)
    mse_path : ndarray of shape (n_times, n_folds)
    times_by_rule : dict
        The times that ``"min"`` and ``"1se"`` choose.
    rule : {"min", "1se"}
        The one that was used.

    Attributes
    ----------
    figure_, ax_
        After `plot`.
    """

    figure_: Figure
    ax_: Axes

    def __init__(self, times: FloatArray, mse_path: FloatArray, times_by_rule: dict[str, float], rule: str) -> None:
        self.times, self.mse_path = np.asarray(times), np.asarray(mse_path)
        self.times_by_rule, self.rule = times_by_rule, rule

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None) -> CVCurveDisplay:
        """Draw the curve of a fitted `GroupSparseRegressorCV`."""
        if not hasattr(estimator, "mse_path_"):
            raise ValueError(f"{type(estimator).__name__} has no cross-validation: fit a GroupSparseRegressorCV.")
        return cls(estimator.times_, estimator.mse_path_, estimator.times_by_rule_, estimator.rule).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> CVCurveDisplay:
        """Draw."""
        self.figure_, (self.ax_,) = make_axes(ax, 1, width=6.4, height=4.0)
        ax = self.ax_
        k = self.mse_path.shape[1]
        mean = self.mse_path.mean(axis=1)
        se = standard_error(self.mse_path)
        # nothing happens before the first group wakes up: start a little before
        moved = np.flatnonzero(np.abs(mean - mean[0]) > 1e-3 * abs(mean[0]))
        first = max(0, int(moved[0]) - 20) if moved.size else 0
        times, mean, se = self.times[first:], mean[first:], se[first:]
        ax.fill_between(times, mean - se, mean + se, color=PALETTE[0], alpha=0.2, lw=0, label="one standard error")
        ax.plot(times, mean, color=PALETTE[0], label=f"mean of {k} folds")
        for (rule, time), style in zip(sorted(self.times_by_rule.items(), reverse=True), ("-", ":"), strict=True):
            used = " (used)" if rule == self.rule else ""
            ax.axvline(time, color=MARK, ls=style, lw=1, label=f"{rule}: {time:g}{used}")
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.legend(fontsize=8, frameon=False)
        quiet(ax, title="Cross-validation", xlabel="iteration", ylabel="mean squared error on held-out rows")
        return self
