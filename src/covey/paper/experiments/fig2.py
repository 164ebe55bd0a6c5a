"""Convergence of Algorithm 1, and its behaviour without early stopping.

150 Rademacher rows, 300 columns in groups of 3, three groups with all entries 10, noise 0.5, the published draw. The
paper's text and the authors' code are run side by side: they differ in a factor 2 of the gradients, which doubles the
direction step (to ``2/u^4``) along with the speed. The published figure is the code's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from covey.datasets import GroupSparseData, legacy_paper_data
from covey.paper.dynamics import normalized_descent
from covey.paper.experiments.claim import Claim, judge
from covey.paper.experiments.panels import draw_curves, draw_errors
from covey.paper.experiments.parallel import each
from covey.paper.experiments.settings import Scale
from covey.paper.experiments.style import Figure, grid, letter, styled
from covey.paper.experiments.traces import CODE, IN_CODE, TEXT, TRUTH, best, last, rows, series, trace, truth

TITLE = "Convergence of Algorithm 1"
LONG = "text, long"


@dataclass(frozen=True)
class Settings(Scale):
    """The published run. The code's steps are twice as long, so the text gets twice as many."""

    QUICK: ClassVar[dict[str, Any]] = {"long_steps": 40_000}

    step_size: float = 1e-3
    init_scale: float = 1e-6
    text_steps: int = 4000
    code_steps: int = 2000
    long_steps: int = 200_000
    seed: int = 6

    def data(self) -> GroupSparseData:
        """The published draw."""
        return legacy_paper_data(seed=self.seed)


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """Traces of the text, of the code, and the error of the text far beyond the figure."""
    data = settings.data()
    parts = each(lambda mode: _one(settings, data, mode), (TEXT, CODE, LONG), jobs)
    return pd.concat([*parts, truth(data)], ignore_index=True)


def _one(settings: Settings, data: GroupSparseData, mode: str) -> pd.DataFrame:
    steps = {TEXT: settings.text_steps, CODE: settings.code_steps, LONG: settings.long_steps}[mode]
    path = normalized_descent(
        data.X,
        data.y,
        data.groups,
        init_scale=settings.init_scale,
        step_size=settings.step_size,
        n_steps=steps,
        record_every=max(1, steps // 200) if mode == LONG else 1,
        w_star=data.w_star,
        **(IN_CODE if mode == CODE else {}),
    )
    if mode == LONG:
        return rows(LONG, "error", 0, path.t, path.error)
    return trace(path, data, mode, ("magnitude",))


@styled
def plot(frame: pd.DataFrame) -> Figure:
    """Recovery error, and the magnitudes under the text and under the code."""
    figure, ((error, text, code),) = grid(1, 3, height=2.5)
    draw_errors(error, frame)
    error.legend(loc="upper left", bbox_to_anchor=(0.22, 0.72))
    letter(error, "a", "recovery error")
    for axes, mode, name, at in ((text, TEXT, "b", "text"), (code, CODE, "c", "code")):
        draw_curves(axes, frame, mode, "magnitude")
        letter(axes, name, f"magnitudes, {at}")
        axes.set_ylim(
            -0.2, 1.25 * float(frame[(frame["mode"] == TRUTH) & (frame["quantity"] == "magnitude")]["value"].max())
        )
    text.legend(loc="center right")
    return figure


def claims(frame: pd.DataFrame) -> list[Claim]:
    """Recovery, magnitudes, and whether early stopping is crucial."""
    (least, at), (least_code, at_code) = best(frame, TEXT), best(frame, CODE)
    oracle, signal = last(frame, TRUTH), last(frame, TRUTH, "signal")
    end, end_code = last(frame, TEXT), last(frame, CODE)
    steps, steps_code = (int(series(frame, mode, "error")[0][-1]) for mode in (TEXT, CODE))
    t_long, long = series(frame, LONG, "error")
    off, off_code = _magnitude_error(frame, TEXT), _magnitude_error(frame, CODE)
    return [
        Claim(
            "Algorithm 1 recovers the truth.",
            f"least error below 0.1% of norm(w*)^2 = {signal:g}",
            f"{least:.5f} at step {at} (text), {least_code:.5f} at {at_code} (code); "
            f"with the true groups known {oracle:.5f}",
            judge(least < 1e-3 * signal, least_code < 1e-3 * signal),
        ),
        Claim(
            "The groups' magnitudes reach their true values.",
            "within 1% at the best time",
            f"largest relative difference {off:.2%} (text), {off_code:.2%} (code)",
            judge(off < 0.01, off_code < 0.01),
        ),
        Claim(
            "Early stopping is crucial: run on, and the structured solution is lost.",
            "the error at the end of the figure is at least 10 times its least",
            f"{end / least:.1f} times after {steps} steps (text; {long[-1] / least:.0f} times after {t_long[-1]:.0f}), "
            f"{end_code / least_code:.0f} times after {steps_code} (code: {end_code:.0f})",
            judge(end >= 10 * least, end_code >= 10 * least_code),
        ),
    ]


def _magnitude_error(frame: pd.DataFrame, mode: str) -> float:
    """Largest relative error of a magnitude on the support, at the record nearest the best time."""
    at = best(frame, mode)[1]
    true = frame[(frame["mode"] == TRUTH) & (frame["quantity"] == "magnitude")]
    off = []
    for l, value in zip(true["index"], true["value"], strict=True):
        t, u = series(frame, mode, "magnitude", int(l))
        off.append(abs(u[np.argmin(np.abs(t - at))] / value - 1))
    return float(max(off))
