"""The attacks of docs/robustness.md, counted: inputs, constraints, processors, files, kills and lost workers.

    make robustness                                             # the full numbers, a day on one core
    python tools/robustness.py --small                          # some minutes; other seeds with --seed
    python tools/robustness.py --models 2000 --seed 7           # one kind alone

Every try has a seed. A finding is a crash, a traceback, an error that the documentation does not name, a result that
is not finite, or one that is not what an undisturbed run gives; each is printed with its seed. The table at the end is
that of docs/robustness.md, also after Ctrl-C; the exit status is 1 where there were findings.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from pathlib import Path

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

# What is tried, how often, and how often with --small.
KINDS = {
    "functions": ("inputs of fits and paths", 20_000, 200),
    "invariances": ("fits saved and loaded, in another order, unit or storage, or with weights", 10_000, 100),
    "terms": ("fits of tables, in another order, unit or naming, with weights, saved and loaded", 1000, 30),
    "constrained": ("fits under random constraints, every model checked", 2000, 60),
    "arguments": ("hostile arguments of groups, baselines, theory, datasets and dynamics", 20_000, 500),
    "processors": ("fits under other kernels of OpenBLAS and numbers of threads", 600, 120),
    "models": ("forged model files", 5000, 60),
    "tables": ("tables through covey fit and covey predict", 500, 30),
    "kills": ("runs killed (kill -9, Ctrl-C) and resumed", 100, 8),
    "workers": ("Dask workers killed during a fit", 20, 2),
}

# Fits that one process makes: its start takes as long as some of them.
AT_ONCE = 20

Findings = Generator[tuple[int, str], None, None]


def functions(count: int, seed: int) -> Findings:
    """Fits and paths on inputs of all shapes, types and scales (`tests/fuzz/cases.py`)."""
    from fuzz.cases import make_case
    from fuzz.check import show, verdict
    from fuzz.children import in_children

    def judge(own: int) -> str:
        rng = random.Random(own)
        case = make_case(rng.choice, rng.randrange(2**31))
        problem = verdict(case)
        return f"{problem}\n  {show(case)}" if problem else ""

    return in_children(judge, range(seed, seed + count))


def invariances(count: int, seed: int) -> Findings:
    """Every loss on small data with ties: another order, unit or storage is the same (`tests/fuzz/invariances.py`)."""
    from fuzz.children import in_children
    from fuzz.invariances import case, verdict

    return in_children(lambda own: verdict(case(own)), range(seed, seed + count))


def terms(count: int, seed: int) -> Findings:
    """The same for tables of variables (`tests/fuzz/table_invariances.py`)."""
    from fuzz.children import in_children
    from fuzz.table_invariances import case, verdict

    return in_children(lambda own: verdict(case(own)), range(seed, seed + count))


def constrained(count: int, seed: int) -> Findings:
    """Every loss and rule: judged, returned and fold models keep the constraints (`tests/fuzz/constrained.py`)."""
    from fuzz.children import in_children
    from fuzz.constrained import verdict

    return in_children(verdict, range(seed, seed + count))


def arguments(count: int, seed: int) -> Findings:
    """One or two arguments of a call that works replaced by hostile ones (`tests/fuzz/functions.py`)."""
    from fuzz.children import in_children
    from fuzz.functions import make_call, outcome

    def judge(own: int) -> str:
        case = make_call(random.Random(own).choice)
        problem = outcome(case)
        return f"{problem}\n  {case}" if problem else ""

    return in_children(judge, range(seed, seed + count))


def processors(count: int, seed: int) -> Findings:
    """The same groups and, to 1e-6, the same model on other processors (`tests/processor_fits.py`)."""
    from processors import PROCESSORS, largest_differences

    for batch, own in enumerate(range(seed, seed + count, AT_ONCE)):
        pair = PROCESSORS[0], PROCESSORS[1 + batch % (len(PROCESSORS) - 1)]
        for fit, apart in largest_differences(own, min(own + AT_ONCE, seed + count), [], pair).items():
            yield int(fit.rpartition(" ")[2]), f"{fit}, {pair[1][0]}: apart by {apart:.2g}" if apart > 1e-6 else ""


def models(count: int, seed: int) -> Findings:
    """Files with flipped bits, swapped members, wrong shapes, indices and types (`tests/fuzz/model_files.py`)."""
    from fuzz.children import in_children
    from fuzz.model_files import bases, verdict

    bases()
    return in_children(verdict, range(seed, seed + count))


def tables(count: int, seed: int) -> Findings:
    """Tables and options of all kinds (`tests/fuzz/cli_tables.py`)."""
    from fuzz.children import in_children
    from fuzz.cli_tables import verdict

    return in_children(verdict, range(seed, seed + count))


def kills(count: int, seed: int) -> Findings:
    """Experiments and `--overwrite`, killed again and again (`tests/interrupts.py`)."""
    works = ("reproduction", "overwriting")
    shares = [count // len(works) + (i < count % len(works)) for i in range(len(works))]
    for work, share in zip(works, shares, strict=True):
        for first in range(0, share, 6):
            some = min(6, share - first)
            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, str(ROOT / "tests" / "interrupts.py"), work, folder, str(seed + first)]
                done = subprocess.run(
                    [*command, str(some)], capture_output=True, text=True,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MPLBACKEND": "Agg"},
                )  # fmt: skip
            for k in range(some):
                yield seed + first + k, ""
            if done.returncode or "the same to the last bit" not in done.stdout:
                yield seed + first, f"{work}: {done.stdout}{done.stderr}"


def workers(count: int, seed: int) -> Findings:
    """A worker of two is killed at a random moment of a fit; the fit ends as one without a loss does."""
    import threading

    import dask.array as da
    import numpy as np
    from distributed import Client, LocalCluster

    from covey import GroupSparseRegressor
    from covey.datasets import make_group_sparse

    data = make_group_sparse(400, 300, 3, active=4, sigma=1.0, random_state=0)

    def fit() -> tuple[np.ndarray, float]:
        begin = time.monotonic()
        X = da.from_array(data.X, chunks=(50, -1))
        return GroupSparseRegressor(3).fit(X, data.y).coef_, time.monotonic() - begin

    # a cluster of its own for every try: not every nanny replaces a worker that was killed as it started
    options = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": ":0"}
    expected, seconds = np.empty(0), 0.0
    for i in range(-1, count):
        with LocalCluster(processes=True, silence_logs=50, **options) as cluster, Client(cluster) as client:
            fit()
            if i < 0:
                expected, seconds = fit()
                continue
            pids = list(client.run(os.getpid).values())
            rng = random.Random(seed + i)
            timer = threading.Timer(rng.uniform(0, seconds), os.kill, (rng.choice(pids), signal.SIGKILL))
            timer.start()
            try:
                found, _ = fit()
                yield seed + i, "" if np.array_equal(found, expected) else "another model"
            except Exception as error:
                yield seed + i, f"{type(error).__name__}: {error}"
            timer.join()


ATTACKS: dict[str, Callable[[int, int], Findings]] = {
    "functions": functions, "invariances": invariances, "terms": terms, "constrained": constrained,
    "arguments": arguments, "processors": processors, "models": models, "tables": tables, "kills": kills,
    "workers": workers,
}  # fmt: skip


def fits(name: str, tries: int) -> int | str:
    """The number of fits that were compared, where tries are comparisons of fits."""
    if name in ("invariances", "terms"):
        from fuzz.invariances import FITS

        made, FITS.value = FITS.value, 0
        return made
    return 2 * tries if name == "processors" else ""


def processor_seconds() -> float:
    """Of this process and of its children that have ended."""
    return sum(os.times()[:4])


def main() -> int:
    """Attack, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="few of each")
    parser.add_argument("--seed", type=int, default=0, help="of the first try; others follow")
    for name, (what, full, small) in KINDS.items():
        parser.add_argument(f"--{name}", type=int, metavar="N", help=f"{what} (full {full}, small {small})")
    given = parser.parse_args()
    asked = {name: getattr(given, name) for name in KINDS}
    if all(count is None for count in asked.values()):
        asked = {name: KINDS[name][2 if given.small else 1] for name in KINDS}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    lines, total, stopped = [], 0, False
    for name, count in asked.items():
        if not count or stopped:
            continue
        begin, tries, found = processor_seconds(), 0, 0
        attack = ATTACKS[name](count, given.seed)
        try:
            for seed, problem in attack:
                tries += not problem or name != "kills"
                if problem:
                    found += 1
                    print(f"{name}, seed {seed}: {problem}", flush=True)
                if tries % 100 == 0 and tries < count:
                    print(f"{name}: {tries} tries, {found} findings", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            stopped = True
            attack.close()
        total += found
        what = f"{KINDS[name][0]} (seeds from {given.seed})"
        lines.append(f"| {what} | {tries} | {fits(name, tries)} | {found} | {processor_seconds() - begin:.0f} |")
        print(f"{name}: {tries} tries, {found} findings", file=sys.stderr, flush=True)
    print("| what | tries | fits | findings | processor seconds |\n| --- | --- | --- | --- | --- |")
    print("\n".join(lines))
    return min(total, 1)


if __name__ == "__main__":
    sys.exit(main())
