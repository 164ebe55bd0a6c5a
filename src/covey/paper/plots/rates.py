"""Rates: error against each quantity on log axes, with fitted slopes."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from covey.plots.style import GREY, MARK, PALETTE, quiet

__all__ = ["draw_rates"]

MARKERS = ("o", "s", "^", "D")


def draw_rates(frame: pd.DataFrame, slopes: pd.DataFrame, axes: Mapping[str, str]) -> Figure:
    """One panel per axis of a rates table.

    Parameters
    ----------
    frame : DataFrame
        The result of `covey.paper.experiments.rates.run`: axis, value, method, error, corollary, minimax.
    slopes : DataFrame
        axis, method, slope, se; written into each panel.
    axes : mapping from the axis to its label
    """
    shown = [axis for axis in axes if (frame["axis"] == axis).any()]
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    figure, panels = plt.subplots(
        rows, columns, figsize=(4.0 * columns, 3.4 * rows), layout="constrained", squeeze=False
    )
    methods = list(dict.fromkeys(frame["method"]))
    fitted = slopes.set_index(["axis", "method"])
    for ax, axis in zip(panels.flat, shown, strict=False):
        part = frame[frame["axis"] == axis]
        # p enters the bound through its logarithm
        place = np.log if axis == "p" else np.asarray
        for method, colour, marker in zip(methods, PALETTE, MARKERS, strict=False):
            by_value = part[part["method"] == method].groupby("value")["error"]
            x = place(by_value.mean().index.to_numpy(dtype=float))
            mean, low, high = by_value.mean(), by_value.quantile(0.25), by_value.quantile(0.75)
            s = fitted.loc[(axis, method)]
            label = f"{s['slope']:+.2f} ± {s['se']:.2f}"
            ax.fill_between(x, low, high, color=colour, alpha=0.12, lw=0)
            ax.plot(x, mean, color=colour, marker=marker, ms=4, lw=1.3, label=label)
        lines = part.groupby("value")[["minimax", "corollary"]].first()
        x = place(lines.index.to_numpy(dtype=float))
        ax.plot(x, lines["minimax"], color=MARK, lw=1, ls="--")
        ax.plot(x, lines["corollary"], color=GREY, lw=1, ls=":")
        ax.set(xscale="log", yscale="log")
        ax.set_xticks(x, [f"{v:.4g}" if axis == "p" else f"{v:g}" for v in x], minor=False)
        ax.set_xticks([], minor=True)
        quiet(ax, xlabel=axes[axis], ylabel="squared error" if ax in panels[:, 0] else "")
        where = "lower left" if axis == "p" else "best"
        ax.yaxis.set_minor_formatter(NullFormatter())
        if axis == "p":
            # flat curves: make room for the legend below them
            ax.set_ylim(bottom=0.2 * float(part["error"].mean()))
        ax.legend(fontsize=7, frameon=False, title="slope ± standard error", title_fontsize=7, loc=where)
    for ax in panels.flat[len(shown) :]:
        ax.axis("off")
    handles = [
        Line2D([], [], color=c, marker=m, ms=4, label=name)
        for name, c, m in zip(methods, PALETTE, MARKERS, strict=False)
    ]
    handles.append(Line2D([], [], color=MARK, ls="--", label="minimax order, sigma² s (k + log(eL/s))/n"))
    handles.append(Line2D([], [], color=GREY, ls=":", label="corollary, sigma² s log(p)/n"))
    if len(shown) < rows * columns:
        panels.flat[-1].legend(handles=handles, loc="center", frameon=False, fontsize=8)
    else:
        figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure
