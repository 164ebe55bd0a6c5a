"""Exact coherence against one numpy product X'X of the same data, and its peak memory at p = 20 000.

    python benchmarks/coherence.py

Times are the best of several runs after a warm-up, both in this process with the same threads. Memory is the peak of a
fresh process, interpreter and X included.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from covey.paper.theory import coherence

CASES = [(500, 5000, 5), (500, 5000, 1), (500, 5000, 20), (500, 5000, 50), (2000, 2000, 5)]


def best(call: Callable[[], object], repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def speed() -> None:
    print(f"{'n x p, groups of':>22} {'X.T @ X':>10} {'coherence':>10} {'ratio':>7}")
    for n, p, size in CASES:
        X = np.random.default_rng(0).standard_normal((n, p))
        coherence(X[:, : 4 * size], size)
        gram, ours = best(lambda X=X: X.T @ X), best(lambda X=X, size=size: coherence(X, size))
        print(f"{f'{n} x {p}, {size}':>22} {gram:>8.3f} s {ours:>8.3f} s {ours / gram:>7.2f}")


def wide() -> None:
    X = np.random.default_rng(0).standard_normal((500, 20_000))
    coherence(X[:, :20], 5)
    print(f"500 x 20000, groups of 5: {best(lambda: coherence(X, 5), 1):.2f} s")


def memory() -> None:
    code = f"import runpy; runpy.run_path({__file__!r})['peak']()"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    print(done.stdout.strip())


def peak() -> None:
    X = np.random.default_rng(0).standard_normal((500, 20_000))
    coherence(X, 5)
    kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"500 x 20000, groups of 5: peak memory {kib / 2**20:.2f} GiB (the Gram alone would be {8 * 4e8 / 2**30:.2f})"
    )


if __name__ == "__main__":
    speed()
    wide()
    memory()
