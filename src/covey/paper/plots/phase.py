"""Phase transition: probability of recovery over rows and non-zero groups."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from covey.plots.style import PALETTE, quiet

__all__ = ["draw_phase"]


def draw_phase(frame: pd.DataFrame, needed: pd.DataFrame, methods: Sequence[str]) -> Figure:
    """One heat map per method; the line marks where half of the runs recover.

    Parameters
    ----------
    frame : DataFrame
        The result of `covey.paper.experiments.phase.run`: n, s, method, recovered.
    needed : DataFrame
        method, s, rows.
    methods : sequence of str
        The panels, in order.
    """
    figure, axes = plt.subplots(
        1, len(methods), figsize=(3.9 * len(methods), 3.5), layout="constrained", squeeze=False, sharey=True
    )
    image = None
    for ax, method, colour in zip(axes[0], methods, PALETTE[1:], strict=False):
        part = frame[frame["method"] == method]
        rate = part.pivot_table(index="s", columns="n", values="recovered", aggfunc="mean")
        n, s = rate.columns.to_numpy(dtype=float), rate.index.to_numpy(dtype=float)
        image = ax.pcolormesh(_edges(n), np.arange(s.size + 1), rate, cmap="gray", vmin=0, vmax=1)
        line = needed[needed["method"] == method].set_index("s")["rows"].reindex(rate.index)
        ax.plot(line, np.arange(s.size) + 0.5, color=colour, lw=2, marker="o", ms=4)
        ax.set_yticks(np.arange(s.size) + 0.5, [f"{v:g}" for v in s])
        quiet(ax, title=method, xlabel="rows n", ylabel="non-zero groups s" if ax is axes[0, 0] else "")
    if image is not None:
        figure.colorbar(image, ax=axes[0, -1], label="probability of recovery")
    return figure


def _edges(centres: np.ndarray) -> np.ndarray:
    """Cell borders halfway between grid points."""
    if centres.size == 1:
        return np.array([centres[0] - 0.5, centres[0] + 0.5])
    middle = (centres[1:] + centres[:-1]) / 2
    return np.concatenate([[2 * centres[0] - middle[0]], middle, [2 * centres[-1] - middle[-1]]])
