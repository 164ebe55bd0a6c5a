"""The instability of Algorithm 1's directions, and its cause.

The directions in the run of figure 2. In the direction step ``c/u^4`` the text has c = 1 and the authors' code, through
its factor 2 in the gradients, c = 2. The third column varies c with the magnitudes' step held fixed: the instability
begins between 1.5 and 1.6, so the published figure shows an effect of the factor, not of the algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from covey.datasets import make_group_sparse
from covey.paper.datasets import legacy_paper_data
from covey.paper.dynamics import Trajectory
from covey.paper.experiments.base import Claim, Claims, Scale, judge, scaled, where
from covey.paper.experiments.curves import last, series, true_value
from covey.paper.experiments.style import COLOURS, ERROR, GREY, Axes, draw_curves, panel, panels
from covey.paper.experiments.tasks import each
from covey.paper.experiments.traces import CODE, MODES, TEXT, curve, descend, errors, stack, trace, truth

TITLE = "Instability of Algorithm 1"


@dataclass(frozen=True)
class Settings(Scale):
    """The run of figure 2; a sweep over the factor c; the text's Algorithm 1 on other draws."""

    step_size: float = 1e-3
    text_steps: int = 4000
    code_steps: int = 2000
    shown: int = 400
    factors: tuple[float, ...] = scaled(tuple(k / 10 for k in range(10, 21)), quick=(1.0, 1.25, 1.5, 1.8, 2.0))
    draws: int = scaled(40, quick=8)
    draw_steps: int = 3000


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """Traces of text and code with the movement of directions; the sweep; other draws."""
    data, step = legacy_paper_data(), settings.step_size

    def one(task: tuple[str, float]) -> pd.DataFrame:
        kind, number = task
        if kind == "draw":
            path = descend(make_group_sparse(random_state=int(number)), step_size=step, n_steps=settings.draw_steps)
            return curve("draws", "error", int(number), settings.draw_steps, errors(path)[-1])
        if kind == "sweep":
            path = descend(data, step_size=step / number, gradient_scale=number, n_steps=settings.text_steps)
            end = curve("sweep", "factor", 0, number, errors(path)[-1])
            return stack(end, curve("sweep", "movement", 0, number, _late(path)))
        path = descend(data, kind, step_size=step, n_steps=settings.code_steps if kind == CODE else settings.text_steps)
        # every step of the code up to the end of the figure, and twice as many of the text
        until = settings.shown * (1 if kind == CODE else 2)
        traced = trace(path, data, kind, ("entry", "direction"), points=settings.shown, until=until)
        return stack(traced, curve(kind, "movement", 0, path.t[-1], _late(path)))

    tasks = [(mode, 0.0) for mode in MODES]
    tasks += [("sweep", c) for c in settings.factors] + [("draw", float(i)) for i in range(settings.draws)]
    return stack(*each(one, tasks, jobs), truth(data))


def _late(path: Trajectory) -> float:
    """The largest movement of the support's directions in one step, over the last tenth of the run."""
    late = path.v[-max(2, len(path) // 10) :, :9]
    return float(np.abs(np.diff(late, axis=0)).max())


@panels(2, 3, height=2.2)
def plot(frame: pd.DataFrame, *axes: Axes) -> None:
    for column, mode, letters in ((0, TEXT, "ad"), (1, CODE, "be")):
        # the stretch in which groups wake up, converge and (in the code) become unstable
        end = float(series(frame, mode, "direction", 0)[0][-1])
        for one, name, quantity, title, ylim in (
            (axes[column], letters[0], "direction", "directions", (-0.1, 1.05)),
            (axes[3 + column], letters[1], "entry", "entries", (-1, 16)),
        ):
            draw_curves(one, frame, mode, quantity, group_size=3)
            for line in one.get_lines():
                line.set_linewidth(0.8)
            panel(one, name, f"{title}, {mode}", xlim=(0.5 * end, 0.88 * end), ylim=ylim)
    axes[0].legend(loc="lower right")
    for one, quantity, name, title, label in (
        (axes[2], "movement", "c", "late movement", r"largest $|v(t{+}1) - v(t)|$"),
        (axes[5], "factor", "f", "error at the end", ERROR),
    ):
        one.plot(*series(frame, "sweep", quantity), "o-", color=COLOURS[0])
        panel(one, name, title, yscale="log", xlabel="$c$ in the direction step $c/u^4$", ylabel=label)
        for factor, text, side in ((1.0, " text", "left"), (2.0, "code ", "right")):
            one.axvline(factor, color=GREY, ls=":", lw=0.9)
            one.text(factor, 0.5, text, transform=one.get_xaxis_transform(), color=GREY, fontsize=7, ha=side)


def claims(frame: pd.DataFrame) -> Claims:
    moved, moved_code = (last(frame, mode, "movement") for mode in MODES)
    end, end_code = (last(frame, mode) for mode in MODES)
    small = 0.01 * true_value(frame, "signal")
    yield Claim(
        "The directions of Algorithm 1 do not settle.",
        "some entry still moves by more than 0.01 a step in the last tenth of the run",
        f"{moved:.0e} (text), {moved_code:.2f} (code)",
        judge(moved > 0.01, moved_code > 0.01),
    )
    yield Claim(
        "The estimation error stays small all the same.",
        "where the directions are unstable, the last error is below 1% of norm(w*)^2 = "
        f"{true_value(frame, 'signal'):g}",
        f"{end_code:.0f} (code; {end_code / 300:.2f} as the mean over entries that is plotted); {end:.4f} (text, "
        "where nothing is unstable)",
        judge(moved > 0.01 and end < small, moved_code > 0.01 and end_code < small),
    )
    c, ends = series(frame, "sweep", "factor")
    calm, first = max(c[ends <= small], default=np.nan), min(c[ends > small], default=np.nan)
    draws = where(frame, mode="draws")["value"]
    bounded = int((draws < small).sum())
    yield Claim(
        "The instability is that of the large direction step 1/u^4.",
        "Algorithm 1 as printed blows up on some draws",
        f"error below 1% of norm(w*)^2 on {bounded} of {len(draws)} other draws; on the published one stable for "
        f"c up to {calm:g} in c/u^4, unstable from {first:g}; the code has 2",
        judge(bounded < len(draws), np.isfinite(first)),
    )
