"""Dask on two workers against the array in memory: `scale.py --case dask`, or `scale_dask.py --gib 1` for less.

`scale_dask.py --lazy --gib 0.25 --workers 4` reads X and y lazily from Parquet instead, eight files, on so many worker
processes, with squared loss and with classes: passes over X, time, and the peak memory of the workers; then the same
with a worker killed in the middle.

Both make the same rows from seeds, the cluster on its workers, and fit with held-out rows. Starting the cluster, making
the data and a small fit that loads the compiled code are not counted. In memory BLAS has two threads; each worker has
one. Processor time (of the workers, the scheduler and the client together) says what wall-clock time does not when
others use the machine.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from covey import GroupSparseClassifier, GroupSparseRegressor

COLUMNS, GROUP, ACTIVE = 10_000, 5, 20
PARQUET_COLUMNS = 4000  # every column of a file costs something by itself
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


def peak_gib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def lazily(gib: float, n_workers: int) -> dict[str, Any]:
    """Fits of Parquet files that workers read again for every pass."""
    import dask.dataframe as dd
    import pandas as pd
    from distributed import Client, LocalCluster

    from covey.designs import as_design

    n, names = int(gib * 2**30 / 8 / PARQUET_COLUMNS), [f"x{j}" for j in range(PARQUET_COLUMNS)]
    out: dict[str, Any] = {"shape": [n, PARQUET_COLUMNS], "cores": os.cpu_count()}
    with tempfile.TemporaryDirectory() as folder:
        for i, part in enumerate(np.array_split(np.arange(n), 8)):
            X = rows(i, part.size)[:, :PARQUET_COLUMNS]
            y = response(X, i)
            pd.DataFrame(X, columns=names).assign(y=y, above=y > 0).to_parquet(Path(folder, f"part-{i}.parquet"))
        for count in sorted({1, n_workers}):
            with (
                LocalCluster(
                    n_workers=count, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0", memory_limit=0
                ) as cluster,
                Client(cluster) as client,
            ):
                table = dd.read_parquet(folder)
                for estimator, name in [(GroupSparseRegressor(GROUP), "y"), (GroupSparseClassifier(GROUP), "above")]:
                    begin, design = time.perf_counter(), as_design(table[names])
                    estimator.fit(design, table[name])
                    title = f"{type(estimator).__name__}, {count} workers"
                    out[f"{title}: seconds"] = round(time.perf_counter() - begin, 1)
                    out[f"{title}: passes, deals"] = [design.n_passes, estimator.n_deals_]
                out[f"{count} workers: peak GiB of a worker"] = round(max(client.run(peak_gib).values()), 2)
                if count > 1:
                    killed = next(iter(client.run(os.getpid).values()))
                    threading.Timer(2.0, os.kill, (killed, signal.SIGKILL)).start()
                    again = GroupSparseClassifier(GROUP).fit(table[names], table["above"])
                    gap = np.abs(again.coef_ - estimator.coef_).max() / np.abs(estimator.coef_).max()
                    out["coefficients apart after a worker was killed"] = float(f"{gap:.1e}")
    out["peak GiB of this process"] = round(peak_gib(), 2)
    return out


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
    parser.add_argument("--lazy", action="store_true", help="X and y from Parquet, read again for every pass")
    parser.add_argument("--workers", type=int, default=4, help="with --lazy")
    args = parser.parse_args()
    for name, value in (lazily(args.gib, args.workers) if args.lazy else run(args.gib)).items():
        print(f"{name:52} {value}")
