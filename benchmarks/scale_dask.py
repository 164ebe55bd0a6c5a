"""Dask on two workers against the array in memory: `scale.py --case dask`, or `scale_dask.py --gib 1` for less.

Both make the same rows from seeds, the cluster on its workers, and fit with held-out rows. Starting the cluster, making
the data and a small fit that loads the compiled code are not counted. In memory BLAS has two threads; each worker has
one. Processor time (of the workers, the scheduler and the client together) says what wall-clock time does not when
others use the machine.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from covey import GroupSparseRegressor

COLUMNS, GROUP, ACTIVE = 10_000, 5, 20
CHUNK_ROWS = 1600  # chunks of 122 MiB, Dask's own choice


def rows(first: int, count: int) -> np.ndarray:
    return np.random.default_rng([7, first]).standard_normal((count, COLUMNS))


def response(X: np.ndarray, first: int) -> np.ndarray:
    signal = X[:, : ACTIVE * GROUP] @ np.repeat(np.linspace(2, 1, ACTIVE), GROUP)
    return signal + np.random.default_rng([8, first]).standard_normal(len(X))


def edges(n: int) -> list[tuple[int, int]]:
    return [(first, min(CHUNK_ROWS, n - first)) for first in range(0, n, CHUNK_ROWS)]


def in_memory(n: int):
    X, y = np.empty((n, COLUMNS)), np.empty(n)
    for first, count in edges(n):
        X[first : first + count] = rows(first, count)
        y[first : first + count] = response(X[first : first + count], first)
    fit(X[:500], y[:500])
    before = time.process_time()
    model, seconds = fit(X, y)
    return model, seconds, time.process_time() - before


def on_workers(n: int):
    import dask.array as da
    from dask import delayed
    from distributed import Client, LocalCluster, wait

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=":0", memory_limit=0
        ) as cluster,
        Client(cluster) as client,
    ):
        blocks = [delayed(rows)(*edge) for edge in edges(n)]
        X = da.concatenate([da.from_delayed(b, (e[1], COLUMNS), float) for b, e in zip(blocks, edges(n), strict=True)])
        X = X.persist()
        wait(X)
        parts = zip(X.to_delayed().ravel(), edges(n), strict=True)
        y = da.concatenate([da.from_delayed(delayed(response)(b, e[0]), (e[1],), float) for b, e in parts]).persist()
        wait(y)
        fit(X[:500], y[:500])

        def processor_time():
            return time.process_time() + sum(client.run(time.process_time).values())

        before = processor_time()
        model, seconds = fit(X, y)
        return model, seconds, processor_time() - before


def fit(X, y):
    start = time.perf_counter()
    model = GroupSparseRegressor(GROUP, random_state=0).fit(X, y)
    return model, time.perf_counter() - start


def run(gib: float = 4.0) -> dict[str, Any]:
    """Measure: wall-clock and processor seconds of both, and whether the answers are the same."""
    n = int(gib * 2**30 / 8 / COLUMNS)
    with threadpool_limits(2):
        local, *memory = in_memory(n)
    model, *cluster = on_workers(n)
    gap = np.abs(model.coef_ - local.coef_).max() / np.abs(local.coef_).max()
    return {
        "shape": [n, COLUMNS],
        "seconds in memory, 2 threads": round(memory[0], 1),
        "seconds on 2 workers": round(cluster[0], 1),
        "ratio (goal: at most 2)": round(cluster[0] / memory[0], 2),
        "processor seconds in memory": round(memory[1], 1),
        "processor seconds on 2 workers": round(cluster[1], 1),
        "ratio of processor seconds": round(cluster[1] / memory[1], 2),
        "the same model was chosen": model.recipe_ == local.recipe_,
        "coefficients apart, of the largest": float(f"{gap:.1e}"),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--gib", type=float, default=4.0)
    for name, value in run(parser.parse_args().gib).items():
        print(f"{name:38} {value}")
