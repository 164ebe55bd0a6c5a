"""The suite: every method on every problem under every seed, with the same folds and the same scorer.

    export OMP_NUM_THREADS=1 PYTHONPATH=src
    .venv-bench/bin/python benchmarks/run_suite.py --keep results.jsonl      under an hour on one core
    ... --quick                                            two seeds of four problems, without slow methods
    ... --join mine.py --methods mine covey null           a file with METHODS or PROBLEMS of yours
    ... --join benchmarks/glm_cells.py --only              the problems of that file, and no others

With `--keep` results are added to a file, and only what it does not have is run: a run can be stopped and gone on with,
and a new method is run beside those that are there. `--page` writes docs/suite.md and its pictures from the results.
Settings of covey were decided on other seeds than those of the suite, 100 to 102.
"""

from __future__ import annotations

import argparse
import runpy
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from threadpoolctl import threadpool_limits

from suite.methods import METHODS
from suite.page import tables, write
from suite.problem import CannotRunError, Method, Problem
from suite.problems import PROBLEMS
from suite.store import Store, solved

DOCS = Path(__file__).parents[1] / "docs"
RESULTS = Path(__file__).parent / "results" / "suite.jsonl"
SEEDS = [100, 101, 102]
QUICK = ["few strong groups", "every group a little", "two classes", "curves and pairs"]
COMPILED = {"EBM", "mgcv", "glinternet", "grpreg lasso", "grpreg MCP"}  # beforehand: they need no warm-up
QUICK_WITHOUT = {"skglm", "EBM", "glinternet"}  # half a minute and more


def run(
    methods: dict[str, Method], problems: dict[str, Callable[[int], Problem]], seeds: list[int], store: Store,
    say: Callable[[str], None] = lambda line: None,
) -> None:  # fmt: skip
    """Fill the store with what it does not have; what a method compiles or imports is done before the clock starts."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warm: set[tuple[str, str, bool]] = set()
        for name, make in problems.items():
            for seed in seeds:
                wanted = [method for method in methods if (method, name, seed) not in store.rows]
                try:
                    problem = make(seed) if wanted else None
                except CannotRunError as reason:
                    say(f"{name} is left out: {reason}.")
                    break
                for method in wanted:
                    kind = (method, problem.family.name, problem.table is None)
                    if kind not in warm and method not in COMPILED:
                        solved(few_rows(problem), methods[method])
                        warm.add(kind)
                    begun = time.perf_counter()
                    store.add(method, name, seed, **solved(problem, methods[method]))
                    say(f"{name}, seed {seed}: {method} {time.perf_counter() - begun:.1f} s")


def few_rows(problem: Problem, n: int = 60) -> Problem:
    """The same kind of problem, small: to warm up with, whatever comes of it."""
    fold_of = None if problem.fold_of is None else problem.fold_of[:n]
    table = None if problem.table is None else (problem.table[0][:n], problem.table[1][:n])
    rows = {"X": problem.X[:n], "y": problem.y[:n], "X_test": problem.X_test[:n], "fold_of": fold_of, "table": table}
    return replace(problem, **rows, error=lambda mean: 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--join", type=Path, action="append", default=[], help="a file with METHODS or PROBLEMS")
    parser.add_argument("--only", action="store_true", help="only the problems of the files that join")
    parser.add_argument("--methods", nargs="+", help="only these; by default all")
    parser.add_argument("--problems", nargs="+", help="only those whose name contains one of these")
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    parser.add_argument("--quick", action="store_true", help="two seeds of four problems, without slow methods")
    parser.add_argument("--keep", type=Path, help="results to go on from and to add to; suite.jsonl with --page")
    parser.add_argument("--page", action="store_true", help="write docs/suite.md and its pictures from the results")
    args = parser.parse_args()
    methods, problems = dict(METHODS), {} if args.only else dict(PROBLEMS)
    for file in args.join:
        joined = runpy.run_path(str(file))
        methods |= joined.get("METHODS", {})
        problems |= joined.get("PROBLEMS", {})
    unknown = set(args.methods or []) - set(methods)
    if unknown:
        parser.error(f"unknown methods {', '.join(sorted(unknown))}; there are {', '.join(methods)}")
    names = [name for name in problems if not args.problems or any(part in name for part in args.problems)]
    seeds, chosen = args.seeds, args.methods or list(methods)
    if args.quick:
        names, seeds = [name for name in names if name in QUICK or name not in PROBLEMS], seeds[:2]
        chosen = [method for method in chosen if args.methods or method not in QUICK_WITHOUT]
    store = Store(args.keep or (RESULTS if args.page else None))
    run(
        {name: methods[name] for name in chosen}, {name: problems[name] for name in names}, seeds, store,
        lambda line: print(line, file=sys.stderr, flush=True),
    )  # fmt: skip
    if args.page:
        write(store, DOCS)
    else:
        if args.problems:
            store.rows = {key: row for key, row in store.rows.items() if key[1] in names}
        print("\n".join(tables(store)))


if __name__ == "__main__":
    main()
