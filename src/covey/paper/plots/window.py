"""TimeWindowDisplay: the error on and off the support, and the times at which the theorem's bounds hold."""

from __future__ import annotations

import numpy as np

from covey.paper.theory import TimeWindow
from covey.plots.style import MARK, PALETTE, AxesLike, make_axes, quiet


class TimeWindowDisplay:
    """A time window: both errors against time on a log axis, the empirical window shaded, the predicted ones on top."""

    def __init__(self, window: TimeWindow) -> None:
        self.window = window

    def plot(self, *, ax: AxesLike = None) -> TimeWindowDisplay:
        self.figure_, self.axes_ = make_axes(ax, 1, width=6.4, height=4.0)
        axes, w = self.axes_[0], self.window
        tiny = np.finfo(float).tiny
        for error, radius, colour, label in (
            (w.support_error, w.support_radius, PALETTE[0], "on the support"),
            (w.off_error, w.off_radius, PALETTE[1], "off the support"),
        ):
            axes.plot(w.t, np.maximum(error, tiny), color=colour, lw=1.5, label=label)
            axes.axhline(radius, color=colour, lw=0.9, ls="--")
        axes.plot([], [], color=MARK, lw=0.9, ls="--", label="promised bounds")
        if w.start is not None and w.stop is not None:
            axes.axvspan(w.start, w.stop, color=PALETTE[2], alpha=0.15, lw=0, label="both hold")
        for level, style, predicted, name in (
            (0.97, ":", w.predicted, "printed"),
            (0.92, "-", w.predicted_corrected, "corrected"),
        ):
            if predicted is None:
                continue
            low, high = predicted
            span = f"[{low:.4g}, {high:.4g}]" if low <= high else f"T_lb {low:.4g} > T_ub {high:.4g}, empty"
            # times in data units, height in axes units: a bracket at the top
            axes.plot(
                [low, high], [level, level], transform=axes.get_xaxis_transform(), color=MARK, ls=style, lw=1.2,
                marker="|", label=f"{name}: {span}",
            )  # fmt: skip
        axes.set_yscale("log")
        low_end, high_end = axes.get_ylim()
        axes.set_ylim(low_end, high_end * (high_end / low_end) ** 0.12)
        axes.legend(frameon=True, edgecolor="none", fontsize=8, loc="best")
        quiet(axes, xlabel="time", ylabel="largest entry of the error")
        return self
