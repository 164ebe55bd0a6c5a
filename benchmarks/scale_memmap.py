"""A file of 8 GiB fitted by a process that may take 2 GiB: the fit against its passes read alone.

    python benchmarks/scale_memmap.py [--gib 8] [--limit 2] [--folder /tmp]

The limit is on address space (RLIMIT_AS), set in a process of its own before anything is imported. The fit is the
estimator's default: five folds, dealt again while the verdict is open. "cold" drops
the file from the page cache before every pass, as if there were no memory to keep it; "cached" is the best that a large
machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS, SIZE, ACTIVE = 1024, 8, 20


class ColdDesign:
    """Made when covey may be imported: a memmap design that leaves nothing in the page cache between passes."""

    def __new__(cls, path: Path, cold: bool) -> Any:
        from covey.designs import MemmapDesign

        class Made(MemmapDesign):
            def check(self) -> None:
                super().check()
                if cold:
                    with open(self.place.path, "rb") as file:
                        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

        return Made(path)


def make(path: Path, n: int) -> None:
    """Normal columns; signs as coefficients of the first groups; noise 1. The response lies beside the file."""
    rng = np.random.default_rng(0)
    w = rng.choice([-1.0, 1.0], ACTIVE * SIZE)
    y = np.empty(n)
    header = {"descr": "<f8", "fortran_order": False, "shape": (n, COLUMNS)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_2_0(file, header)
        for top in range(0, n, 2**14):
            X = rng.standard_normal((min(2**14, n - top), COLUMNS))
            y[top : top + len(X)] = X[:, : w.size] @ w + rng.standard_normal(len(X))
            X.tofile(file)
        os.fsync(file.fileno())
    np.save(path.with_suffix(".y.npy"), y)


def child(path: Path, limit: float, cold: bool) -> dict[str, Any]:
    """In a process under the limit."""
    resource.setrlimit(resource.RLIMIT_AS, (int(limit * 2**30), int(limit * 2**30)))
    from covey import GroupSparseRegressor
    from covey.designs import MemmapDesign

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        # compiles and loads everything
        small = Path(folder, "x.npy")
        np.save(small, rng.standard_normal((2000, COLUMNS)))
        warm = MemmapDesign(small, memory_budget=2**22)
        GroupSparseRegressor(SIZE, random_state=0).fit(warm, rng.standard_normal(2000))
    y = np.load(path.with_suffix(".y.npy"))
    design = ColdDesign(path, cold)

    def one_pass() -> int:
        design.check()
        return sum(len(block) for block in design.stream())

    alone = min(_timed(one_pass)[0] for _ in range(2))
    design.n_passes = 0
    seconds, model = _timed(lambda: GroupSparseRegressor(SIZE, random_state=0).fit(design, y))
    return {
        "n": design.shape[0], "p": COLUMNS, "GiB of X": design.shape[0] * COLUMNS * 8 / 2**30, "limit GiB": limit,
        "page cache": "cold" if cold else "cached", "seconds": round(seconds, 1), "passes": design.n_passes,
        "seconds of a pass read alone": round(alone, 2), "ratio": round(seconds / (alone * design.n_passes), 2),
        "block rows": design.block_rows,
        "peak GiB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "groups selected": len(model.selected_groups_),
        "active groups found": sum(l < ACTIVE for l in model.selected_groups_),
    }  # fmt: skip


def steps() -> dict[str, float]:
    """CPU seconds per GiB of every step of a pass, on one core."""
    from covey.designs import DenseDesign, MemmapDesign

    rng = np.random.default_rng(0)
    n, k = 8192, 128
    X, R, q = rng.standard_normal((n, COLUMNS)), rng.standard_normal((k, n)), np.full(n, 1 / n)
    groups = np.arange(COLUMNS), np.arange(0, COLUMNS + 1, SIZE)
    block, some = DenseDesign(X), np.arange(k)
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "x.npy"), X)
        design = MemmapDesign(Path(folder, "x.npy"))
        calls = {
            "read from the page cache": lambda: design.read(0, n),
            f"moments, groups of {SIZE}": lambda: block.moments(q, q, *groups, centre=True, scale=np.ones(COLUMNS)),
            f"products with {k} residuals": lambda: block.correlate(R),
            f"Gram matrix of {k} columns": lambda: block.gram_parts(some, np.zeros(k), q, [q]),
        }
        found = {}
        for label, call in calls.items():
            call()
            begin = time.thread_time()
            for _ in range(4):
                call()
            found[label] = round((time.thread_time() - begin) / 4 / (X.nbytes / 2**30), 2)
    return found


def run(gib: float = 8, limit: float = 2, folder: str | None = None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=folder) as made:
        path = Path(made, "x.npy")
        make(path, int(gib * 2**30 / (8 * COLUMNS)))
        out = []
        for mode in ("cold", "cached"):
            command = [sys.executable, __file__, "--child", str(path), "--limit", str(limit), "--mode", mode]
            # one core computes while the other reads
            threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | threads)
            out.append(json.loads(done.stdout))
        return {"fits": out, "CPU seconds per GiB": steps()}


def _timed(call: Any) -> tuple[float, Any]:
    begin = time.perf_counter()
    out = call()
    return time.perf_counter() - begin, out


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gib", type=float, default=8, help="size of the file")
    parser.add_argument("--limit", type=float, default=2, help="GiB of address space")
    parser.add_argument("--folder", help="where to make the file; the system's folder for temporary files by default")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--mode", default="cold", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(child(args.child, args.limit, args.mode == "cold")))
    else:
        print(json.dumps(run(args.gib, args.limit, args.folder), indent=1))
