"""The tables of `peers_glm.py`: goals and whether they are met, every method by cell, times, and real data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glm_methods import ABESS, REAL, TIMED
from glm_problems import CELLS
from results_store import Store, complete_methods, print_seconds, print_table, relative

# excess to adelie's, excess to abess's, false groups, time to adelie's, time to abess's; None where no goal is stated
GOALS: dict[str, tuple[float | None, ...]] = {"several": (0.6, None, None, 0.5, None)}
USUAL = (0.7, 1.05, 1.5, 0.5, 0.2)
COLUMNS = ("excess / adelie", "excess / abess", "false groups", "time / adelie", "time / abess")
RIVALS = [name for name in REAL if name != "null" and not name.startswith("covey")]


def row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def header(cells: list[str]) -> list[str]:
    return ["", row(cells), "| --- " * len(cells) + "|"]


def number(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else "-"


@dataclass
class Judged:
    """For every cell the figures that goals are stated for, and the missed groups, the oracle and the abess beside."""

    figures: dict[str, np.ndarray]  # cell -> one figure per goal
    missed: dict[str, float]
    oracle: dict[str, float]  # excess of maximum likelihood on the true groups, over adelie's
    abess: dict[str, str]  # the variant of abess that the cell is compared with

    def table(self) -> list[str]:
        title = "Simulated cells, covey; in brackets where a goal is missed. abess is its best variant in the cell."
        lines = ["", title]
        lines += header(["cell", *COLUMNS, "missed groups", "true groups' fit / adelie", "abess by"])
        for name, values in self.figures.items():
            parts = [marked(v, goal) for v, goal in zip(values, goals_of(name), strict=True)]
            more = [number(self.missed[name]), number(self.oracle[name]), self.abess[name].removeprefix("abess ")]
            lines.append(row([name, *parts, *more]))
        return lines


def goals_of(name: str) -> tuple[float | None, ...]:
    return GOALS.get(CELLS[name].family, USUAL)


def marked(value: float, goal: float | None) -> str:
    text = number(value)
    return f"({text})" if goal is not None and np.isfinite(value) and value > goal else text


def goals(simulated: Store, timed: Store, cells: list[str], seeds: list[int], ours: str) -> Judged:
    """Ratios of means over seeds; times are those of the timed run."""
    judged = Judged({}, {}, {}, {})
    for name in cells:
        excess = {method: simulated.error(method, name, seeds) for method in (ours, "adelie", "oracle", *ABESS)}
        variants = {method: excess[method] for method in ABESS if np.isfinite(excess[method])}
        best = min(variants, key=lambda method: variants[method]) if variants else "abess cv"
        seconds = {m: timed.rows.get((m, name, seeds[0]), {}).get("seconds", np.nan) for m in ("covey", "adelie", best)}
        judged.figures[name] = np.array(
            [
                excess[ours] / excess["adelie"], excess[ours] / excess[best],
                simulated.error(ours, name, seeds, "false"),
                seconds["covey"] / seconds["adelie"], seconds["covey"] / seconds[best],
            ]
        )  # fmt: skip
        judged.missed[name] = simulated.error(ours, name, seeds, "missed")
        judged.oracle[name], judged.abess[name] = excess["oracle"] / excess["adelie"], best
    return judged


def summary(judged: Judged) -> list[str]:
    """A line per kind of problem: means over its cells, and in how many of them a goal is met."""
    lines = ["", "Simulated problems, covey: means over cells (geometric for ratios), and where goals are met."]
    lines += header(["problem", *COLUMNS])
    for title in dict.fromkeys(CELLS[name].table for name in judged.figures):
        names = [name for name in judged.figures if CELLS[name].table == title]
        parts = []
        for i, goal in enumerate(goals_of(names[0])):
            values = np.array([judged.figures[name][i] for name in names])
            if not np.isfinite(values).all():
                parts.append("-")
                continue
            with np.errstate(divide="ignore"):
                middle = values.mean() if COLUMNS[i] == "false groups" else np.exp(np.log(values).mean())
            met = "" if goal is None else f" (at most {goal:g} in {(values <= goal).sum()} of {len(names)})"
            parts.append(number(middle) + met)
        lines.append(row([title, *parts]))
    return lines


def simulated_table(store: Store, cells: list[str], shown: list[str] | None, seeds: list[int]) -> list[str]:
    methods = shown or list(dict.fromkeys(m for m, cell, seed in store.rows if cell in cells and seed in seeds))
    lines = ["", f"Excess over the true model (false, missed groups), means of {len(seeds)} seeds"]
    lines += header(["cell", *methods])
    for name in cells:
        parts = []
        for method in methods:
            error = store.error(method, name, seeds)
            counts = [number(store.error(method, name, seeds, what), 1) for what in ("false", "missed")]
            parts.append(f"{error:.4f} ({', '.join(counts)})" if np.isfinite(error) else "-")
        lines.append(row([name, *parts]))
    return lines


def times_table(store: Store, cells: list[str], seed: int) -> list[str]:
    """Processor seconds of one run, everyone's folds included."""
    lines = ["", f"Processor seconds of a fit with its folds, one thread, warm, seed {seed}", *header(["cell", *TIMED])]
    found = [name for name in cells if ("adelie", name, seed) in store.rows]
    for name in found:
        seconds = [store.rows.get((m, name, seed), {}).get("seconds", np.nan) for m in TIMED]
        lines.append(row([name, *(number(value, 3) for value in seconds)]))
    return lines if found else []


def real_table(store: Store, names: list[str], shown: list[str] | None, seeds: list[int], brief: bool) -> None:
    """Print errors relative to the best rival; rivals are those with a result on every data set and split."""
    complete = complete_methods(store, names, seeds)
    methods = shown or complete
    rivals = [rival for rival in RIVALS if rival in complete]
    print(f"\nReal data, {len(seeds)} splits; rivals: " + ", ".join(rivals) + "\n")
    print_table(relative(store, names, methods, rivals, seeds), methods, "data set", brief)
    print_seconds(store, names, methods, seeds)
