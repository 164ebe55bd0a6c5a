"""Tables of the benchmark on real data: errors with paired standard errors, wins, groups, stability and time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from suite.measures import stability
from suite.store import Store, complete_methods

CLOSE = 1.05
TEST_SHARE = 0.2


class Table:
    """Errors of methods by data set and split, and everything that is told of them.

    Attributes
    ----------
    errors : ndarray, shape (n_sets, n_methods, n_splits)
        Mean squared errors, divided by the mean predictor's, averaged over the splits; NaN where a method failed.
    best : ndarray of int, shape (n_sets,)
        The rival of least mean error.
    """

    def __init__(self, store: Store, sizes: dict[str, tuple[int, int, int]], rivals: list[str], methods: list[str],
                 seeds: list[int]) -> None:  # fmt: skip
        self.store, self.sizes, self.methods, self.seeds = store, sizes, methods, seeds
        self.rivals = [methods.index(rival) for rival in rivals if rival in methods]
        self.errors = self.measured("error")
        self.errors /= self.measured("error", ["mean"]).mean(axis=2, keepdims=True)
        self.relative = self.errors.mean(axis=2)
        own = self.relative[:, self.rivals]
        self.best = np.array(self.rivals)[np.nanargmin(own, axis=1)]
        self.ratio = self.relative / np.nanmin(own, axis=1)[:, None]

    def measured(self, measure: str, methods: list[str] | None = None) -> np.ndarray:
        rows, methods = self.store.rows, methods or self.methods
        return np.array(
            [[[rows[m, name, s].get(measure, np.nan) for s in self.seeds] for m in methods] for name in self.sizes]
        )

    def doubt(self, i: int, a: int, b: int) -> float:
        """The standard error of a difference of relative errors on one data set, split by split.

        Splits share rows; the correction of Nadeau and Bengio (2003) adds the ratio of test to training rows.
        """
        d = self.errors[i, a] - self.errors[i, b]
        return float(np.sqrt(d.var(ddof=1) * (1 / d.size + TEST_SHARE / (1 - TEST_SHARE)))) if d.size > 1 else np.nan

    def selections(self) -> tuple[int, np.ndarray, np.ndarray]:
        """On how many data sets every method's selection was kept, and there the share of groups and the stability."""
        shares, stabilities = [], []
        for name, (_, _, n_groups) in self.sizes.items():
            rows = [[self.store.rows[method, name, seed] for seed in self.seeds] for method in self.methods]
            if all("selected" in row or "reason" in row for own in rows for row in own):
                chosen = [[row["selected"] for row in own if "selected" in row] for own in rows]
                shares.append([np.mean([len(one) for one in own]) / n_groups if own else np.nan for own in chosen])
                stabilities.append([stability(own, n_groups) if own else np.nan for own in chosen])
        shape = (len(shares), len(self.methods))
        return len(shares), np.reshape(shares, shape), np.reshape(stabilities, shape)


def report(
    store: Store, sizes: dict[str, tuple[int, int, int]], rivals: list[str], shown: list[str] | None,
    seeds: list[int], brief: bool,
) -> list[str]:  # fmt: skip
    """All tables, as lines of Markdown."""
    complete = complete_methods(store, list(sizes), seeds)
    ours = [m for m in complete if m.startswith("covey") and (not shown or m in shown)]
    rivals = [m for m in rivals if m in complete]
    table = Table(store, sizes, rivals, [*ours, *rivals], seeds)
    lines = [f"{len(sizes)} data sets, {len(seeds)} splits each.", ""]
    lines += summary(table)
    if not brief:
        lines += [*by_set(table, ours), *ratios(table)]
    return lines + failures(store, sizes, seeds)


def known(statistic: Callable[[np.ndarray], float], values: np.ndarray, digits: int) -> str:
    """A statistic of the values that are there."""
    values = values[np.isfinite(values)]
    return f"{statistic(values):.{digits}f}" if values.size else "-"


def summary(table: Table) -> list[str]:
    """One line per method over all data sets."""
    count, (kept, share, stable) = len(table.sizes), table.selections()
    seconds = table.measured("seconds")
    lines = [
        "Errors are relative to the best rival of each data set, which is known only afterwards. The share of groups "
        f"and Nogueira's stability of the selection are means over the {kept} data sets of which every selection was "
        "kept; seconds are a median.",
        "",
        "| method | geometric mean | median | within 5% | best of all | better than the best rival | worst | error to "
        "the mean predictor's | share of groups | stability | seconds |",
        "| --- " * 11 + "|",
    ]
    for j, method in enumerate(table.methods):
        ratio = table.ratio[:, j]
        here = np.isfinite(ratio)
        if not here.any():
            continue
        wins = table.relative[:, j] <= np.nanmin(table.relative, axis=1)
        name = method if here.all() else f"{method}, on {here.sum()} of {count}"
        lines.append(
            f"| {name} | {np.exp(np.log(ratio[here]).mean()):.3f} | {np.median(ratio[here]):.3f} | "
            f"{np.mean(ratio[here] <= CLOSE):.0%} | {wins.sum()} | {int((ratio[here] < 1).sum())} | "
            f"{np.nanmax(ratio):.2f} | {np.exp(np.log(table.relative[here, j]).mean()):.3f} | "
            f"{known(np.mean, share[:, j], 2)} | {known(np.mean, stable[:, j], 2)} | "
            f"{known(np.median, seconds[:, j], 3)} |"
        )
    return [*lines, ""]


def by_set(table: Table, ours: list[str]) -> list[str]:
    """One line per data set: each of our methods beside the best rival."""
    lines = [
        "Test error relative to the mean predictor; in brackets the difference to the best rival with its paired "
        "standard error.",
        "",
        "| data set | rows x columns, groups | " + " | ".join(ours) + " | best rival | groups: "
        + ", ".join([*ours, "best rival"]) + " |",
        "| --- " * (len(ours) + 4) + "|",
    ]  # fmt: skip
    groups = table.measured("groups").mean(axis=2)
    for i, (name, (n, p, g)) in enumerate(table.sizes.items()):
        best = table.best[i]
        cells = []
        for j in range(len(ours)):
            difference = table.relative[i, j] - table.relative[i, best]
            cells.append(f"{table.relative[i, j]:.3f} ({difference:+.3f} ± {table.doubt(i, j, best):.3f})")
        kept = ", ".join("-" if np.isnan(groups[i, j]) else f"{groups[i, j]:.1f}" for j in [*range(len(ours)), best])
        lines.append(
            f"| {name} | {n} x {p}, {g} | " + " | ".join(cells)
            + f" | {table.methods[best]} {table.relative[i, best]:.3f} | {kept} |"
        )  # fmt: skip
    return [*lines, ""]


def ratios(table: Table) -> list[str]:
    """One line per data set: every method's error over the best rival's."""
    lines = [
        "Error over that of the best rival.",
        "",
        "| data set | " + " | ".join(table.methods) + " |",
        "| --- " * (len(table.methods) + 1) + "|",
    ]
    for name, row in zip(table.sizes, table.ratio, strict=True):
        lines.append(f"| {name} | " + " | ".join("-" if np.isnan(r) else f"{r:.3f}" for r in row) + " |")
    return [*lines, ""]


def failures(store: Store, sizes: dict[str, tuple[int, int, int]], seeds: list[int]) -> list[str]:
    """Why methods have no result."""
    methods = sorted({method for method, _, _ in store.rows})
    return [
        f"{method} has no result on {', '.join(dict.fromkeys(where))}: {reason}."
        for (method, reason), where in store.failures(methods, list(sizes), seeds).items()
    ]
