"""Powers other than 2: the theorems' window and the corollary's rates for ``w_l = u_l^N v_l`` with N = 2, 3, 4.

The paper builds on the power parametrisation and proves its theorems for N = 2. `covey.paper.theory.power_bounds` has
them for any N; here they are measured. *Windows*: designs at the largest coherence, step, start and noise that the
theorem allows; the times between which the promised bounds hold, compared with the predicted [T_lb, T_ub]. *Rates*: the
experiment `rates` on the same draws for each N, with the corollary's slopes, and the ratio of errors to N = 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from covey.paper.dynamics import normalized_descent
from covey.paper.experiments import rates
from covey.paper.experiments.claim import Claim, judge
from covey.paper.experiments.prescribed import prescribed_problem
from covey.paper.experiments.settings import Scale
from covey.paper.experiments.slopes import LEVEL, fit
from covey.paper.experiments.style import COLOURS, GREY, Figure, grid, letter, styled
from covey.paper.experiments.tasks import Row, run_tasks
from covey.paper.theory import power_bounds

__all__ = ["TITLE", "Settings", "claims", "plot", "run"]

TITLE = "Powers other than 2: windows and rates for w = u^N v"

DEPTHS = (2, 3, 4)
# norm-1 groups wake after about log(1/alpha)/(2 gamma) or alpha^(2-N)/(gamma N (N-2)) steps: 140, 300, 600
STARTS = {2: 1e-6, 3: 0.05, 4: 0.13}
N_STEPS = {2: 600, 3: 900, 4: 1400}
FOLLOWED = 3  # times T_ub
PRECISE = 0.15  # with a larger standard error a slope of 1 cannot be distinguished from 1/2
CLAIMED = {"n": -1.0, "s": 1.0, "sigma": 2.0, "group_size": 1.0}
SYMBOLS = {"n": "n", "s": "s", "sigma": "sigma", "group_size": "k"}


@dataclass(frozen=True)
class Settings(Scale):
    """Rates: base values, grids and repeats, as in `rates`. Windows: draws of a design, and its precision."""

    QUICK: ClassVar[dict[str, Any]] = {
        "grid_n": (150, 400, 1000),
        "grid_s": (1, 3, 8),
        "grid_sigma": (0.0625, 0.25, 0.5),
        "grid_group_size": (2, 6, 16),
        "repeats": 20,
        "windows": 8,
    }

    grid_n: tuple[int, ...] = (150, 300, 600, 1200)
    grid_s: tuple[int, ...] = (1, 2, 4, 8)
    grid_sigma: tuple[float, ...] = (0.0625, 0.125, 0.25, 0.5)
    grid_group_size: tuple[int, ...] = (2, 4, 8, 16)
    repeats: int = 30
    windows: int = 20
    epsilon: float = 2e-3
    seed: int = 0


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """Both parts as one table, distinguished by ``part``; every row has its ``depth``."""
    tasks: list[dict[str, Any]] = []
    for depth in DEPTHS:
        base = rates.Settings(
            grid_n=settings.grid_n, grid_s=settings.grid_s, grid_sigma=settings.grid_sigma, grid_p=(),
            grid_group_size=settings.grid_group_size, repeats=settings.repeats, seed=settings.seed,
            depth=depth, init_scale=STARTS[depth], n_steps=N_STEPS[depth],
        )  # fmt: skip
        tasks += base.tasks()
    found = pd.DataFrame(run_tasks(depth_task, tasks, jobs)).assign(part="rates")
    windows = [
        {"depth": depth, "draw": r, "seed": [settings.seed, 7, r], "epsilon": settings.epsilon}
        for depth in DEPTHS
        for r in range(settings.windows)
    ]
    return pd.concat(
        [found, pd.DataFrame(run_tasks(window_task, windows, jobs)).assign(part="windows")], ignore_index=True
    )


def depth_task(**task: Any) -> list[Row]:
    """One data set of `rates`, with the depth in every row."""
    return [{**row, "depth": task["depth"]} for row in rates.rates_task(**task)]


def window_task(depth: int, draw: int, seed: list[int], epsilon: float) -> list[Row]:
    """Algorithm 1 at the limits of the theorem: predicted and measured window, and the largest errors inside it."""
    rng = np.random.default_rng(seed)
    sizes, norms = rng.integers(1, 5, size=6), np.zeros(6)
    s = int(rng.integers(1, 4))
    norms[:s] = rng.uniform(1.0, 2.0, size=s)
    b = power_bounds(norms, L=6, epsilon=epsilon, depth=depth, group_noise=epsilon)
    data = prescribed_problem(
        rng, sizes, norms, delta_in=b.delta_in(), delta_out=b.delta_out(), group_noise=epsilon
    )  # fmt: skip
    n_steps = int(FOLLOWED * b.T_ub)
    path = normalized_descent(
        data.X, data.y, data.groups, init_scale=b.init_scale, step_size=b.step_size, depth=depth, n_steps=n_steps,
        record_every=max(1, n_steps // 3000),
    )  # fmt: skip
    on = data.groups.norms(path.w - data.w_star)[:, :s].max(axis=1)
    off = data.groups.norms(path.w)[:, s:].max(axis=1)
    inside = (path.t >= b.T_lb) & (path.t <= b.T_ub)
    opens = path.t[np.flatnonzero(on > b.error_radius)[-1] + 1] if on[-1] <= b.error_radius else np.inf
    beyond = np.flatnonzero(off > b.off_support_radius)
    numbers = {
        "T_lb": b.T_lb,
        "T_ub": b.T_ub,
        "opens": float(opens),
        "closes": float(path.t[beyond[0]]) if beyond.size else float(path.t[-1]),
        "on_share": float(on[inside].max() / b.error_radius),
        "off_share": float(off[inside].max() / b.off_support_radius),
    }
    return [{"depth": depth, "repeat": draw, "axis": name, "error": value} for name, value in numbers.items()]


def _windows(frame: pd.DataFrame) -> pd.DataFrame:
    part = frame[frame["part"] == "windows"]
    return part.pivot_table(index=["depth", "repeat"], columns="axis", values="error", dropna=False)


def claims(frame: pd.DataFrame) -> list[Claim]:
    """Windows, slopes with standard errors, and ratios to N = 2."""
    table, out = _windows(frame), []
    for depth, part in table.groupby("depth"):
        held = (part["on_share"] <= 1) & (part["off_share"] <= 1)
        out.append(
            Claim(
                f"(Our extension.) N = {depth}: in the predicted window the bounds of theorem convergence-alg-1 hold.",
                "on every draw at the limits of the theorem",
                f"{int(held.sum())} of {len(part)}; they hold from {_range(part['opens'] / part['T_lb'])} of T_lb to "
                f"{(part['closes'] / part['T_ub']).min():.2f} of T_ub or more (runs end at {FOLLOWED} T_ub)",
                judge(bool(held.all())),
            )
        )
    errors = frame[(frame["part"] == "rates") & (frame["method"] == rates.BEST)]
    for depth in DEPTHS:
        mine = errors[errors["depth"] == depth]
        slopes = {axis: fit(*(mine[mine["axis"] == axis][c] for c in ("value", "error"))) for axis in CLAIMED}
        good = not any(slope.rejects(CLAIMED[axis]) or slope.error > PRECISE for axis, slope in slopes.items())
        out.append(
            Claim(
                f"(Our extension.) N = {depth}: the error goes like s k sigma^2/n, as in the corrected corollary.",
                f"slopes -1 in n, 1 in s, 2 in sigma, 1 in k, none rejected at the {LEVEL:.0%} level, "
                f"standard errors at most {PRECISE:g}",
                ", ".join(f"{slope} in {SYMBOLS[axis]}" for axis, slope in slopes.items()),
                judge(good),
            )
        )
    wide = errors.pivot_table(index=["axis", "value", "repeat"], columns="depth", values="error")
    for depth in DEPTHS[1:]:
        ratio = float(wide[depth].mean() / wide[2].mean())
        out.append(
            Claim(
                f"(Our extension.) N = {depth} is as good as N = 2 on the same draws, each at its best time.",
                "mean error at most 10% higher",
                f"ratio {ratio:.3f}",
                judge(ratio <= 1.1),
            )
        )
    return out


def _range(values: pd.Series) -> str:
    return f"{values.min():.2f} to {values.max():.2f}"


@styled
def plot(frame: pd.DataFrame) -> Figure:
    """Errors against n, s and the group size for each N, and the windows."""
    figure, axes = grid(2, 3, height=2.3)
    errors = frame[(frame["part"] == "rates")]
    for panel, axis, name in zip(axes.flat, ("n", "s", "sigma", "group_size"), "abcd", strict=False):
        slopes = ["slopes"]
        for depth, colour, mark in zip(DEPTHS, COLOURS[:3], "os^", strict=True):
            part = errors[(errors["method"] == rates.BEST) & (errors["depth"] == depth) & (errors["axis"] == axis)]
            mean = part.groupby("value")["error"].mean()
            panel.plot(mean.index, mean, color=colour, marker=mark, mfc="none", label=f"N = {depth}")
            slopes.append(f"N = {depth}: {fit(part['value'], part['error'])}")
        oracle = errors[(errors["method"] == rates.ORACLE) & (errors["axis"] == axis)].groupby("value")["error"].mean()
        panel.plot(oracle.index, oracle, color=GREY, ls="--", lw=1)
        panel.set(xscale="log", yscale="log", xlabel=rates.AXES[axis], ylabel="squared error" if axis == "n" else "")
        panel.set_xticks(oracle.index, [f"{v:g}" for v in oracle.index])
        panel.set_xticks([], minor=True)
        falling = axis == "n"
        panel.text(
            0.97, 0.97 if falling else 0.03, "\n".join(slopes), ha="right", va="top" if falling else "bottom",
            fontsize=6.5, transform=panel.transAxes,
        )  # fmt: skip
        letter(panel, name, f"error against {axis.replace('_', ' ')}")
    axes[1, 0].set_ylabel("squared error")
    _draw_windows(axes[1, 1], _windows(frame))
    letter(axes[1, 1], "e", "windows at the theorem's limits")
    axes[1, 2].axis("off")
    handles = axes[0, 0].get_legend_handles_labels()
    axes[1, 2].legend(*handles, loc="upper left")
    axes[1, 2].text(
        0.0, 0.5,
        "Dashed: least squares on the true groups.\n\n(e) One line per draw, time over T_lb:\n"
        "thin, where the bounds hold;\nthick, the predicted window.",
        va="top", fontsize=7.5, transform=axes[1, 2].transAxes,
    )  # fmt: skip
    return figure


def _draw_windows(panel: Any, table: pd.DataFrame) -> None:
    height, middles = 0, []
    for depth, colour in zip(DEPTHS, COLOURS[:3], strict=True):
        row: Any
        for row in table.loc[depth].itertuples():
            panel.plot([row.opens / row.T_lb, row.closes / row.T_lb], [height] * 2, color=colour, lw=0.9)
            panel.plot([1.0, row.T_ub / row.T_lb], [height] * 2, color=colour, lw=3, solid_capstyle="butt")
            height += 1
        middles.append(height - 0.5 - 0.5 * len(table.loc[depth]))
        height += 1
    panel.set_yticks(middles, [f"N = {depth}" for depth in DEPTHS])
    panel.set(xscale="log", xlabel="time / T_lb")
