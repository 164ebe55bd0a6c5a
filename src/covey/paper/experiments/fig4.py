"""Group sparsity against plain sparsity with few rows.

100 Rademacher rows, 500 columns, 16 entries of 1 in 4 groups of 4, noise 0.5. Left, Algorithm 2 with groups. Right,
the diagonal network ``w = u^2 - v^2``, which does not use the groups, and its positive-only version ``w = u^2``, which
the authors' code runs and the published figure shows; both for the published 500 epochs and for ten times as long. To
see whether too few rows are the cause, they are also run with more rows, and the grouped network with fewer, on several
draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from covey.datasets import GroupSparseData
from covey.paper.datasets import legacy_paper_data
from covey.paper.dynamics import Trajectory, diagonal_descent
from covey.paper.experiments.base import Claim, Claims, Scale, judge, scaled, where
from covey.paper.experiments.curves import best, series, true_value
from covey.paper.experiments.style import COLOURS, EPOCH, ERROR, GREY, Axes, draw_curves, panel, panels
from covey.paper.experiments.tasks import each
from covey.paper.experiments.traces import CODE, MODES, OFF, TEXT, curve, descend, errors, stack, thinned, trace, truth

TITLE = "Group against plain sparsity"
SIGNED, POSITIVE = "u^2 - v^2", "u^2"
AT_BEST, IN_TIME = "least share of the signal", "least share of the signal in the published time"

# The truth counts as recovered if the squared error is below this share of its squared norm.
RECOVERED = 0.01
SEED = 42  # of the published draw


@dataclass(frozen=True)
class Settings(Scale):
    """The published run. Times are in epochs of the code; the text needs twice as many for the same distance."""

    step_size: float = 1e-2
    tol: float = 0.03
    epochs: int = 500
    longer: int = 10
    row_counts: tuple[int, ...] = scaled((100, 125, 150), quick=(100, 150))
    grouped_row_counts: tuple[int, ...] = scaled((40, 60, 80, 100), quick=(50, 100))
    draws: int = scaled(20, quick=2)


def draw(n_rows: int = 100, seed: int = SEED) -> GroupSparseData:
    return legacy_paper_data(n_rows, 500, 4, support=(1.0,) * 16, seed=seed)


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """The grouped network by text and code; diagonal networks for longer, in epochs of the code."""
    data = draw()

    def one(mode: str) -> pd.DataFrame:
        if mode in MODES:
            return trace(_with_groups(settings, data, mode), data, mode, ("entry",))
        path = _without_groups(settings, data, mode)
        thin = thinned(path, 200)
        t, w = path.t[thin], path.w[thin]
        entries = [curve(mode, "entry", j, t, w[:, j]) for j in range(16)]
        off = curve(mode, "entry", OFF, t, np.abs(w[:, 16:]).max(axis=1))
        return stack(curve(mode, "error", 0, path.t, path.error), *entries, off)

    def other_rows(task: tuple[str, int, int]) -> pd.DataFrame:
        mode, n_rows, seed = task
        drawn = draw(n_rows, seed)
        path = _with_groups(settings, drawn, mode) if mode in MODES else _without_groups(settings, drawn, mode, 10)
        share = errors(path) / np.sum(drawn.w_star**2)
        in_time = share[path.t <= settings.epochs].min()
        return stack(curve(mode, AT_BEST, seed, n_rows, share.min()), curve(mode, IN_TIME, seed, n_rows, in_time))

    seeds = [SEED, *range(settings.draws)]
    counts = {**dict.fromkeys((SIGNED, POSITIVE), settings.row_counts), TEXT: settings.grouped_row_counts}
    tasks = [(mode, n, seed) for mode, some in counts.items() for n in some for seed in seeds]
    curves, least = each(one, (*MODES, SIGNED, POSITIVE)), each(other_rows, tasks, jobs)
    return stack(*curves, *least, truth(data), curve("published", "epochs", 0, 0, settings.epochs))


def _with_groups(settings: Settings, data: GroupSparseData, mode: str) -> Trajectory:
    options = {"step_size": settings.step_size, "direction_step": settings.step_size}
    n_steps = settings.epochs if mode == CODE else 2 * settings.epochs
    return descend(data, mode, switch=settings.tol, n_steps=n_steps, **options)


def _without_groups(settings: Settings, data: GroupSparseData, mode: str, record_every: int = 1) -> Trajectory:
    return diagonal_descent(
        data.X, data.y, step_size=settings.step_size, positive_only=mode == POSITIVE, record_every=record_every,
        n_steps=settings.longer * settings.epochs, w_star=data.w_star, gradient_scale=2.0,
    )  # fmt: skip


@panels(1, 4, height=3.0, width=8.6)
def plot(frame: pd.DataFrame, error: Axes, grouped: Axes, plain: Axes, counts: Axes) -> None:
    epochs = series(frame, "published", "epochs")[1][0]
    names = "groups of 4", "no groups, $u^2 - v^2$", "no groups, $u^2$"
    curves = tuple(zip((CODE, SIGNED, POSITIVE), names, (COLOURS[0], COLOURS[1], COLOURS[3]), strict=True))
    for mode, label, colour in curves:
        t, value = series(frame, mode, "error")
        error.plot(t[1:], value[1:], color=colour, label=label)
    error.axvline(epochs, color=GREY, ls=":", lw=0.9)
    error.text(
        epochs, 0.5, " published end", transform=error.get_xaxis_transform(), color=GREY, fontsize=7,
        rotation=90, ha="right", va="center",
    )  # fmt: skip
    panel(error, "a", "recovery error", xscale="log", yscale="log", xlabel=EPOCH, ylabel=ERROR)
    error.set_xlim(left=30)
    error.legend(loc="upper center", bbox_to_anchor=(0.45, -0.22))
    for axes, name, mode, title in ((grouped, "b", CODE, "groups of 4"), (plain, "c", SIGNED, "no groups")):
        draw_curves(axes, frame, mode, "entry", group_size=4)
        panel(axes, name, f"entries, {title}", ylim=(-0.15, 1.35), xlabel=EPOCH)
    grouped.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=2)
    plain.axvline(epochs, color=GREY, ls=":", lw=0.9)
    for (mode, label, colour), shift in zip(curves, (0.0, -2.0, 2.0), strict=True):
        table = least_by_rows(frame, TEXT if mode == CODE else mode)
        at = table.columns.to_numpy(dtype=float) + shift
        for x, n in zip(at, table, strict=True):
            counts.plot(np.full(len(table), x), table[n], "o", color=colour, ms=3, alpha=0.7, mew=0)
        counts.plot(at, table.median(), color=colour, label=label)
    counts.axhline(RECOVERED, color=GREY, ls="--", lw=0.9)
    panel(counts, "d", "by rows", yscale="log", xlabel="rows", ylabel="least error, share of signal")
    counts.set_yticks([0.002, 0.005, 0.01, 0.02, 0.05], ["0.2%", "0.5%", "1%", "2%", "5%"])
    counts.set_yticks([], minor=True)
    counts.set_xticks(sorted({n for mode in (TEXT, SIGNED) for n in least_by_rows(frame, mode).columns}))


def claims(frame: pd.DataFrame) -> Claims:
    epochs = int(series(frame, "published", "epochs")[1][0])
    signal = true_value(frame, "signal")
    (group, at), (group_code, at_code) = (best(frame, mode) for mode in MODES)
    yield Claim(
        "With groups, 100 rows are enough to recover 16 entries of 500.",
        f"least error below 1% of norm(w*)^2 = {signal:g}",
        f"{group:.4f} at step {at} (text), {group_code:.4f} at {at_code} (code)",
        judge(group < 0.01 * signal, group_code < 0.01 * signal),
    )
    curves = [series(frame, mode, "error") for mode in (SIGNED, POSITIVE)]
    short, short_positive = (float(error[t <= epochs].min()) for t, error in curves)
    yield Claim(
        f"Without groups the diagonal network does not get there in the published {epochs} epochs.",
        "error still above 10% of norm(w*)^2",
        f"{short:.2f} (u^2 - v^2, the text's rival), {short_positive:.2f} (u^2, the code's)",
        judge(short > 0.1 * signal, short_positive > 0.1 * signal),
    )
    tables = [least_by_rows(frame, mode) for mode in (SIGNED, POSITIVE)]
    few, many = tables[0].columns[0], tables[0].columns[-1]
    shares = [[f"{table[n].min():.1%} to {table[n].max():.1%}" for n in (few, many)] for table in tables]
    apart = [bool((table[few] > RECOVERED).all() and (table[many] < RECOVERED).all()) for table in tables]
    yield Claim(
        "It fails because there are too few rows.",
        f"given ten times as long, the least error is above {RECOVERED:.0%} of norm(w*)^2 with {few} rows and "
        f"below it with {many}, on every draw",
        f"{shares[0][0]} with {few} rows, {shares[0][1]} with {many}, on {len(tables[0])} draws (u^2 - v^2); "
        f"{shares[1][0]} and {shares[1][1]} (u^2)",
        judge(*apart),
    )
    early = least_by_rows(frame, SIGNED, IN_TIME)[many]
    yield Claim(
        f"(Our check.) The published {epochs} epochs are long enough for it.",
        f"with {many} rows the error falls below {RECOVERED:.0%} of norm(w*)^2 in that time, on every draw",
        f"{early.min():.0%} to {early.max():.0%} of it are left on {len(early)} draws (u^2 - v^2)",
        judge((early < RECOVERED).all()),
    )
    ratios = sorted(float(error.min()) / group for _, error in curves)
    enough = [rows_needed(least_by_rows(frame, mode)) for mode in (TEXT, SIGNED, POSITIVE)]
    grouped, signed, positive = (f"{n:.0f}" if np.isfinite(n) else "more than were tried" for n in enough)
    yield Claim(
        "Groups need fewer rows than plain sparsity does.",
        f"of the numbers tried, the least with which the error falls below {RECOVERED:.0%} of norm(w*)^2 on every "
        "draw, each method at its best time, is smaller",
        f"rows needed: {grouped} (groups), {signed} (u^2 - v^2), {positive} (u^2); "
        f"with 100 rows the published draw's error is {ratios[0]:.0f} to {ratios[1]:.0f} times smaller",
        judge(enough[0] < min(enough[1:])),
    )


def rows_needed(shares: pd.DataFrame) -> float:
    """The least number of rows from which on every draw is recovered; infinite if there is none."""
    recovered = (shares < RECOVERED).all().sort_index(ascending=False).cummin()
    return float(recovered.index[recovered].min()) if recovered.any() else np.inf


def least_by_rows(frame: pd.DataFrame, mode: str, quantity: str = AT_BEST) -> pd.DataFrame:
    """The smallest error relative to the signal: one row per draw, one column per number of rows."""
    chosen = where(frame, mode=mode, quantity=quantity).astype({"t": int})
    return chosen.pivot_table(index="index", columns="t", values="value")
