"""Group sparsity against plain sparsity with few rows.

100 Rademacher rows, 500 columns, 16 entries of 1 in 4 groups of 4, noise 0.5. Left, Algorithm 2 with groups. Right,
the diagonal network ``w = u^2 - v^2``, which does not use the groups, and its positive-only version ``w = u^2``, which
the authors' code runs and the published figure shows; both for the published 500 epochs and for ten times as long. To
see whether too few rows are the cause, it is also run with more rows, on several draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from covey.datasets import GroupSparseData, legacy_paper_data
from covey.paper.dynamics import Trajectory, diagonal_descent, normalized_descent
from covey.paper.experiments.claim import Claim, judge
from covey.paper.experiments.panels import draw_curves
from covey.paper.experiments.parallel import each
from covey.paper.experiments.settings import Scale
from covey.paper.experiments.style import COLOURS, GREY, Figure, grid, letter, styled
from covey.paper.experiments.traces import (
    CODE,
    IN_CODE,
    OFF,
    TEXT,
    TRUTH,
    best,
    errors,
    last,
    rows,
    series,
    trace,
    truth,
)

TITLE = "Group against plain sparsity"
SIGNED, POSITIVE = "u^2 - v^2", "u^2"
AT_BEST, IN_TIME = "least share of the signal", "least share of the signal in the published time"

# The truth counts as recovered if the squared error is below this share of its squared norm.
RECOVERED = 0.01


@dataclass(frozen=True)
class Settings(Scale):
    """The published run. Times are in epochs of the code; the text needs twice as many for the same distance."""

    QUICK: ClassVar[dict[str, Any]] = {"draws": 2, "row_counts": (100, 150)}

    step_size: float = 1e-2
    direction_step: float = 1e-2
    tol: float = 0.03
    epochs: int = 500
    longer: int = 10
    seed: int = 42
    row_counts: tuple[int, ...] = (100, 125, 150)
    draws: int = 20

    def data(self, n_rows: int = 100, seed: int | None = None) -> GroupSparseData:
        """The published draw, or another one."""
        return legacy_paper_data(n_rows, 500, 4, support=(1.0,) * 16, seed=self.seed if seed is None else seed)


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """The grouped network by text and code; diagonal networks for longer, in epochs of the code."""
    data = settings.data()

    def one(mode: str) -> pd.DataFrame:
        if mode in (SIGNED, POSITIVE):
            path = _without_groups(settings, data, mode)
            off = np.abs(path.w[:, 16:]).max(axis=1)
            thin = slice(None, None, max(1, len(path) // 200))
            parts = [rows(mode, "entry", j, path.t[thin], path.w[thin, j]) for j in range(16)]
            return pd.concat(
                [rows(mode, "error", 0, path.t, path.error), *parts, rows(mode, "entry", OFF, path.t[thin], off[thin])]
            )
        path = normalized_descent(
            data.X,
            data.y,
            data.groups,
            step_size=settings.step_size,
            direction_step=settings.direction_step,
            switch=settings.tol,
            n_steps=settings.epochs if mode == CODE else 2 * settings.epochs,
            w_star=data.w_star,
            **(IN_CODE if mode == CODE else {}),
        )
        return trace(path, data, mode, ("entry",))

    def more_rows(task: tuple[str, int, int]) -> pd.DataFrame:
        mode, n_rows, seed = task
        drawn = settings.data(n_rows, seed)
        path = _without_groups(settings, drawn, mode, record_every=10)
        share = errors(path) / np.sum(drawn.w_star**2)
        in_time = rows(mode, IN_TIME, seed, n_rows, share[path.t <= settings.epochs].min())
        return pd.concat([rows(mode, AT_BEST, seed, n_rows, share.min()), in_time])

    seeds = [settings.seed, *range(settings.draws)]
    tasks = [(mode, n, seed) for mode in (SIGNED, POSITIVE) for n in settings.row_counts for seed in seeds]
    marks = rows("published", "epochs", 0, 0, settings.epochs)
    curves, least = each(one, (TEXT, CODE, SIGNED, POSITIVE), 1), each(more_rows, tasks, jobs)
    return pd.concat([*curves, *least, truth(data), marks], ignore_index=True)


def _without_groups(settings: Settings, data: GroupSparseData, mode: str, record_every: int = 1) -> Trajectory:
    return diagonal_descent(
        data.X,
        data.y,
        step_size=settings.step_size,
        positive_only=mode == POSITIVE,
        n_steps=settings.longer * settings.epochs,
        record_every=record_every,
        w_star=data.w_star,
        gradient_scale=2.0,
    )


@styled
def plot(frame: pd.DataFrame) -> Figure:
    """Errors; entries with groups; entries without, for ten times as long; and the effect of more rows."""
    epochs = series(frame, "published", "epochs")[1][0]
    figure, ((error, grouped, plain, counts),) = grid(1, 4, height=3.0, width=8.6)
    curves = (
        (CODE, "groups of 4", COLOURS[0], "-"),
        (SIGNED, "no groups, $u^2 - v^2$", COLOURS[1], "-"),
        (POSITIVE, "no groups, $u^2$", COLOURS[3], "-"),
    )
    for mode, label, colour, style in curves:
        t, value = series(frame, mode, "error")
        error.plot(t[1:], value[1:], color=colour, ls=style, label=label)
    error.axvline(epochs, color=GREY, ls=":", lw=0.9)
    error.text(
        epochs, 0.5, " published end", transform=error.get_xaxis_transform(), color=GREY, fontsize=7,
        rotation=90, ha="right", va="center",
    )  # fmt: skip
    error.set_xscale("log")
    error.set_yscale("log")
    error.set_xlabel("epoch of the authors' code")
    error.set_ylabel(r"error $\|w - w^\star\|_2^2$")
    error.set_xlim(left=30)
    error.legend(loc="upper center", bbox_to_anchor=(0.45, -0.22))
    letter(error, "a", "recovery error")
    draw_curves(grouped, frame, CODE, "entry", group_size=4)
    grouped.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=2)
    letter(grouped, "b", "entries, groups of 4")
    draw_curves(plain, frame, SIGNED, "entry", group_size=4)
    plain.axvline(epochs, color=GREY, ls=":", lw=0.9)
    letter(plain, "c", "entries, no groups")
    for mode, label, colour, _ in curves[1:]:
        table = least_by_rows(frame, mode)
        shift = 2.0 if mode == POSITIVE else -2.0
        at = table.columns.to_numpy(dtype=float) + shift
        for x, n in zip(at, table, strict=True):
            counts.plot(np.full(len(table), x), table[n], "o", color=colour, ms=3, alpha=0.7, mew=0)
        counts.plot(at, table.median(), color=colour, label=label)
    counts.axhline(RECOVERED, color=GREY, ls="--", lw=0.9)
    counts.set_yscale("log")
    counts.set_yticks([0.002, 0.005, 0.01, 0.02, 0.05], ["0.2%", "0.5%", "1%", "2%", "5%"])
    counts.set_yticks([], minor=True)
    counts.set_xticks(table.columns)
    counts.set_xlabel("rows")
    counts.set_ylabel("least error, share of signal")
    letter(counts, "d", "no groups, by rows")
    for axes in (grouped, plain):
        axes.set_ylim(-0.15, 1.35)
        axes.set_xlabel("epoch of the authors' code")
    return figure


def claims(frame: pd.DataFrame) -> list[Claim]:
    """Groups recover; plain sparsity fails in the published time; and the reason."""
    epochs = int(series(frame, "published", "epochs")[1][0])
    signal = last(frame, TRUTH, "signal")
    (group, at), (group_code, at_code) = best(frame, TEXT), best(frame, CODE)
    short, long = {}, {}
    for mode in (SIGNED, POSITIVE):
        t, error = series(frame, mode, "error")
        short[mode] = float(error[t <= epochs].min())
        long[mode] = best(frame, mode)
    few, many = _by_rows(frame, SIGNED)
    few_positive, many_positive = _by_rows(frame, POSITIVE)
    early = least_by_rows(frame, SIGNED, IN_TIME).iloc[:, -1]
    ratios = sorted(long[mode][0] / group for mode in (SIGNED, POSITIVE))
    return [
        Claim(
            "With groups, 100 rows are enough to recover 16 entries of 500.",
            f"least error below 1% of norm(w*)^2 = {signal:g}",
            f"{group:.4f} at step {at} (text), {group_code:.4f} at {at_code} (code)",
            judge(group < 0.01 * signal, group_code < 0.01 * signal),
        ),
        Claim(
            f"Without groups the diagonal network does not get there in the published {epochs} epochs.",
            "error still above 10% of norm(w*)^2",
            f"{short[SIGNED]:.2f} (u^2 - v^2, the text's rival), {short[POSITIVE]:.2f} (u^2, the code's)",
            judge(short[SIGNED] > 0.1 * signal, short[POSITIVE] > 0.1 * signal),
        ),
        Claim(
            "It fails because there are too few rows.",
            f"given ten times as long, the least error is above {RECOVERED:.0%} of norm(w*)^2 with {few.name} rows and "
            f"below it with {many.name}, on every draw",
            f"{few.min():.1%} to {few.max():.1%} with {few.name} rows, {many.min():.1%} to {many.max():.1%} with "
            f"{many.name}, on {len(few)} draws (u^2 - v^2); {few_positive.min():.1%} to {few_positive.max():.1%} and "
            f"{many_positive.min():.1%} to {many_positive.max():.1%} (u^2)",
            judge(_parted(few, many), _parted(few_positive, many_positive)),
        ),
        Claim(
            f"(Our check.) The published {epochs} epochs are long enough for it.",
            f"with {early.name} rows the error falls below {RECOVERED:.0%} of norm(w*)^2 in that time, on every draw",
            f"{early.min():.0%} to {early.max():.0%} of it are left on {len(early)} draws (u^2 - v^2)",
            judge(bool((early < RECOVERED).all())),
        ),
        Claim(
            "Groups need fewer rows than plain sparsity does.",
            "error at least 5 times smaller, both stopped at their best",
            f"{ratios[0]:.0f} to {ratios[1]:.0f} times smaller",
            judge(ratios[0] >= 5),
        ),
    ]


def least_by_rows(frame: pd.DataFrame, mode: str, quantity: str = AT_BEST) -> pd.DataFrame:
    """The smallest error relative to the signal: one row per draw, one column per number of rows."""
    chosen = frame[(frame["mode"] == mode) & (frame["quantity"] == quantity)].astype({"t": int})
    return chosen.pivot_table(index="index", columns="t", values="value")


def _by_rows(frame: pd.DataFrame, mode: str) -> tuple[pd.Series, pd.Series]:
    """The fewest and the most rows."""
    table = least_by_rows(frame, mode)
    return table.iloc[:, 0], table.iloc[:, -1]


def _parted(few: pd.Series, many: pd.Series) -> bool:
    return bool((few > RECOVERED).all() and (many < RECOVERED).all())
