"""Classes, counts and several responses: covey beside adelie, abess, skglm, and l1 and ridge without groups.

Simulated cells (`glm_problems.py`): excess of the expected deviance over the true model's on 4000 fresh rows (several
responses: mean squared error of the means), false and missed groups. Real data (`glm_data.py`): log loss or Poisson
deviance on test rows, relative to the best rival. All methods tune by the same five folds, on one thread.

Settings are decided on seeds 0 to 4 of the simulated cells and splits 0 to 14 of the real data; `--reported` takes
seeds 100 to 109 and splits 100 to 119. Peers' results are kept in a folder and not computed again; covey's are unless
they have a tag. Times are compared within one run only: `--times` runs everyone side by side on the first seed. On one
core, the whole of it:

    export OMP_NUM_THREADS=1 PYTHONPATH=src
    run=".venv-bench/bin/python benchmarks/peers_glm.py --reported --cache glm-cache"
    $run --times
    $run --write benchmarks/results/glm.md
    ... --quick --methods covey --cells binomial splice      one seed of some cells, rivals from the folder

Splice and colon are looked for in the folder that COVEY_DATA names, and left out where it has none.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.linalg  # noqa: F401 - with a BLAS of its own, whose threads can only be limited once it is loaded
from threadpoolctl import threadpool_limits

from glm_data import DATA, make_real
from glm_methods import REAL, SIMULATED, TIMED
from glm_problems import CELLS, make_simulated
from glm_tables import goals, real_table, simulated_table, summary, times_table
from real_data import NotHereError
from results_store import Store, arguments, run_all

LONG_RUN = 10.0  # seconds
QUICK = {name for name in CELLS if "iid signal 1" in name and "x10000" not in name} | {"splice", "wine raw", "fair raw"}
SEEDS = {"simulated": (range(5), range(100, 110)), "real": (range(15), range(100, 120))}
TITLE = (
    "<!-- What benchmarks/peers_glm.py wrote; its docstring says how to run it and which seeds decided settings. -->"
)


def available(names: list[str]) -> list[str]:
    """Real data sets that are on this machine."""
    here = []
    for name in names:
        try:
            DATA[name]()
        except NotHereError as reason:
            print(f"{name} is left out: {reason}.", file=sys.stderr)
        else:
            here.append(name)
    return here


def skip(method: str, name: str) -> str | None:
    return "takes minutes, for the models that adelie finds" if method == "skglm" and "x10000" in name else None


def run_times(names: list[str], seed: int, store: Store, rounds: int) -> None:
    """Processor seconds of every timed method, one after the other in each round, after a round that warms up.

    With one thread they are the seconds of an idle machine, and other work on the machine hardly shows in them. A
    method whose first run takes long is timed in one round only.
    """
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            problem = make_simulated(CELLS[name], seed)
            taken: dict[str, list[float]] = {method: [] for method in TIMED}
            reasons = {method: reason for method in TIMED if (reason := skip(method, name))}
            slow: set[str] = set()
            for round_ in range(rounds + 1):
                for method, solve in TIMED.items():
                    if method in reasons or (round_ > 1 and method in slow):
                        continue
                    start = time.process_time()
                    try:
                        solve(problem)
                    except Exception as failure:  # what a method cannot do is its result
                        reasons[method] = f"{type(failure).__name__}: {failure}"[:300]
                        continue
                    seconds = time.process_time() - start
                    if round_ > 0:
                        taken[method].append(seconds)
                    elif seconds > LONG_RUN:
                        slow.add(method)
            for method in TIMED:
                if method in reasons:
                    store.add(method, name, seed, reason=reasons[method])
                else:
                    store.add(method, name, seed, seconds=float(np.median(taken[method])))
            print(name, {m: round(float(np.median(t)), 3) for m, t in taken.items() if t}, file=sys.stderr, flush=True)


def options() -> argparse.Namespace:
    methods = list(dict.fromkeys([*SIMULATED, *REAL]))
    parser = arguments(__doc__, methods, [], "one seed, and where no cells are named only some")
    parser.add_argument("--reported", action="store_true", help="the seeds of the reported results")
    parser.add_argument("--cache", type=Path, help="a folder of single results to go on from and to add to")
    parser.add_argument("--times", action="store_true", help="only time covey and its peers on the first seed")
    parser.add_argument("--rounds", type=int, default=3, help="how often everything is timed")
    parser.add_argument("--write", type=Path, help="a file for the tables")
    return parser.parse_args()


def main() -> None:
    args = options()
    if args.keep:
        raise SystemExit("--keep FILE is --cache FOLDER here: simulated, real and timed results have a file each")

    def chosen(name: str) -> bool:
        return any(part in name for part in args.cells) if args.cells else not args.quick or name in QUICK

    def seeds(kind: str) -> list[int]:
        few = args.seeds or list(SEEDS[kind][int(args.reported)])
        return few[:1] if args.quick else few

    def store(kind: str) -> Store:
        return Store(args.cache / f"{kind}.jsonl" if args.cache else None)

    cells = [name for name in CELLS if chosen(name)]
    timed = store("times")
    if args.times:
        run_times(cells, seeds("simulated")[0], timed, 1 if args.quick else args.rounds)
        print("\n".join(times_table(timed, cells, seeds("simulated")[0])))
        return
    data = available([name for name in DATA if chosen(name)])
    simulated, real = store("simulated"), store("real")
    for kind, names, results, methods, make in (
        ("simulated", cells, simulated, SIMULATED, lambda name, seed: make_simulated(CELLS[name], seed)),
        ("real", data, real, REAL, make_real),
    ):
        problems = {name: lambda seed, name=name, make=make: make(name, seed) for name in names}
        run_all(problems, {m: methods[m] for m in args.methods if m in methods}, seeds(kind), results, args.tag, skip)
    ours = f"covey:{args.tag}" if args.tag else "covey"
    lines: list[str] = []
    if cells:
        judged = goals(simulated, timed, cells, seeds("simulated"), ours)
        lines += [*summary(judged), *judged.table(), *simulated_table(simulated, cells, args.show, seeds("simulated"))]
        lines += times_table(timed, cells, seeds("simulated")[0])
    if data:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            real_table(real, data, args.show, seeds("real"), args.brief)
        lines.append(printed.getvalue())
    print("\n".join(lines))
    if args.write:
        args.write.write_text("\n".join([TITLE, *lines]).rstrip() + "\n")


if __name__ == "__main__":
    main()
