"""The two rules on real data: error, share of groups, stability, what another random state changes, deals and time.

The data sets of `real.py`, split as there, with covey's own folds and two random states. Errors are relative to those
of version 0.2.0's rule "min" on the same rows, which are read from `results/rules-0.2.0.jsonl` with those of its other
rules. Rules were decided on splits 0 to 5; results are reported on splits 100 to 105. On one core:

    OMP_NUM_THREADS=1 PYTHONPATH=src .venv-bench/bin/python benchmarks/rules.py --keep rules.jsonl
    ... --seeds 100 --cells wine diabetes      one split of some data sets

With `--keep` a run goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg  # noqa: F401 - with a BLAS of its own, whose threads can only be limited once it is loaded
from threadpoolctl import threadpool_limits

from real import make_problem, sizes
from real_tables import TABLES
from suite.measures import stability
from suite.real_data import DATA

BEFORE = Path(__file__).parent / "results" / "rules-0.2.0.jsonl"
STATES = (0, 1)
# A fit flips if another random state changes more than this share of all groups.
FLIPPED = 0.25
Key = tuple[str, int, int]
Results = dict[Key, dict[str, dict[str, Any]]]


def fits(name: str, seed: int, state: int) -> dict[str, dict[str, Any]]:
    """What the rules give on one split of a data set with one random state."""
    from covey import Groups, GroupSparseRegressor
    from covey.selection import Folds

    problem = make_problem(name, seed)
    ways = {
        "select": {"selection": Folds(5, random_state=state)},
        "select, one deal": {"selection": Folds(5, random_state=state, deals=1)},
        "predict": {"selection": Folds(5, random_state=state), "rule": "predict"},
    }
    found = {}
    for way, settings in ways.items():
        model, start = GroupSparseRegressor(Groups.from_labels(problem.labels), **settings), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(problem.X, problem.y)
        seconds = time.process_time() - start
        error = problem.error(model.predict(problem.X_test)[:, None])
        groups = sorted(int(group) for group in model.selected_groups_)
        found[way] = {"error": error, "groups": groups, "deals": model.n_deals_, "seconds": seconds}
    return found


def read(file: Path) -> Results:
    """Results that are kept, a line each."""
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return {(name, seed, state): found for name, seed, state, found in rows}


def table(results: Results, before: Results, n_groups: dict[str, int]) -> list[str]:
    """One line per rule; means over data sets."""
    keys = defaultdict(list)
    for key in sorted(results.keys() & before.keys()):
        keys[key[0]].append(key)
    lines = [
        "| rule | error | median | worst | share of groups | stability | flips | deals | time to one deal's |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    both = {key: before[key] | results[key] for key in results.keys() & before.keys()}
    for rule in next(iter(both.values())):
        ratios, shares, stable, flips, times = [], [], [], [], []
        for name, some in keys.items():
            found = {key: both[key][rule] for key in some}
            least = np.mean([both[key]["min"]["error"] for key in some])
            ratios.append(np.mean([one["error"] for one in found.values()]) / least)
            shares.append(np.mean([len(one["groups"]) / n_groups[name] for one in found.values()]))
            stable.append(stability([one["groups"] for key, one in found.items() if key[2] == 0], n_groups[name]))
            times += [one["seconds"] / both[key]["select, one deal"]["seconds"] for key, one in found.items()]
            for (_, seed, state), one in found.items():
                other = found.get((name, seed, 1))
                if state == 0 and other is not None:
                    flips.append(len(set(one["groups"]) ^ set(other["groups"])) > FLIPPED * n_groups[name])
        deals = [both[key][rule].get("deals", 1) for some in keys.values() for key in some]
        lines.append(
            f"| {rule} | {np.exp(np.mean(np.log(ratios))):.3f} | {np.median(ratios):.3f} | {max(ratios):.2f} | "
            f"{np.mean(shares):.2f} | {np.nanmean(stable):.2f} | {np.mean(flips):.0%} | {np.mean(deals):.1f} | "
            f"{np.median(times):.2f} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(100, 106)))
    parser.add_argument("--cells", nargs="+", help="parts of the names of data sets")
    parser.add_argument("--keep", type=Path, help="a file for results, and with those of earlier runs")
    parser.add_argument("--write", type=Path, help="a file for the table")
    args = parser.parse_args()
    found = sizes([name for name in DATA | TABLES if not args.cells or any(part in name for part in args.cells)])
    results = read(args.keep) if args.keep else {}
    wanted = [(name, seed, state) for name in found for seed in args.seeds for state in STATES]
    with threadpool_limits(1):
        for key in wanted:
            if key not in results:
                results[key] = fits(*key)
                if args.keep:
                    with args.keep.open("a") as file:
                        file.write(json.dumps([*key, results[key]]) + "\n")
    n_groups = {name: shape[2] for name, shape in found.items()}
    lines = table({key: results[key] for key in wanted}, read(BEFORE), n_groups)
    print("\n".join(lines))
    if args.write:
        args.write.write_text("\n".join(["<!-- What benchmarks/rules.py wrote. -->", *lines]) + "\n")


if __name__ == "__main__":
    main()
