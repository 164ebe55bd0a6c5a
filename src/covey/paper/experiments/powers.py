"""Powers other than 2: the theorems' window and the corollary's rates for ``w_l = u_l^N v_l`` with N = 2, 3, 4.

The paper builds on the power parametrisation and proves its theorems for N = 2. `covey.paper.theory.power_bounds` has
them for any N; here they are measured. *Windows*: designs at the largest coherence, step, start and noise that the
theorem allows; the times between which the promised bounds hold, compared with the predicted [T_lb, T_ub]. *Rates*: the
experiment `rates` on the same draws for each N, with the corollary's slopes, and the ratio of errors to N = 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from covey.paper.experiments import rates
from covey.paper.experiments.base import Claim, Claims, Record, Scale, judge, scaled, where
from covey.paper.experiments.delta import prescribed_problem
from covey.paper.experiments.slopes import LEVEL, by_axis, fit
from covey.paper.experiments.style import COLOURS, GREY, Axes, fill_ticks, panel, panels
from covey.paper.experiments.tasks import records
from covey.paper.experiments.traces import descend
from covey.paper.theory import power_bounds

TITLE = "Powers other than 2: windows and rates for w = u^N v"

DEPTHS = (2, 3, 4)
# norm-1 groups wake after about log(1/alpha)/(2 gamma) or alpha^(2-N)/(gamma N (N-2)) steps: 140, 300, 600
STARTS = {2: 1e-6, 3: 0.05, 4: 0.13}
N_STEPS = {2: 600, 3: 900, 4: 1400}
FOLLOWED = 3  # times T_ub
EPSILON = 2e-3  # precision of the windows
PRECISE = 0.15  # with a larger standard error a slope of 1 cannot be distinguished from 1/2
CLAIMED = {"n": -1.0, "s": 1.0, "sigma": 2.0, "group_size": 1.0}


@dataclass(frozen=True)
class Settings(Scale):
    """Rates: base values, grids and repeats, as in `rates`. Windows: draws of a design."""

    grid_n: tuple[int, ...] = scaled((150, 300, 600, 1200), quick=(150, 400, 1000))
    grid_s: tuple[int, ...] = scaled((1, 2, 4, 8), quick=(1, 3, 8))
    grid_sigma: tuple[float, ...] = scaled((0.0625, 0.125, 0.25, 0.5), quick=(0.0625, 0.25, 0.5))
    grid_group_size: tuple[int, ...] = scaled((2, 4, 8, 16), quick=(2, 6, 16))
    repeats: int = scaled(30, quick=20)
    windows: int = scaled(20, quick=8)


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """Both parts as one table, distinguished by ``part``; every row has its ``depth``."""
    grids = {name: getattr(settings, name) for name in ("grid_n", "grid_s", "grid_sigma", "grid_group_size")}
    parts = []
    for depth in DEPTHS:
        effort: Record = {"depth": depth, "init_scale": STARTS[depth], "n_steps": N_STEPS[depth]}
        base = rates.Settings(**grids, grid_p=(), repeats=settings.repeats, **effort)
        parts.append(rates.run(base, jobs).assign(depth=depth, part="rates"))
    draws = [(depth, r) for depth in DEPTHS for r in range(settings.windows)]
    parts.append(pd.DataFrame(records(window, draws, jobs)).assign(part="windows"))
    return pd.concat(parts, ignore_index=True)


def window(item: tuple[int, int]) -> list[Record]:
    """Algorithm 1 at the limits of the theorem: predicted and measured window, and the largest errors inside it."""
    depth, draw = item
    rng = np.random.default_rng([0, 7, draw])
    sizes, norms = rng.integers(1, 5, size=6), np.zeros(6)
    s = int(rng.integers(1, 4))
    norms[:s] = rng.uniform(1.0, 2.0, size=s)
    b = power_bounds(norms, L=6, epsilon=EPSILON, depth=depth, group_noise=EPSILON)
    data = prescribed_problem(rng, sizes, norms, delta_in=b.delta_in(), delta_out=b.delta_out(), group_noise=EPSILON)
    n_steps = int(FOLLOWED * b.T_ub)
    options = {"init_scale": b.init_scale, "step_size": b.step_size, "depth": depth}
    path = descend(data, n_steps=n_steps, record_every=max(1, n_steps // 3000), **options)
    on = data.groups.norms(path.w - data.w_star)[:, :s].max(axis=1)
    off = data.groups.norms(path.w)[:, s:].max(axis=1)
    inside = (path.t >= b.T_lb) & (path.t <= b.T_ub)
    opens = path.t[np.flatnonzero(on > b.error_radius)[-1] + 1] if on[-1] <= b.error_radius else np.inf
    beyond = np.flatnonzero(off > b.off_support_radius)
    numbers = {
        "T_lb": b.T_lb, "T_ub": b.T_ub, "opens": float(opens),
        "closes": float(path.t[beyond[0]]) if beyond.size else float(path.t[-1]),
        "on_share": float(on[inside].max() / b.error_radius),
        "off_share": float(off[inside].max() / b.off_support_radius),
    }  # fmt: skip
    return [{"depth": depth, "repeat": draw, "axis": name, "error": value} for name, value in numbers.items()]


def _windows(frame: pd.DataFrame) -> pd.DataFrame:
    part = where(frame, part="windows")
    return part.pivot_table(index=["depth", "repeat"], columns="axis", values="error", dropna=False)


def claims(frame: pd.DataFrame) -> Claims:
    for depth, part in _windows(frame).groupby("depth"):
        held = (part["on_share"] <= 1) & (part["off_share"] <= 1)
        opens, closes = part["opens"] / part["T_lb"], part["closes"] / part["T_ub"]
        yield Claim(
            f"(Our extension.) N = {depth}: in the predicted window the bounds of theorem convergence-alg-1 hold.",
            "on every draw at the limits of the theorem",
            f"{int(held.sum())} of {len(part)}; they hold from {opens.min():.2f} to {opens.max():.2f} of T_lb to "
            f"{closes.min():.2f} of T_ub or more (runs end at {FOLLOWED} T_ub)",
            judge(held.all()),
        )
    errors = where(frame, part="rates", method=rates.BEST)
    for depth in DEPTHS:
        slopes = by_axis(where(errors, depth=depth), CLAIMED)
        good = not any(slope.rejects(CLAIMED[axis]) or slope.error > PRECISE for axis, slope in slopes.items())
        yield Claim(
            f"(Our extension.) N = {depth}: the error goes like s k sigma^2/n, as in the corrected corollary.",
            f"slopes -1 in n, 1 in s, 2 in sigma, 1 in k, none rejected at the {LEVEL:.0%} level, "
            f"standard errors at most {PRECISE:g}",
            ", ".join(f"{slope} in {'k' if axis == 'group_size' else axis}" for axis, slope in slopes.items()),
            judge(good),
        )
    wide = errors.pivot_table(index=["axis", "value", "repeat"], columns="depth", values="error")
    for depth in DEPTHS[1:]:
        ratio = float(wide[depth].mean() / wide[2].mean())
        yield Claim(
            f"(Our extension.) N = {depth} is as good as N = 2 on the same draws, each at its best time.",
            "mean error at most 10% higher",
            f"ratio {ratio:.3f}",
            judge(ratio <= 1.1),
        )


@panels(2, 3, height=2.3)
def plot(frame: pd.DataFrame, *axes: Axes) -> None:
    errors = where(frame, part="rates")
    for one, axis, name in zip(axes, CLAIMED, "abcd", strict=False):
        slopes = ["slopes"]
        for depth, colour, mark in zip(DEPTHS, COLOURS, "os^", strict=False):
            part = where(errors, method=rates.BEST, depth=depth, axis=axis)
            mean = part.groupby("value")["error"].mean()
            one.plot(mean.index, mean, color=colour, marker=mark, mfc="none", label=f"N = {depth}")
            slopes.append(f"N = {depth}: {fit(part['value'], part['error'])}")
        oracle = where(errors, method=rates.ORACLE, axis=axis).groupby("value")["error"].mean()
        one.plot(oracle.index, oracle, color=GREY, ls="--", lw=1)
        title = f"error against {axis.replace('_', ' ')}"
        label = "squared error" if one in (axes[0], axes[3]) else ""
        panel(one, name, title, xscale="log", yscale="log", xlabel=rates.AXES[axis], ylabel=label)
        fill_ticks(one, oracle.index)
        y, va = (0.97, "top") if axis == "n" else (0.03, "bottom")
        one.text(0.97, y, "\n".join(slopes), ha="right", va=va, fontsize=6.5, transform=one.transAxes)
    *_, windows, key = axes
    table, height, middles = _windows(frame), 0, []
    for depth, colour in zip(DEPTHS, COLOURS, strict=False):
        row: Any
        for row in table.loc[depth].itertuples():
            windows.plot([row.opens / row.T_lb, row.closes / row.T_lb], [height] * 2, color=colour, lw=0.9)
            windows.plot([1.0, row.T_ub / row.T_lb], [height] * 2, color=colour, lw=3, solid_capstyle="butt")
            height += 1
        middles.append(height - 0.5 - 0.5 * len(table.loc[depth]))
        height += 1
    windows.set_yticks(middles, [f"N = {depth}" for depth in DEPTHS])
    panel(windows, "e", "windows at the theorem's limits", xscale="log", xlabel="time / T_lb")
    key.axis("off")
    key.legend(*axes[0].get_legend_handles_labels(), loc="upper left")
    note = (
        "Dashed: least squares on the true groups.\n\n(e) One line per draw, time over T_lb:\n"
        "thin, where the bounds hold;\nthick, the predicted window."
    )
    key.text(0.0, 0.5, note, va="top", fontsize=7.5, transform=key.transAxes)
