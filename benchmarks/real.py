"""Real data: test error of covey and its rivals on small data sets, relative to the best rival.

Every data set is split at random into 80% to fit and 20% to test; every method tunes by the same five folds of the rows
to fit. The test error is the mean squared error, averaged over splits. Settings are decided on splits 0 to 4; results
are reported on splits 100 to 119. On one core:

    OMP_NUM_THREADS=1 PYTHONPATH=src .venv-bench/bin/python benchmarks/real.py --keep real.jsonl --seeds $(seq 100 119)
    ... --quick --methods covey      two splits, rivals from the file where it has them

Bardet and colon are looked for in the folder that COVEY_DATA names, and left out where it has none.
"""

from __future__ import annotations

import numpy as np

from methods import OURS, PEERS, Problem
from real_data import DATA, NotHereError
from results_store import Store, arguments, print_all, run_all

METHODS = PEERS | OURS
RIVALS = [name for name in PEERS if name != "mean"]


def make_problem(name: str, seed: int) -> Problem:
    """A split of a data set; columns group after group."""
    X, y, labels = DATA[name]()
    rng = np.random.default_rng([seed, *name.encode()])
    order = rng.permutation(len(y))
    test, fit = np.split(order, [max(round(0.2 * len(y)), 3)])
    return split_problem(X[fit], y[fit], labels, X[test], y[test], rng)


def split_problem(X, y, labels, X_test, y_test, rng) -> Problem:
    """Five random folds; the error is the mean square on the test rows."""

    def score(predicted: np.ndarray) -> float:
        return float(np.mean((y_test - predicted) ** 2))

    return Problem(X, y, labels, X_test, score, fold_of=rng.permutation(len(y)) % 5)


def available() -> list[str]:
    names = []
    for name, load in DATA.items():
        try:
            load()
        except NotHereError as reason:
            print(f"{name} is left out: {reason}.")
        else:
            names.append(name)
    return names


def main() -> None:
    parser = arguments(__doc__, METHODS, list(range(5)), "two splits")
    parser.add_argument("--sizes", action="store_true", help="only print rows, columns and groups of the data sets")
    args = parser.parse_args()
    names = [name for name in available() if not args.cells or any(part in name for part in args.cells)]
    if args.sizes:
        for name in names:
            X, _, labels = DATA[name]()
            print(f"{name}: {X.shape[0]} rows, {X.shape[1]} columns, {labels.max() + 1} groups")
        return
    seeds = args.seeds[:2] if args.quick else args.seeds
    store = Store(args.keep)
    problems = {name: lambda seed, name=name: make_problem(name, seed) for name in names}
    run_all(problems, {name: METHODS[name] for name in args.methods}, seeds, store, args.tag)
    print_all(store, names, args.show, RIVALS, seeds, "data set", args.brief)


if __name__ == "__main__":
    main()
