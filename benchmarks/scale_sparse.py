"""Sparse 100 000 x 200 000 with 0.1% non-zeros, 20 active groups of 5, noise 1: a fit, in products X'y and memory.

    python benchmarks/scale_sparse.py [--shrink 10]

The fit is the estimator's default: five folds, dealt again while the verdict is open. One thread. Goals: at most 4 GiB,
and at most 15 products X'y per woken group plus 10 s.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from covey import GroupSparseRegressor

SIZE, ACTIVE, DENSITY = 5, 20, 1e-3


def problem(n: int, p: int, seed: int = 0) -> tuple[sp.csc_array, np.ndarray, np.ndarray]:
    """Normal values at random places; the active groups are spread over the columns, with signs as coefficients."""
    rng = np.random.default_rng(seed)
    each = round(n * DENSITY)
    rows = np.sort(rng.integers(0, n, (p, each), dtype=np.int32), axis=1)
    values = rng.standard_normal(p * each)
    X = sp.csc_array((values, rows.ravel(), np.arange(0, p * each + 1, each, dtype=np.int32)), shape=(n, p))
    X.sum_duplicates()
    active = rng.choice(p // SIZE, ACTIVE, replace=False)
    w = np.zeros((p // SIZE, SIZE))
    # a column is zero in 999 rows of 1000, so coefficients are large for its part of y to be of the size of the noise
    w[active] = 8 * rng.choice([-1.0, 1.0], (ACTIVE, SIZE))
    y = X @ w.ravel() + rng.standard_normal(n)
    return X, y, np.sort(active)


def run(shrink: int = 1) -> dict[str, Any]:
    n, p = 100_000 // shrink, 200_000 // shrink
    # compiles and loads everything
    X, y, _ = problem(2000, 4000)
    with threadpool_limits(1):
        GroupSparseRegressor(SIZE, random_state=0).fit(X, y)
        X, y, active = problem(n, p)
        products = [_timed(lambda: X.T @ y) for _ in range(5)]
        product, product_cpu = (min(column[:5]) for column in list(zip(*products, strict=True))[:2])
        before = _peak()
        seconds, cpu, model = _timed(lambda: GroupSparseRegressor(SIZE, random_state=0).fit(X, y))
    woken = len(model.path_.entered)
    found = set(map(int, model.selected_groups_))
    return {
        "n": n, "p": p, "nnz": int(X.nnz), "GiB of X": round((X.data.nbytes + X.indices.nbytes) / 2**30, 3),
        "seconds": round(seconds, 2), "seconds of one X'y": round(product, 4), "groups woken": woken,
        "allowed seconds": round(15 * product * woken + 10, 2),
        "CPU seconds": round(cpu, 2), "CPU seconds of one X'y": round(product_cpu, 4),
        "allowed CPU seconds": round(15 * product_cpu * woken + 10, 2),
        "peak GiB": round(_peak(), 2), "peak GiB before the fit": round(before, 2),
        "active groups found": len(found & set(map(int, active))), "other groups": len(found - set(map(int, active))),
    }  # fmt: skip


def _timed(call: Any) -> tuple[float, float, Any]:
    """Seconds on the wall and of the processor, which other programs disturb less, and the result."""
    wall, cpu = time.perf_counter(), time.process_time()
    out = call()
    return time.perf_counter() - wall, time.process_time() - cpu, out


def _peak() -> float:
    """Peak memory of the process so far, GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shrink", type=int, default=1, help="divide rows and columns by this")
    print(json.dumps(run(parser.parse_args().shrink), indent=1))
