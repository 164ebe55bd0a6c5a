"""Memory of a default fit (five folds, then all rows) beside X itself.

    python benchmarks/memory.py            # X of up to 0.8 GB
    python benchmarks/memory.py --quick

What is measured is the peak of the process's resident memory during `fit`, less what was resident before it, X
included: everything that the fit allocates, BLAS and scratch of all kinds, whoever allocates it. Each fit has a process
of its own, with one thread, that has made a small fit before. It reads /proc, so it runs on Linux only.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

FIT = """
import sys, time
import numpy as np
from covey import GroupSparseClassifier, GroupSparseRegressor

n, p, size, order, noise, kind = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:]
model = GroupSparseClassifier if kind == "classes" else GroupSparseRegressor
rng = np.random.default_rng(1)
X = np.empty((n, p), order=order)
for a in range(0, n, 50):
    X[a : a + 50] = rng.standard_normal(X[a : a + 50].shape)
y = X[:, : 2 * size].sum(axis=1) / np.sqrt(2 * size) + float(noise) * rng.standard_normal(n)
y = y > 0 if kind == "classes" else y
model(size).fit(X[:60, : 6 * size].copy(), y[:60])

def kib(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name))

open("/proc/self/clear_refs", "w").write("5")  # the peak begins anew
before, begin = kib("VmRSS"), time.perf_counter()
model(size).fit(X, y)
print((kib("VmHWM") - before) * 1024 / X.nbytes, time.perf_counter() - begin)
"""

# rows, columns, size of a group, order, noise in units of the signal, response
CASES = [
    (500, 10_000, 5, "C", 0.5, "numbers"),
    (500, 200_000, 5, "C", 0.5, "numbers"),
    (500, 200_000, 5, "F", 0.5, "numbers"),
    (500, 200_000, 5, "C", 5.0, "numbers"),
    (500, 200_000, 1, "C", 0.5, "numbers"),
    (500, 200_000, 5, "C", 0.5, "classes"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the columns")
    quick = parser.parse_args().quick
    print(
        "| rows x columns | groups of | order | noise | response | X, MB | peak beside X | seconds |\n"
        + "| --- " * 8
        + "|"
    )
    for n, columns, size, order, noise, kind in CASES:
        p = columns // 10 if quick else columns
        case = [str(value) for value in (n, p, size, order, noise, kind)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, "-c", FIT, *case], env=environment, capture_output=True, text=True, check=True
        )
        share, seconds = map(float, done.stdout.split())
        facts = f"{n} x {p} | {size} | {order} | {noise} | {kind} | {8e-6 * n * p:.0f}"
        print(f"| {facts} | {share:.2f} of X | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
