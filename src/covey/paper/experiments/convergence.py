"""Algorithm 2 on one draw, by the text and by the code: shared by figures 3 and 11."""

from __future__ import annotations

import numpy as np
import pandas as pd

from covey.datasets import GroupSparseData
from covey.paper.dynamics import SwitchAt, SwitchSettled, Trajectory, normalized_descent
from covey.paper.experiments.claim import Claim, judge
from covey.paper.experiments.panels import draw_curves, mark_switch
from covey.paper.experiments.style import Figure, grid, letter
from covey.paper.experiments.traces import CODE, IN_CODE, OFF, TEXT, TRUTH, best, last, series

__all__ = ["algorithm_2", "convergence_claims", "draw_convergence", "support_indices", "wake_times"]


def algorithm_2(
    data: GroupSparseData, mode: str, *, step_size: float, direction_step: float, tol: float, n_steps: int
) -> Trajectory:
    """Algorithm 2 with the paper's practical switch rule.

    In the code the rule compares the first magnitudes with 1, so that it is met after the first step and the small
    direction step is used throughout.
    """
    return normalized_descent(
        data.X,
        data.y,
        data.groups,
        step_size=step_size,
        direction_step=direction_step,
        switch=SwitchAt(1) if mode == CODE else SwitchSettled(tol),
        n_steps=n_steps,
        w_star=data.w_star,
        **(IN_CODE if mode == CODE else {}),
    )


def draw_convergence(frame: pd.DataFrame, group_size: int) -> Figure:
    """Entries, magnitudes and directions, one row for the text and one for the code."""
    figure, axes = grid(2, 3, height=2.15, sharex="row")
    for row, mode, letters in zip(axes, (TEXT, CODE), ("abc", "def"), strict=True):
        for panel, quantity, name, what in zip(
            row, ("entry", "magnitude", "direction"), letters, ("entries", "magnitudes", "directions"), strict=True
        ):
            draw_curves(panel, frame, mode, quantity, group_size=1 if quantity == "magnitude" else group_size)
            panel.set_xlim(left=0)
            mark_switch(panel, frame, mode)
            letter(panel, name, f"{what}, {mode}")
        row[2].set_ylim(0, 1.02)
    axes[0, 2].legend(loc="lower right", ncols=1)
    return figure


def convergence_claims(frame: pd.DataFrame, where: str = "") -> list[Claim]:
    """Convergence of entries, magnitudes and directions to the truth."""
    signal = last(frame, TRUTH, "signal")
    (least, at), (least_code, at_code) = best(frame, TEXT), best(frame, CODE)
    end, end_code = last(frame, TEXT), last(frame, CODE)
    magnitudes = {mode: _ends(frame, mode, "magnitude") for mode in (TEXT, CODE)}
    true = np.array([series(frame, TRUTH, "magnitude", l)[1][0] for l in support_indices(frame)])
    off = {mode: float(np.max(np.abs(u / true - 1))) for mode, u in magnitudes.items()}
    aligned = {mode: float(_ends(frame, mode, "alignment").min()) for mode in (TEXT, CODE)}
    listed = ", ".join(f"{u:.3f}" for u in magnitudes[TEXT])
    return [
        Claim(
            f"Algorithm 2 converges{where}: the recovered entries stay at the true ones.",
            f"last error below 0.1% of norm(w*)^2 = {signal:g} and at most twice the least",
            f"least {least:.5f} at step {at}, last {end:.5f} (text); "
            f"{least_code:.5f} at {at_code}, {end_code:.5f} (code)",
            judge(end < 1e-3 * signal and end <= 2 * least, end_code < 1e-3 * signal and end_code <= 2 * least_code),
        ),
        Claim(
            "The recovered group magnitudes converge to the true ones.",
            "within 1% at the end",
            f"{listed}, true {', '.join(f'{u:.3f}' for u in true)}: "
            f"within {off[TEXT]:.2%} (text), {off[CODE]:.2%} (code)",
            judge(off[TEXT] < 0.01, off[CODE] < 0.01),
        ),
        Claim(
            "The recovered directions converge to the true ones.",
            "inner product with the truth above 0.999 at the end, in every group",
            f"least {aligned[TEXT]:.6f} (text), {aligned[CODE]:.6f} (code)",
            judge(aligned[TEXT] > 0.999, aligned[CODE] > 0.999),
        ),
    ]


def support_indices(frame: pd.DataFrame) -> list[int]:
    """The groups of the support."""
    chosen = frame[(frame["mode"] == TRUTH) & (frame["quantity"] == "magnitude")]
    return sorted(int(l) for l in chosen["index"] if l != OFF)


def wake_times(frame: pd.DataFrame, mode: str) -> dict[int, float]:
    """The time at which each group of the support first has half of its true norm (its magnitude over sqrt(2))."""
    out = {}
    for l in support_indices(frame):
        t, u = series(frame, mode, "magnitude", l)
        true = series(frame, TRUTH, "magnitude", l)[1][0]
        reached = np.flatnonzero(u >= true / np.sqrt(2))
        out[l] = float(t[reached[0]]) if reached.size else np.inf
    return out


def _ends(frame: pd.DataFrame, mode: str, quantity: str) -> np.ndarray:
    return np.array([last(frame, mode, quantity, l) for l in support_indices(frame)])
