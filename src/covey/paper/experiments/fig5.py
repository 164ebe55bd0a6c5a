"""Groups of one: the method as a new algorithm for plain sparse regression.

80 Rademacher rows, 200 columns, five entries of plus or minus 1, noise 0.5, repeated over draws. Text and code differ
in the signs on the support (1,-1,1,-1,1 against 1,-1,-1,1,1), in the logarithm (base 2 against natural) and in the
band (quartiles against 5% to 95%); all curves here have base 2 and quartiles. The published figure is the code's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from covey.datasets import GroupSparseData, legacy_paper_data
from covey.paper.dynamics import normalized_descent
from covey.paper.experiments.claim import Claim, judge
from covey.paper.experiments.panels import draw_curves
from covey.paper.experiments.parallel import each
from covey.paper.experiments.settings import Scale
from covey.paper.experiments.style import COLOURS, MODE_COLOURS, MODE_NAMES, Figure, grid, letter, styled
from covey.paper.experiments.traces import CODE, IN_CODE, TEXT, best, errors, rows, series, trace, truth

TITLE = "Groups of one"
SUPPORT = {TEXT: (1.0, -1.0, 1.0, -1.0, 1.0), CODE: (1.0, -1.0, -1.0, 1.0, 1.0)}
SIGNAL = 5.0


@dataclass(frozen=True)
class Settings(Scale):
    """The published draw has seed 42; repeats have seeds 0, 100, 200, ..."""

    QUICK: ClassVar[dict[str, Any]] = {"repeats": 10}

    step_size: float = 0.05
    code_steps: int = 1000
    repeats: int = 30
    seed: int = 42

    def data(self, mode: str, seed: int) -> GroupSparseData:
        """A draw with the signs of the text or of the code."""
        return legacy_paper_data(80, 200, 1, support=SUPPORT[mode], seed=seed)


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """Traces of the published draw, and the error of every repeat on a coarse grid of steps."""

    def one(task: tuple[str, int, bool]) -> pd.DataFrame:
        mode, seed, published = task
        data = settings.data(mode, seed)
        path = normalized_descent(
            data.X,
            data.y,
            1,
            step_size=settings.step_size,
            n_steps=settings.code_steps * (1 if mode == CODE else 2),
            w_star=data.w_star,
            **(IN_CODE if mode == CODE else {}),
        )
        if published:
            traced = trace(path, data, mode, ("entry",))
            return traced if mode == CODE else pd.concat([traced, truth(data)])
        thin = slice(None, None, max(1, (len(path) - 1) // 200))
        return rows(mode, "repeat", seed, path.t[thin], errors(path)[thin])

    seeds = [100 * i for i in range(settings.repeats)]
    tasks = [(mode, settings.seed, True) for mode in (TEXT, CODE)]
    tasks += [(mode, seed, False) for mode in (TEXT, CODE) for seed in seeds]
    return pd.concat(each(one, tasks, jobs), ignore_index=True)


def repeats(frame: pd.DataFrame, mode: str) -> pd.DataFrame:
    """Log2 errors: one row per step, one column per repeat."""
    chosen = frame[(frame["mode"] == mode) & (frame["quantity"] == "repeat")]
    return chosen.pivot(index="t", columns="index", values="value").apply(np.log2)


@styled
def plot(frame: pd.DataFrame) -> Figure:
    """Entries of the published draw, by text and by code; errors over all repeats."""
    figure, ((text, code, error),) = grid(1, 3, height=2.7)
    for axes, mode, name in ((text, TEXT, "a"), (code, CODE, "b")):
        draw_curves(axes, frame, mode, "entry")
        for line in axes.get_lines():
            if str(line.get_label()).startswith("group"):
                line.set_label("")
        axes.set_ylim(-1.3, 1.3)
        letter(axes, name, f"entries, {mode}")
    code.plot([], [], color=COLOURS[0], label="support, one colour an entry")
    code.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22))
    for mode in (TEXT, CODE):
        log = repeats(frame, mode)
        error.plot(log.index, log.mean(axis=1), color=MODE_COLOURS[mode], label=MODE_NAMES[mode])
        error.fill_between(
            log.index,
            log.quantile(0.25, axis=1),
            log.quantile(0.75, axis=1),
            color=MODE_COLOURS[mode],
            alpha=0.18,
            lw=0,
        )
    error.set_xlabel("iteration")
    error.set_ylabel(r"$\log_2 \|w - w^\star\|_2^2$")
    error.legend(loc="upper right")
    letter(error, "c", f"{repeats(frame, TEXT).shape[1]} draws, quartiles")
    return figure


def claims(frame: pd.DataFrame) -> list[Claim]:
    """Recovery on the published draw and over repeats."""
    (least, at), (least_code, at_code) = best(frame, TEXT), best(frame, CODE)
    mean = {mode: repeats(frame, mode).mean(axis=1) for mode in (TEXT, CODE)}
    low = {mode: (float(curve.min()), int(curve.index.to_numpy()[curve.argmin()])) for mode, curve in mean.items()}
    worst = {mode: float(2 ** repeats(frame, mode).min(axis=0).max()) for mode in (TEXT, CODE)}
    signs = {mode: _signs_right(frame, mode) for mode in (TEXT, CODE)}
    count = repeats(frame, TEXT).shape[1]
    goal = np.log2(0.01 * SIGNAL)
    return [
        Claim(
            "With groups of one the method recovers a plainly sparse truth.",
            f"least error below 1% of norm(w*)^2 = {SIGNAL:g}",
            f"{least:.5f} at step {at} (text), {least_code:.5f} at {at_code} (code)",
            judge(least < 0.01 * SIGNAL, least_code < 0.01 * SIGNAL),
        ),
        Claim(
            "It does so over repeated draws.",
            f"mean log2 error below log2(1% of norm(w*)^2) = {goal:.2f} at some time",
            f"{low[TEXT][0]:.2f} at step {low[TEXT][1]} over {count} draws (text), "
            f"{low[CODE][0]:.2f} at {low[CODE][1]} (code); "
            f"least error of the worst draw {worst[TEXT]:.3f}, {worst[CODE]:.3f}",
            judge(low[TEXT][0] < goal, low[CODE][0] < goal),
        ),
        Claim(
            "Positive and negative entries are both found.",
            "the signs of all five entries are right at the end",
            f"{signs[TEXT]} of 5 (text), {signs[CODE]} of 5 (code)",
            judge(signs[TEXT] == 5, signs[CODE] == 5),
        ),
    ]


def _signs_right(frame: pd.DataFrame, mode: str) -> int:
    return sum(np.sign(series(frame, mode, "entry", j)[1][-1]) == np.sign(SUPPORT[mode][j]) for j in range(5))
