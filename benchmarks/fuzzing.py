"""The long run of the fuzzer: ``python benchmarks/fuzzing.py --cases 5000 --seed 0``.

A failure prints its case in one line, to be put into ``tests/fuzz/corpus.jsonl``. With ``--functions`` every public
function of groups, baselines, theory, datasets and dynamics is called with hostile arguments instead.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from pathlib import Path


def main() -> int:
    """Run the cases; the number of findings."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from fuzz.cases import make_case
    from fuzz.check import show, verdict
    from fuzz.functions import make_call, outcome

    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--call", help="one kind of call only: regressor, loss, classifier, network, path, limit, ...")
    parser.add_argument("--functions", action="store_true", help="functions with hostile arguments instead of fits")
    given = parser.parse_args()
    rng = random.Random(given.seed)
    kinds: Counter[str] = Counter()
    start = time.monotonic()
    for i in range(given.cases):
        case = make_call(rng.choice) if given.functions else make_case(rng.choice, rng.randrange(2**31))
        if given.call and not given.functions:
            case["call"] = given.call
        begun = time.monotonic()
        problem = outcome(case) if given.functions else verdict(case)
        if problem:
            kinds[problem.splitlines()[0][:100]] += 1
            print(f"{problem}\n  {show(case)}", flush=True)
        if time.monotonic() - begun > 5:
            print(f"slow: {time.monotonic() - begun:.1f} s  {show(case)}", flush=True)
        if (i + 1) % 500 == 0:
            print(f"{i + 1} cases, {sum(kinds.values())} findings, {time.monotonic() - start:.0f} s", flush=True)
    for kind, count in kinds.most_common():
        print(f"{count:5d}  {kind}")
    return sum(kinds.values())


if __name__ == "__main__":
    sys.exit(min(main(), 1))
