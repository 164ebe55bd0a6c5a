"""BalanceDisplay: the balance u^2/N - norm(v)^2 along descent and flow, and its drift against the step."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from covey.paper.theory import BalanceDrift
from covey.plots.style import MARK, PALETTE, AxesLike, make_axes, quiet


class BalanceDisplay:
    """Conservation of the balance (Lemma balancing): `balance_drift` by name, and the table of `drift_against_step`."""

    def __init__(self, drifts: Mapping[str, BalanceDrift], table: pd.DataFrame | None = None) -> None:
        self.drifts = dict(drifts)
        self.table = table

    def plot(self, *, ax: AxesLike = None) -> BalanceDisplay:
        """Draw the drift against time and, with a table, against the step."""
        self.figure_, self.axes_ = make_axes(ax, 1 if self.table is None else 2, width=4.4, height=3.4)
        first = self.axes_[0]
        for (name, drift), colour in zip(self.drifts.items(), PALETTE, strict=False):
            largest = np.abs(drift.drift).max(axis=1)
            # the drift starts at zero, which a log axis cannot show
            first.plot(drift.t[1:], np.maximum(largest[1:], 1e-18), color=colour, lw=1.4, label=name)
        first.set_yscale("log")
        first.legend(frameon=False, fontsize=8)
        quiet(first, title="drift of the balance", xlabel="time or iteration", ylabel="largest drift of any group")
        if self.table is None:
            return self
        second, flow = self.axes_[1], self.table["dynamics"] == "flow"
        descent = self.table[~flow].sort_values("step")
        step, largest = descent["step"].to_numpy(float), descent["largest"].to_numpy(float)
        second.loglog(step, largest, color=PALETTE[0], marker="o", ms=4, lw=1.3, label="plain descent")
        second.loglog(step, largest[0] * step / step[0], color=MARK, lw=1, ls="--", label="proportional to the step")
        for value in self.table.loc[flow, "largest"]:
            second.axhline(value, color=PALETTE[1], lw=1.3, label="flow (solver tolerance)")
        second.set_xticks(step, [f"{v:g}" for v in step], fontsize=8)
        second.set_xticks([], minor=True)
        second.legend(frameon=False, fontsize=8)
        quiet(second, title="over one span of time", xlabel="step", ylabel="largest drift")
        return self
