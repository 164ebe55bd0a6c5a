"""Convergence of Algorithm 2, and incremental learning: the strongest group is learned first.

Like figure 2, with entries 5 to 13 on the support. The text switches to the small direction step once magnitudes have
settled (tolerance 0.01). The authors' code starts its rule from a previous magnitude of 1 and therefore switches after
one step and never uses the large direction step, which does no harm here. The published figure is the code's.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from covey.datasets import GroupSparseData
from covey.paper.datasets import legacy_paper_data
from covey.paper.dynamics import SwitchAt, SwitchSettled, Trajectory
from covey.paper.experiments.base import Claim, Claims, Scale, judge, where
from covey.paper.experiments.curves import best, last, series, support_groups, true_value
from covey.paper.experiments.style import GREY, Axes, draw_curves, panel, panels
from covey.paper.experiments.tasks import each
from covey.paper.experiments.traces import CODE, MODES, TEXT, descend, stack, trace, truth

TITLE = "Convergence of Algorithm 2"


@dataclass(frozen=True)
class Settings(Scale):
    """The published run, with a meaningful tolerance (0.1 is met before anything has moved)."""

    step_size: float = 1e-3
    tol: float = 0.01
    text_steps: int = 2000
    code_steps: int = 1000

    def descend(self, data: GroupSparseData, mode: str) -> Trajectory:
        """Algorithm 2 with the paper's practical switch rule, which in the code is met after the first step."""
        switch, steps = (SwitchAt(1), self.code_steps) if mode == CODE else (SwitchSettled(self.tol), self.text_steps)
        step = self.step_size
        return descend(data, mode, step_size=step, direction_step=step, switch=switch, n_steps=steps)

    def trace(self, data: GroupSparseData, mode: str) -> pd.DataFrame:
        return trace(self.descend(data, mode), data, mode, points=150)


def published() -> GroupSparseData:
    return legacy_paper_data(support=range(5, 14))


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    data = published()
    return stack(*each(lambda mode: settings.trace(data, mode), MODES), truth(data))


@panels(2, 3, height=2.15, sharex="row")
def plot(frame: pd.DataFrame, *axes: Axes) -> None:
    quantities = {"entry": "entries", "magnitude": "magnitudes", "direction": "directions"}
    for row, mode, letters in ((axes[:3], TEXT, "abc"), (axes[3:], CODE, "def")):
        for one, (quantity, plural), name in zip(row, quantities.items(), letters, strict=True):
            draw_curves(one, frame, mode, quantity, group_size=1 if quantity == "magnitude" else 3)
            one.set_xlim(left=0)
            for step in where(frame, mode=mode, quantity="switch")["value"].astype(float):
                one.axvline(step, color=GREY, ls=":", lw=0.9)
                side, text = ("left", " switch") if step < 0.8 * one.get_xlim()[1] else ("right", "switch ")
                one.text(step, 0.14, text, transform=one.get_xaxis_transform(), color=GREY, ha=side, fontsize=7)
            panel(one, name, f"{plural}, {mode}")
        row[2].set_ylim(0, 1.02)
    axes[2].legend(loc="lower right", ncols=1)


def claims(frame: pd.DataFrame) -> Claims:
    yield from convergence_claims(frame)
    groups = sorted(support_groups(frame), key=lambda l: -true_value(frame, "magnitude", l))
    times = {mode: [wake_time(frame, mode, l) for l in groups] for mode in MODES}
    order = {mode: all(a < b for a, b in pairwise(found)) for mode, found in times.items()}
    listed = {mode: ", ".join(f"{t:.0f}" for t in found) for mode, found in times.items()}
    yield Claim(
        "Learning is incremental: stronger groups are learned before weaker ones.",
        "half of the true norm is reached in order of strength",
        f"strongest to weakest at steps {listed[TEXT]} (text), {listed[CODE]} (code)",
        judge(order[TEXT], order[CODE]),
    )


def convergence_claims(frame: pd.DataFrame, place: str = "") -> Claims:
    """Convergence of entries, magnitudes and directions to the truth."""
    signal = true_value(frame, "signal")
    (least, at), (least_code, at_code) = (best(frame, mode) for mode in MODES)
    end, end_code = (last(frame, mode) for mode in MODES)
    yield Claim(
        f"Algorithm 2 converges{place}: the recovered entries stay at the true ones.",
        f"last error below 0.1% of norm(w*)^2 = {signal:g} and at most twice the least",
        f"least {least:.5f} at step {at}, last {end:.5f} (text); {least_code:.5f} at {at_code}, {end_code:.5f} (code)",
        judge(end < 1e-3 * signal and end <= 2 * least, end_code < 1e-3 * signal and end_code <= 2 * least_code),
    )
    groups = support_groups(frame)
    true = np.array([true_value(frame, "magnitude", l) for l in groups])
    u, u_code = (np.array([last(frame, mode, "magnitude", l) for l in groups]) for mode in MODES)
    off, off_code = (float(np.max(np.abs(values / true - 1))) for values in (u, u_code))
    yield Claim(
        "The recovered group magnitudes converge to the true ones.",
        "within 1% at the end",
        f"{', '.join(f'{value:.3f}' for value in u)}, true {', '.join(f'{value:.3f}' for value in true)}: "
        f"within {off:.2%} (text), {off_code:.2%} (code)",
        judge(off < 0.01, off_code < 0.01),
    )
    aligned, aligned_code = (min(last(frame, mode, "alignment", l) for l in groups) for mode in MODES)
    yield Claim(
        "The recovered directions converge to the true ones.",
        "inner product with the truth above 0.999 at the end, in every group",
        f"least {aligned:.6f} (text), {aligned_code:.6f} (code)",
        judge(aligned > 0.999, aligned_code > 0.999),
    )


def wake_time(frame: pd.DataFrame, mode: str, l: int) -> float:
    """The time at which a group of the support first has half of its true norm (its magnitude over sqrt(2))."""
    t, u = series(frame, mode, "magnitude", l)
    reached = np.flatnonzero(u >= true_value(frame, "magnitude", l) / np.sqrt(2))
    return float(t[reached[0]]) if reached.size else np.inf
