"""The report of `tables.py`: one line per table, then what the methods are worth over all of them."""

from __future__ import annotations

import numpy as np

from suite.store import Store, is_ours
from table_methods import METHODS, RIVALS

TREES = ("boosted trees", "forest")
Shapes = dict[str, tuple[tuple[int, int], str]]


def shown_methods(store: Store, names: list[str], seeds: list[int]) -> tuple[list[str], list[str]]:
    """Methods with a result, or a reason why not, for every table and split; and remarks on the others."""
    counts: dict[str, int] = {}
    for method, name, seed in store.rows:
        if name in names and seed in seeds:
            counts[method] = counts.get(method, 0) + 1
    wanted = len(names) * len(seeds)
    order = [*METHODS, *sorted(set(counts) - set(METHODS))]
    complete = [method for method in order if counts.get(method, 0) == wanted]
    remarks = [
        f"{method}: {counts.get(method, 0)} of {wanted} results, left out."
        for method in order
        if counts.get(method, 0) < wanted and (method in counts or method in RIVALS)
    ]
    return complete, remarks


def geometric(values: np.ndarray) -> float:
    values = values[np.isfinite(values)]
    return float(np.exp(np.log(values).mean())) if values.size else np.nan


def cell(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else "-"


def report(store: Store, shapes: Shapes, seeds: list[int], shown: list[str] | None = None) -> list[str]:
    """A line per table with mean errors and terms, the summaries, where trees win, and what failed."""
    names = list(shapes)
    complete, remarks = shown_methods(store, names, seeds)
    methods = shown or complete
    rivals = [method for method in methods if method in RIVALS]

    def measures(method: str, measure: str) -> np.ndarray:
        """Per table, the mean over splits; NaN where one has none."""
        rows = [[store.rows.get((method, name, seed), {}).get(measure) for seed in seeds] for name in names]
        return np.array(rows, dtype=float).mean(axis=1)

    errors = {method: measures(method, "error") for method in methods}
    terms = {method: measures(method, "terms") for method in methods}
    seconds = {method: measures(method, "seconds") for method in methods}
    best = np.nanmin([errors[rival] for rival in rivals], axis=0) if rivals else np.full(len(names), np.nan)
    lines = [
        "<!-- What benchmarks/tables.py wrote; its docstring says how to run it and which splits decided settings. -->",
        f"Splits {', '.join(map(str, seeds))}. Error relative to predicting the mean of the rows to fit (binary: log "
        "loss relative to their share of class 1), means over splits; in brackets the number of terms.",
        "",
        "| table | rows x variables | " + " | ".join(methods) + " |",
        "| --- " * (len(methods) + 2) + "|",
    ]
    for i, name in enumerate(names):
        (n_rows, n_variables), task = shapes[name]
        cells = []
        for method in methods:
            error = cell(errors[method][i])
            error = f"**{error}**" if errors[method][i] == best[i] else error
            count = terms[method][i]
            cells.append(f"{error} ({count:.0f})" if np.isfinite(count) else error)
        kind = ", binary" if task == "binary" else ""
        lines.append(f"| {name}{kind} | {n_rows} x {n_variables} | " + " | ".join(cells) + " |")
    ebm, ebm_seconds = errors.get("EBM", best * np.nan), seconds.get("EBM", best * np.nan)
    regression = np.array([task == "regression" for _, task in shapes.values()])

    def summary(title: str, values: dict[str, str]) -> None:
        lines.append(f"| **{title}** | | " + " | ".join(values.values()) + " |")

    summary("error to the best rival, geometric mean", {m: cell(geometric(errors[m] / best)) for m in methods})
    summary("the same, regression", {m: cell(geometric((errors[m] / best)[regression])) for m in methods})
    summary("the same, binary", {m: cell(geometric((errors[m] / best)[~regression])) for m in methods})
    summary("worst", {m: worst(errors[m] / best, names) for m in methods})
    summary("error to EBM, geometric mean", {m: cell(geometric(errors[m] / ebm)) for m in methods})
    summary("tables ahead of EBM", {m: str(int(np.sum(errors[m] < ebm))) if "EBM" in errors else "-" for m in methods})
    summary("terms, median", {m: cell(middle(terms[m]), 1) for m in methods})
    summary("seconds, median", {m: cell(middle(seconds[m])) for m in methods})
    summary("time to EBM, geometric mean", {m: cell(geometric(seconds[m] / ebm_seconds), 4) for m in methods})
    lines += ["", *trees_win(errors, names), *remarks]
    for (method, reason), where in store.failures(methods, names, seeds).items():
        lines.append(f"{method} has no result in {len(where)} runs ({', '.join(sorted(set(where)))}): {reason}")
    return lines


def worst(ratios: np.ndarray, names: list[str]) -> str:
    if not np.isfinite(ratios).any():
        return "-"
    return f"{np.nanmax(ratios):.2f} ({names[int(np.nanargmax(ratios))]})"


def middle(values: np.ndarray) -> float:
    return float(np.nanmedian(values)) if np.isfinite(values).any() else np.nan


def trees_win(errors: dict[str, np.ndarray], names: list[str]) -> list[str]:
    """Tables on which boosted trees or the forest are ahead of a method with terms by more than 5%."""
    trees = [errors[method] for method in TREES if method in errors]
    if not trees:
        return []
    least, lines = np.nanmin(trees, axis=0), []
    for method, found in errors.items():
        if is_ours(method) or method in ("EBM", "mgcv"):
            ratios = found / least
            where = [f"{names[i]} {ratios[i]:.2f}" for i in np.argsort(-ratios) if ratios[i] > 1.05]
            lines.append(f"Trees win over {method} on {len(where)} tables: {', '.join(where) or 'none'}.")
    return [*lines, ""]
