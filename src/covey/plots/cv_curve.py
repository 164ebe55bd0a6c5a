"""CVCurveDisplay: the cross-validation error along the path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from covey.plots.style import GREY, MARK, PALETTE, make_axes, quiet
from covey.selection.network_time import standard_error
from covey.validation import FloatArray

__all__ = ["CVCurveDisplay"]

# A logarithmic axis of time where the times shown span more than this factor; one of errors where these do.
DECADE, STEEP = 10.0, 10.0


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
    restarted : sequence of float
        Times at which the paths were cleaned and restarted, where the error jumps.

    Attributes
    ----------
    figure_, ax_
        After `plot`.
    """

    figure_: Figure
    ax_: Axes

    def __init__(
        self,
        times: FloatArray,
        mse_path: FloatArray,
        times_by_rule: dict[str, float],
        rule: str,
        restarted: Sequence[float] = (),
    ) -> None:
        self.times, self.mse_path = np.asarray(times), np.asarray(mse_path)
        self.times_by_rule, self.rule, self.restarted = times_by_rule, rule, restarted

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None) -> CVCurveDisplay:
        """Draw the curve of a fitted `GroupSparseRegressorCV`."""
        if not hasattr(estimator, "mse_path_"):
            raise ValueError(f"{type(estimator).__name__} has no cross-validation: fit a GroupSparseRegressorCV.")
        curve = estimator.times_, estimator.mse_path_, estimator.times_by_rule_, estimator.rule
        return cls(*curve, estimator.path_.restarted).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> CVCurveDisplay:
        """Draw."""
        self.figure_, (self.ax_,) = make_axes(ax, 1, width=6.4, height=4.0)
        ax = self.ax_
        k = self.mse_path.shape[1]
        zero = 0 in self.times_by_rule.values()
        begin = self._beginning()
        first = 0 if zero else begin
        times, mse = self.times[first:], self.mse_path[first:]
        mean, se = mse.mean(axis=1), standard_error(mse)
        steep = mean.min() > 0 and mean.max() > STEEP * mean.min()
        low = np.maximum(mean - se, mean.min() / 2) if steep else mean - se
        ax.fill_between(times, low, mean + se, color=PALETTE[0], alpha=0.2, lw=0, label="one standard error")
        ax.plot(times, mean, color=PALETTE[0], label=f"mean of {k} folds")
        for i, time in enumerate(self.restarted):
            ax.axvline(time, color=GREY, lw=4, alpha=0.5, zorder=0, label="" if i else "restarted")
        for (time, rules), style in zip(self._rules_by_time().items(), ("-", ":"), strict=False):
            used = " (used)" if self.rule in rules else ""
            ax.axvline(time, color=MARK, ls=style, lw=1, label=f"{' and '.join(rules)}: {time:g}{used}")
        if steep:
            ax.set_yscale("log")
        _time_axis(ax, max(1.0, float(self.times[begin])), float(times[-1]), zero=zero)
        ax.legend(fontsize=8, frameon=False)
        quiet(ax, title="Cross-validation", xlabel="iteration", ylabel="mean squared error on held-out rows")
        return self

    def _beginning(self) -> int:
        """Nothing happens before the first group wakes up: a little before that, or before a time that was chosen."""
        mean = self.mse_path.mean(axis=1)
        moved = np.flatnonzero(np.abs(mean - mean[0]) > 1e-3 * abs(mean[0]))
        first = max(0, int(moved[0]) - 20) if moved.size else 0
        chosen = [time for time in self.times_by_rule.values() if time > 0]
        return min([first, *(max(0, int(np.searchsorted(self.times, time)) - 1) for time in chosen)])

    def _rules_by_time(self) -> dict[float, list[str]]:
        """The rules that choose each time, ``"min"`` first."""
        found: dict[float, list[str]] = {}
        for rule, time in sorted(self.times_by_rule.items(), reverse=True):
            found.setdefault(time, []).append(rule)
        return found


def _time_axis(ax: Axes, low: float, high: float, *, zero: bool) -> None:
    """Linear within a decade, logarithmic beyond; with `zero`, from the time zero at the left edge."""
    if high <= DECADE * low:
        if zero:
            ax.set_xlim(-0.02 * high, 1.02 * high)
        return
    if zero:
        ax.set_xscale("symlog", linthresh=low, linscale=0.3)
        ax.set_xlim(-0.2 * low, 1.2 * high)
    else:
        ax.set_xscale("log")
    steps = (1.0, 2.0, 5.0) if high <= DECADE**2 * low else (1.0,)
    ticks = np.asarray(LogLocator(subs=steps).tick_values(low, high))
    ax.set_xticks([*([0.0] if zero else []), *ticks[(ticks >= low) & (ticks <= high)]])
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
