"""Single results in a file of JSON lines, so that peers are run once and a run can be interrupted and gone on with.

A line is a method, a problem, a seed, and either an error with its seconds or the reason why there is none. covey is
run again every time unless the run is given a tag, under which its results are then kept: `covey:TAG`.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg  # noqa: F401 - with a BLAS of its own, whose threads can only be limited once it is loaded
from threadpoolctl import threadpool_limits

from .problem import CannotRunError

Key = tuple[str, str, int]


def is_ours(method: str) -> bool:
    """Whether the method is run again in every run without a tag."""
    return method.startswith("covey")


class Store:
    """Results by method, problem and seed; those of a file if one is given, and added to it."""

    def __init__(self, file: Path | None = None, *more: Path) -> None:
        self.file = file
        self.rows: dict[Key, dict[str, Any]] = {}
        for source in (*more, file):
            if source is not None and source.exists():
                for line in source.read_text().splitlines():
                    row = json.loads(line)
                    self.rows[row["method"], row["problem"], row["seed"]] = row

    def add(self, method: str, problem: str, seed: int, keep: bool = True, **result: Any) -> None:
        row = {"method": method, "problem": problem, "seed": seed, **result}
        self.rows[method, problem, seed] = row
        if keep and self.file is not None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("a") as out:
                print(json.dumps(row), file=out)

    def error(self, method: str, problem: str, seeds: Iterable[int], measure: str = "error") -> float:
        """The mean error, or another measure, over seeds; NaN where one is missing or failed."""
        rows = [self.rows.get((method, problem, seed), {}) for seed in seeds]
        return float(np.mean([row.get(measure, np.nan) for row in rows]))

    def failures(self, methods: list[str], problems: list[str], seeds: list[int]) -> dict[tuple[str, str], list[str]]:
        """Problems by method and reason."""
        out: dict[tuple[str, str], list[str]] = {}
        for (method, problem, seed), row in self.rows.items():
            if "reason" in row and method in methods and problem in problems and seed in seeds:
                out.setdefault((method, row["reason"]), []).append(problem)
        return out


def arguments(doc: str | None, methods: Iterable[str], seeds: list[int], quick: str) -> argparse.ArgumentParser:
    """The options that all the accuracy benchmarks share."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=list(methods), choices=list(methods), help="to run")
    parser.add_argument("--show", nargs="+", help="methods of the table, tags included; by default all with results")
    parser.add_argument("--seeds", nargs="+", type=int, default=seeds)
    parser.add_argument("--cells", nargs="+", help="only problems whose name contains one of these")
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--keep", type=Path, help="a file of single results to go on from and to add to")
    parser.add_argument("--tag", help="keep covey's results under this name; otherwise it is run again")
    parser.add_argument("--brief", action="store_true", help="the summary without the line per problem")
    return parser


def run_all(
    problems: dict[str, Callable[[int], Any]],
    methods: dict[str, Callable[[Any], Any]],
    seeds: Iterable[int],
    store: Store,
    tag: str | None = None,
    skip: Callable[[str, str], str | None] = lambda method, problem: None,
) -> None:
    """Fill the store. A problem is made only when a method wants it; `skip` says why a method is not run, or None."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            for name, make in problems.items():
                problem = None
                for method, solve in methods.items():
                    stored = f"{method}:{tag}" if tag and is_ours(method) else method
                    fixed = bool(tag) or not is_ours(method)
                    if fixed and (stored, name, seed) in store.rows:
                        continue
                    reason = skip(method, name)
                    if reason:
                        store.add(stored, name, seed, fixed, reason=reason)
                        continue
                    problem = problem if problem is not None else make(seed)
                    store.add(stored, name, seed, fixed, **solved(problem, solve))


def solved(problem: Any, solve: Callable[[Any], Any]) -> dict[str, Any]:
    """The measures and the processor seconds of one method on one problem, or why there are none."""
    start = time.process_time()
    try:
        fit = solve(problem)
    except CannotRunError as reason:
        return {"reason": str(reason)}
    except Exception as failure:  # a peer may fail in its own way; what it said is the result
        return {"reason": f"{type(failure).__name__}: {failure}"[:300]}
    seconds = time.process_time() - start
    measures = problem.score(fit)
    if not np.isfinite(measures["error"]):
        return {"reason": "predictions are not finite"}
    return {"seconds": round(seconds, 4), **measures}


# ---------------------------------------------------------------------- printing


def complete_methods(store: Store, names: list[str], seeds: list[int]) -> list[str]:
    """Methods with a result or a reason for every problem and seed; the others are named and left out."""
    found: dict[str, int] = {}
    for method, problem, seed in store.rows:
        if problem in names and seed in seeds:
            found[method] = found.get(method, 0) + 1
    for method, count in found.items():
        if count < len(names) * len(seeds):
            print(f"{method}: {count} of {len(names) * len(seeds)} results, left out")
    return [method for method, count in found.items() if count == len(names) * len(seeds)]


def relative(
    store: Store, names: list[str], methods: list[str], rivals: list[str], seeds: list[int]
) -> dict[str, dict]:
    """Per problem, each method's mean error over the least of the rivals'; that least error under "absolute"."""
    table = {}
    for name in names:
        errors = [store.error(rival, name, seeds) for rival in rivals]
        if np.isfinite(errors).any():
            best = float(np.nanmin(errors))
            table[name] = {m: store.error(m, name, seeds) / best for m in methods} | {"absolute": best}
    return table


def print_all(
    store: Store, names: list[str], shown: list[str] | None, rivals: list[str], seeds: list[int], what: str, brief: bool
) -> list[str]:
    """The table and the seconds of the methods asked for, or of all that are complete; the methods shown."""
    complete = complete_methods(store, names, seeds)
    methods = shown or complete
    judged = [rival for rival in rivals if rival in complete]
    print("rivals: " + ", ".join(judged) + "\n")
    print_table(relative(store, names, methods, judged, seeds), methods, what, brief)
    print_seconds(store, names, methods, seeds)
    return methods


def print_table(table: dict[str, dict], methods: list[str], what: str, brief: bool = False) -> None:
    """A line per problem, then geometric mean, share within 5% and worst of each method."""
    print(f"| {what}, error to the best rival | " + " | ".join(methods) + " | best rival |")
    print("| --- " * (len(methods) + 2) + "|")
    if not brief:
        for name, row in table.items():
            print(f"| {name} | " + " | ".join(f"{row[m]:.3f}" for m in methods) + f" | {row['absolute']:.4g} |")
    columns = {m: np.array([row[m] for row in table.values()]) for m in methods}
    columns = {m: values[np.isfinite(values)] for m, values in columns.items()}
    for title, summary in SUMMARIES.items():
        cells = [summary(values) if values.size else "-" for values in columns.values()]
        print(f"| **{title}** | " + " | ".join(cells) + " | |")
    print(f"\n{len(table)} problems")


SUMMARIES: dict[str, Callable[[np.ndarray], str]] = {
    "geometric mean": lambda v: f"{np.exp(np.log(v).mean()):.3f}",
    "within 5%": lambda v: f"{np.mean(v <= 1.05):.0%}",
    "worst": lambda v: f"{v.max():.2f}",
    "problems": lambda v: f"{v.size}",
}


def print_seconds(store: Store, names: list[str], methods: list[str], seeds: list[int]) -> None:
    parts = []
    for m in methods:
        times = [store.rows.get((m, name, s), {}).get("seconds", np.nan) for name in names for s in seeds]
        if np.isfinite(times).any():
            parts.append(f"{m} {np.nanmedian(times):.3f} ({np.nansum(times):.0f} in all)")
    print("median seconds: " + ", ".join(parts))
    for (method, reason), where in store.failures(methods, names, seeds).items():
        print(f"{method} has no result in {len(where)} runs, the first on {where[0]}: {reason}")
