"""docs/suite.md and its pictures, from the saved results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from .measures import REFERENCES, Results, geometric
from .store import Store

TEXT = Path(__file__).parent / "page.md"
TABLE_ONLY = ("EBM", "mgcv", "glinternet")


def number(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else "-"


def markdown(head: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows]]


def ran_on(results: Results) -> tuple[list[str], list[str]]:
    """Problems that are matrices, and those that are tables: the ones that a method for tables has run on."""
    present = [name for name in TABLE_ONLY if name in results.error.index]
    on = results.error.loc[present].notna().any() if present else pd.Series(False, index=results.problems)
    return [name for name in results.problems if not on[name]], [name for name in results.problems if on[name]]


def summary(results: Results) -> list[str]:
    """A line per method: errors by kind of problem, groups, stability, time."""
    matrices, tables = ran_on(results)
    rows = []
    for method in results.methods:
        cells = [method]
        for names in (matrices, tables):
            ratios = results.to_best.loc[method, names]
            count = int(ratios.notna().sum())
            on = "" if count == len(names) else f" (on {count} of {len(names)})"
            cells.append(number(geometric(ratios), 3) + on if count else "-")
        cells.append(number(geometric(results.to_null.loc[method]), 3))
        cells += [number(results.false.loc[method].mean(), 1), number(results.missed.loc[method].mean(), 1)]
        cells += [number(results.stability.loc[method].mean()), number(results.seconds.loc[method].median(), 3)]
        rows.append(cells)
    head = ["method", "to the best, matrices", "to the best, tables", "to the null model"]
    return markdown([*head, "false groups", "missed groups", "stability", "seconds, median"], rows)


def by_problem(results: Results) -> list[str]:
    """A line per problem: how predictable it is, who is best, and how far covey is from that."""
    rows = []
    for name in results.problems:
        best = results.best[name]
        share = {m: number(results.to_null.loc[m, name], 3) for m in results.methods if m in (*REFERENCES, best)}
        ours = [number(results.to_best.loc[m, name], 3) for m in results.methods if m.startswith("covey")]
        rows.append([name, share.get("oracle", "-"), share[best], best, *ours])
    ours = [f"{method} to best" for method in results.methods if method.startswith("covey")]
    return markdown(["problem", "true groups to null", "best to null", "best method", *ours], rows)


def to_best(results: Results) -> list[str]:
    """Problems x methods, errors relative to the best."""
    rows = [[name, *(number(value, 3) for value in results.to_best[name])] for name in results.problems]
    return markdown(["error to the best", *results.methods], rows)


def reasons(results: Results) -> list[str]:
    lines = [f"- {method}: {reason} ({', '.join(on)})." for (method, reason), on in results.reasons().items()]
    lines += [f"- {method}: not run, or stopped ({', '.join(on)})." for method, on in results.absent().items()]
    for method, on in results.partial().items():
        lines.append(f"- {method}: not run under every seed, and compared on those it has ({', '.join(on)}).")
    return lines or ["Every method ran on every problem."]


def tables(store: Store) -> list[str]:
    """What the command prints."""
    results = Results(store)
    return [*summary(results), "", *by_problem(results), "", *to_best(results), "", *reasons(results)]


def write(store: Store, docs: Path) -> None:
    """The page, with the tables in the places that `page.md` names, and two pictures."""
    results = Results(store)
    matrices, raw = ran_on(results)
    counts = {"problems": str(len(results.problems)), "matrices": str(len(matrices)), "tables": str(len(raw))}
    seeds = f"{results.seeds[0]} to {results.seeds[-1]}"
    parts = {
        "summary": "\n".join(summary(results)),
        "by_problem": "\n".join(by_problem(results)),
        "reasons": "\n".join(reasons(results)),
        "better": better(results),
        "seeds": seeds,
        **counts,
    }
    text = TEXT.read_text()
    for name, part in parts.items():
        text = text.replace("{{" + name + "}}", part)
    (docs / "suite.md").write_text(text)
    draw_errors(results, docs / "images" / "suite_errors.png")
    draw_measures(results, docs / "images" / "suite_measures.png")


def better(results: Results) -> str:
    """Where a peer is ahead of both rules of covey by more than 2%."""
    ours = [method for method in results.methods if method.startswith("covey")]
    peers = results.to_best.drop(index=[*ours, *(one for one in REFERENCES if one in results.methods)])
    lines = []
    for name in results.problems:
        best, rule = peers[name].idxmin(), results.to_best.loc[ours, name].idxmin()
        ratio = results.to_best.loc[rule, name] / peers.loc[best, name]
        if ratio > 1.02:
            lines.append(
                f"- {name}: the deviance of {rule}, the better rule here, is {ratio:.2f} times that of {best}."
            )
    return "\n".join(lines) or "On no problem is a peer ahead of the better rule of covey by more than 2%."


def draw_errors(results: Results, file: Path) -> None:
    """Methods x problems, the test deviance relative to the best."""
    import matplotlib.pyplot as plt

    methods = [name for name in results.methods if name != "oracle"]
    values = results.to_best.loc[methods].to_numpy()
    fig, ax = plt.subplots(figsize=(10.5, 0.36 * len(methods) + 2.3), layout="constrained")
    ax.imshow(np.log(values), cmap="YlOrRd", vmin=0, vmax=np.log(2), aspect="auto")
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            dark = np.isfinite(value) and value > 1.6
            weight = "bold" if np.isfinite(value) and value <= 1.005 else "normal"
            text, colour = (f"{value:.2f}", "white" if dark else "black") if np.isfinite(value) else ("-", "0.5")
            ax.text(j, i, text, ha="center", va="center", color=colour, fontsize=8.5, weight=weight)
    ax.set_xticks(range(len(results.problems)), results.problems, rotation=35, ha="right")
    ax.set_yticks(range(len(methods)), methods)
    ax.set_title("Test deviance relative to the best method of each problem", loc="left", fontsize=11)
    ax.tick_params(length=0)
    fig.savefig(file, dpi=130)
    plt.close(fig)


def draw_measures(results: Results, file: Path) -> None:
    """False and missed groups, stability and seconds, a bar per method."""
    import matplotlib.pyplot as plt

    methods = [name for name in results.methods if name not in REFERENCES]
    at = np.arange(len(methods))
    colours = ["#1f5a93" if name.startswith("covey") else "#b5b5b5" for name in methods]
    fig, axes = plt.subplots(1, 4, figsize=(10.5, 0.3 * len(methods) + 1.2), sharey=True, layout="constrained")
    panels = {
        "false groups": results.false.loc[methods].mean(axis=1),
        "missed groups": results.missed.loc[methods].mean(axis=1),
        "stability over seeds": results.stability.loc[methods].mean(axis=1),
        "seconds, median": results.seconds.loc[methods].median(axis=1),
    }
    for ax, (title, values) in zip(axes, panels.items(), strict=True):
        ax.barh(at, values.fillna(0), color=colours)
        ax.set_title(title, loc="left", fontsize=10)
        ax.spines[["top", "right"]].set_visible(False)
        for i, value in enumerate(values):
            if not np.isfinite(value):
                ax.text(0, i, " none", va="center", fontsize=8, color="0.5", transform=ax.get_yaxis_transform())
    axes[0].set_yticks(at, methods)
    axes[0].invert_yaxis()
    axes[3].set_xscale("log")
    fig.savefig(file, dpi=130)
    plt.close(fig)
