"""Convergence of Algorithm 1, and its behaviour without early stopping.

150 Rademacher rows, 300 columns in groups of 3, three groups with all entries 10, noise 0.5, the published draw. The
paper's text and the authors' code are run side by side: they differ in a factor 2 of the gradients, which doubles the
direction step (to ``2/u^4``) along with the speed. The published figure is the code's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from covey.paper.datasets import legacy_paper_data
from covey.paper.experiments.base import Claim, Claims, Scale, judge, scaled
from covey.paper.experiments.curves import best, last, series, support_groups, true_value
from covey.paper.experiments.style import ERROR, GREY, MODE_COLOURS, MODE_NAMES, Axes, draw_curves, panel, panels
from covey.paper.experiments.tasks import each
from covey.paper.experiments.traces import CODE, MODES, TEXT, TRUTH, descend, stack, trace, truth

TITLE = "Convergence of Algorithm 1"
LONG = "text, long"


@dataclass(frozen=True)
class Settings(Scale):
    """The published run. The code's steps are twice as long, so the text gets twice as many."""

    step_size: float = 1e-3
    text_steps: int = 4000
    code_steps: int = 2000
    long_steps: int = scaled(200_000, quick=40_000)


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """Traces of the text, of the code, and the error of the text far beyond the figure."""
    data = legacy_paper_data()
    steps = {TEXT: settings.text_steps, CODE: settings.code_steps, LONG: settings.long_steps}

    def one(mode: str) -> pd.DataFrame:
        every = max(1, steps[mode] // 200) if mode == LONG else 1
        path = descend(data, mode, step_size=settings.step_size, n_steps=steps[mode], record_every=every)
        return trace(path, data, mode, () if mode == LONG else ("magnitude",))

    return stack(*each(one, steps, jobs), truth(data))


@panels(1, 3, height=2.5)
def plot(frame: pd.DataFrame, error: Axes, text: Axes, code: Axes) -> None:
    for mode in MODES:
        error.plot(*series(frame, mode, "error"), color=MODE_COLOURS[mode], label=MODE_NAMES[mode])
        least, step = best(frame, mode)
        error.plot(step, least, "o", color=MODE_COLOURS[mode], markeredgecolor="white")
    error.axhline(last(frame, TRUTH), color=GREY, ls="--", lw=0.9, label="true groups known")
    error.legend(loc="upper left", bbox_to_anchor=(0.22, 0.72))
    panel(error, "a", "recovery error", yscale="log", xlabel="iteration", ylabel=ERROR)
    top = 1.25 * max(true_value(frame, "magnitude", l) for l in support_groups(frame))
    for axes, mode, name in ((text, TEXT, "b"), (code, CODE, "c")):
        draw_curves(axes, frame, mode, "magnitude")
        panel(axes, name, f"magnitudes, {mode}", ylim=(-0.2, top))
    text.legend(loc="center right")


def claims(frame: pd.DataFrame) -> Claims:
    (least, at), (least_code, at_code) = (best(frame, mode) for mode in MODES)
    oracle, signal = last(frame, TRUTH), true_value(frame, "signal")
    yield Claim(
        "Algorithm 1 recovers the truth.",
        f"least error below 0.1% of norm(w*)^2 = {signal:g}",
        f"{least:.5f} at step {at} (text), {least_code:.5f} at {at_code} (code); with the true groups known "
        f"{oracle:.5f}",
        judge(least < 1e-3 * signal, least_code < 1e-3 * signal),
    )
    off, off_code = (_magnitude_error(frame, mode) for mode in MODES)
    yield Claim(
        "The groups' magnitudes reach their true values.",
        "within 1% at the best time",
        f"largest relative difference {off:.2%} (text), {off_code:.2%} (code)",
        judge(off < 0.01, off_code < 0.01),
    )
    (steps, end), (steps_code, end_code), (steps_long, long) = (
        (values[-1] for values in series(frame, mode, "error")) for mode in (TEXT, CODE, LONG)
    )
    yield Claim(
        "Early stopping is crucial: run on, and the structured solution is lost.",
        "the error at the end of the figure is at least 10 times its least",
        f"{end / least:.1f} times after {steps:.0f} steps (text; {long / least:.0f} times after {steps_long:.0f}), "
        f"{end_code / least_code:.0f} times after {steps_code:.0f} (code: {end_code:.0f})",
        judge(end >= 10 * least, end_code >= 10 * least_code),
    )


def _magnitude_error(frame: pd.DataFrame, mode: str) -> float:
    """Largest relative error of a magnitude on the support, at the record nearest the best time."""
    at, off = best(frame, mode)[1], []
    for l in support_groups(frame):
        t, u = series(frame, mode, "magnitude", l)
        off.append(abs(u[np.argmin(np.abs(t - at))] / true_value(frame, "magnitude", l) - 1))
    return float(max(off))
