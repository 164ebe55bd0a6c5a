"""Groups of one: the method as a new algorithm for plain sparse regression.

80 Rademacher rows, 200 columns, five entries of plus or minus 1, noise 0.5, repeated over draws. Text and code differ
in the signs on the support (1,-1,1,-1,1 against 1,-1,-1,1,1), in the logarithm (base 2 against natural) and in the
band (quartiles against 5% to 95%); all curves here have base 2 and quartiles. The published figure is the code's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from covey.paper.datasets import legacy_paper_data
from covey.paper.experiments.base import Claim, Claims, Scale, judge, scaled, where
from covey.paper.experiments.curves import best, last
from covey.paper.experiments.style import COLOURS, MODE_COLOURS, MODE_NAMES, Axes, draw_curves, panel, panels
from covey.paper.experiments.tasks import each
from covey.paper.experiments.traces import CODE, MODES, TEXT, curve, descend, errors, stack, trace, truth

TITLE = "Groups of one"
SUPPORT = {TEXT: (1.0, -1.0, 1.0, -1.0, 1.0), CODE: (1.0, -1.0, -1.0, 1.0, 1.0)}
SIGNAL = 5.0


@dataclass(frozen=True)
class Settings(Scale):
    """The published draw has seed 42; repeats have seeds 0, 100, 200, ..."""

    step_size: float = 0.05
    code_steps: int = 1000
    repeats: int = scaled(30, quick=10)


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """Traces of the published draw, and the error of every repeat on a coarse grid of steps."""

    def one(task: tuple[str, int, bool]) -> pd.DataFrame:
        mode, seed, published = task
        data = legacy_paper_data(80, 200, 1, support=SUPPORT[mode], seed=seed)
        n_steps = settings.code_steps * (1 if mode == CODE else 2)
        path = descend(data, mode, step_size=settings.step_size, n_steps=n_steps)
        if published:
            traced = trace(path, data, mode, ("entry",))
            return traced if mode == CODE else stack(traced, truth(data))
        thin = slice(None, None, max(1, n_steps // 200))
        return curve(mode, "repeat", seed, path.t[thin], errors(path)[thin])

    tasks = [(mode, 42, True) for mode in MODES]
    tasks += [(mode, 100 * i, False) for mode in MODES for i in range(settings.repeats)]
    return stack(*each(one, tasks, jobs))


def repeats(frame: pd.DataFrame, mode: str) -> pd.DataFrame:
    """Log2 errors: one row per step, one column per repeat."""
    return where(frame, mode=mode, quantity="repeat").pivot(index="t", columns="index", values="value").apply(np.log2)


@panels(1, 3, height=2.7)
def plot(frame: pd.DataFrame, text: Axes, code: Axes, error: Axes) -> None:
    for axes, mode, name in ((text, TEXT, "a"), (code, CODE, "b")):
        draw_curves(axes, frame, mode, "entry")
        for line in axes.get_lines():
            if str(line.get_label()).startswith("group"):
                line.set_label("")
        panel(axes, name, f"entries, {mode}", ylim=(-1.3, 1.3))
    code.plot([], [], color=COLOURS[0], label="support, one colour an entry")
    code.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22))
    for mode in MODES:
        log, colour = repeats(frame, mode), MODE_COLOURS[mode]
        low, high = (log.quantile(share, axis=1) for share in (0.25, 0.75))
        error.plot(log.index, log.mean(axis=1), color=colour, label=MODE_NAMES[mode])
        error.fill_between(log.index, low, high, color=colour, alpha=0.18, lw=0)
    panel(error, "c", f"{log.shape[1]} draws, quartiles", xlabel="iteration", ylabel=r"$\log_2 \|w - w^\star\|_2^2$")
    error.legend(loc="upper right")


def claims(frame: pd.DataFrame) -> Claims:
    (least, at), (least_code, at_code) = (best(frame, mode) for mode in MODES)
    yield Claim(
        "With groups of one the method recovers a plainly sparse truth.",
        f"least error below 1% of norm(w*)^2 = {SIGNAL:g}",
        f"{least:.5f} at step {at} (text), {least_code:.5f} at {at_code} (code)",
        judge(least < 0.01 * SIGNAL, least_code < 0.01 * SIGNAL),
    )
    logs = [repeats(frame, mode) for mode in MODES]
    means: Any = [log.mean(axis=1) for log in logs]
    (low, at), (low_code, at_code) = ((float(mean.min()), int(mean.idxmin())) for mean in means)
    worst, worst_code = (float(2 ** log.min(axis=0).max()) for log in logs)
    goal = np.log2(0.01 * SIGNAL)
    yield Claim(
        "It does so over repeated draws.",
        f"mean log2 error below log2(1% of norm(w*)^2) = {goal:.2f} at some time",
        f"{low:.2f} at step {at} over {logs[0].shape[1]} draws (text), {low_code:.2f} at {at_code} (code); "
        f"least error of the worst draw {worst:.3f}, {worst_code:.3f}",
        judge(low < goal, low_code < goal),
    )
    right, right_code = (
        sum(np.sign(last(frame, mode, "entry", j)) == np.sign(value) for j, value in enumerate(SUPPORT[mode]))
        for mode in MODES
    )
    yield Claim(
        "Positive and negative entries are both found.",
        "the signs of all five entries are right at the end",
        f"{right} of 5 (text), {right_code} of 5 (code)",
        judge(right == 5, right_code == 5),
    )
