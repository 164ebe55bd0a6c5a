"""Panels shared by several figures: error, entries, magnitudes and directions over iterations."""

from __future__ import annotations

import numpy as np
import pandas as pd

from covey.paper.experiments.style import COLOURS, GREY, MODE_COLOURS, MODE_NAMES, Axes
from covey.paper.experiments.traces import CODE, OFF, TEXT, TRUTH, best, series

__all__ = ["draw_curves", "draw_errors", "mark_switch"]

LABELS = {
    "entry": "coefficient $w_j$",
    "magnitude": "magnitude $u_l$",
    "direction": "direction entry $v_{l,i}$",
    "alignment": r"alignment $\langle v_l, v_l^\star\rangle$",
}
NAMES = {"entry": "entry", "magnitude": "group", "alignment": "group"}


def draw_errors(axes: Axes, frame: pd.DataFrame, modes: tuple[str, ...] = (TEXT, CODE), mark: bool = True) -> None:
    """Recovery error over iterations, one curve per mode, with the best time marked; dashed: true groups known."""
    for mode in modes:
        t, error = series(frame, mode, "error")
        axes.plot(t, error, color=MODE_COLOURS[mode], label=MODE_NAMES[mode])
        if mark:
            least, step = best(frame, mode)
            axes.plot(step, least, "o", color=MODE_COLOURS[mode], markeredgecolor="white")
    axes.axhline(series(frame, TRUTH, "error")[1][0], color=GREY, ls="--", lw=0.9, label="true groups known")
    axes.set_yscale("log")
    axes.set_xlabel("iteration")
    axes.set_ylabel(r"error $\|w - w^\star\|_2^2$")


def draw_curves(axes: Axes, frame: pd.DataFrame, mode: str, quantity: str, *, group_size: int = 1) -> None:
    """Every curve of one quantity: the support in colour by group, the truth dashed, the rest in grey."""
    chosen = frame[(frame["mode"] == mode) & (frame["quantity"] == quantity)]
    indices = sorted(i for i in chosen["index"].unique() if i != OFF)
    groups = sorted({i // group_size for i in indices})
    for i in indices:
        t, value = series(frame, mode, quantity, i)
        first = i % group_size == 0
        colour = COLOURS[groups.index(i // group_size) % len(COLOURS)]
        label = f"group {i // group_size + 1}" if first else None
        axes.plot(t, value, color=colour, lw=1.1, label=label)
        true = frame[(frame["mode"] == TRUTH) & (frame["quantity"] == quantity) & (frame["index"] == i)]["value"]
        if len(true):
            axes.axhline(float(true.iloc[0]), color=colour, ls="--", lw=0.6, alpha=0.7)
    if (chosen["index"] == OFF).any():
        t, value = series(frame, mode, quantity, OFF)
        axes.plot(t, value, color=GREY, lw=1.1, label="largest outside")
    axes.set_xlabel("iteration")
    axes.set_ylabel(LABELS[quantity])


def mark_switch(axes: Axes, frame: pd.DataFrame, mode: str) -> None:
    """A line where Algorithm 2 decreases its direction step."""
    chosen = frame[(frame["mode"] == mode) & (frame["quantity"] == "switch")]
    if len(chosen):
        step = float(chosen["value"].iloc[0])
        axes.axvline(step, color=GREY, ls=":", lw=0.9)
        where = np.clip(step / axes.get_xlim()[1], 0, 1)
        axes.text(
            step, 0.14, " switch" if where < 0.8 else "switch ", transform=axes.get_xaxis_transform(), color=GREY,
            ha="left" if where < 0.8 else "right", va="bottom", fontsize=7,
        )  # fmt: skip
