"""Speed and memory of the dynamics, and first calls in a fresh process: `python benchmarks/dynamics.py`.

Ratios are taken within one run, on one thread, after warm-up.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from threadpoolctl import threadpool_limits

from covey.paper.datasets import legacy_paper_data
from covey.paper.dynamics import normalized_descent


def median_seconds(function, repeats=5):
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def vectorised_numpy(data, n_steps):
    """Algorithm 1 as a numpy programmer would write it for speed: no loop over groups, everything in BLAS."""
    X, y, n = data.X, data.y, len(data.y)
    labels, starts = data.groups.labels, data.groups.starts[:-1]
    u, v = np.full(data.groups.n_groups, 1e-6), 1 / np.sqrt(data.groups.sizes[labels])
    for _ in range(n_steps):
        g = X.T @ (y - X @ (u[labels] ** 2 * v)) / n
        z = u[labels] ** 2 * v + g
        v = z / np.sqrt(np.add.reduceat(z * z, starts))[labels]
        g = X.T @ (y - X @ (u[labels] ** 2 * v)) / n
        u = u * (1 + 2e-3 * np.add.reduceat(v * g, starts))
    return u[labels] ** 2 * v


def speed():
    data = legacy_paper_data()
    arguments = (data.X, data.y, data.groups)
    compiled = normalized_descent(*arguments)
    np.testing.assert_allclose(vectorised_numpy(data, 2000), compiled.w[-1], rtol=1e-6, atol=1e-9)
    twin = median_seconds(lambda: normalized_descent(*arguments, reference=True), repeats=3)
    numpy = median_seconds(lambda: vectorised_numpy(data, 2000))
    ours = median_seconds(lambda: normalized_descent(*arguments))
    print("Algorithm 1 on the paper's first setting (150 x 300, groups of 3, 2000 iterations, all recorded)")
    print(f"  twin that reads like the paper  {twin:7.3f} s   {twin / ours:5.1f} x ours")
    print(f"  numpy, vectorised by hand       {numpy:7.3f} s   {numpy / ours:5.1f} x ours")
    print(f"  covey                           {ours:7.3f} s   {ours / 2000 * 1e6:5.1f} microseconds an iteration")


MEMORY = """
import resource, numpy as np
def resident():
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmRSS"))
from covey.paper.dynamics import normalized_descent
from covey.datasets import make_group_sparse
small = make_group_sparse(30, 60, 5, design="gaussian", random_state=0)
normalized_descent(small.X, small.y, small.groups, n_steps=2)      # compile first
base = resident()
rng = np.random.default_rng(0)
X = rng.standard_normal((500, 20_000))
y = X[:, :10] @ np.ones(10) + rng.standard_normal(500)
path = normalized_descent(X, y, 5, n_steps=1000, record_every=100, step_size=0.01)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - base
recorded = path.u.nbytes + path.v.nbytes + path.w.nbytes
print((peak - recorded) / X.nbytes)
"""

FIRST_CALL = """
import time
start = time.perf_counter()
import covey
imported = time.perf_counter()
from covey.datasets import make_group_sparse
from covey.paper.dynamics import normalized_descent
data = make_group_sparse(random_state=0)
ready = time.perf_counter()
normalized_descent(data.X, data.y, data.groups, n_steps=10)
done = time.perf_counter()
print(imported - start, done - ready, done - start)
"""


FIRST_FIT = """
import time
from covey import GroupSparseRegressor
from covey.datasets import make_group_sparse
data = make_group_sparse(200, 300, 3, random_state=0)
start = time.perf_counter()
GroupSparseRegressor(groups=3, random_state=0).fit(data.X, data.y)
print(time.perf_counter() - start)
"""


def in_fresh_process(code, **environment):
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ | environment
    )
    return [float(x) for x in out.stdout.split()]


def memory():
    (ratio,) = in_fresh_process(MEMORY, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    print("\nMemory at 500 x 20 000, 1000 iterations, every 100th recorded")
    print(f"  peak beyond what is recorded    {ratio:7.2f} x X")


def first_call():
    print("\nA fresh process")
    with tempfile.TemporaryDirectory() as cache:
        imported, first, _ = in_fresh_process(FIRST_CALL, NUMBA_CACHE_DIR=cache)
        print(f"  import covey                    {imported:7.2f} s")
        print(f"  first run, cold numba cache     {first:7.2f} s")
        _, first, everything = in_fresh_process(FIRST_CALL, NUMBA_CACHE_DIR=cache)
        print(f"  first run, warm numba cache     {first:7.2f} s   ({everything:.2f} s with all imports)")
    with tempfile.TemporaryDirectory() as cache:
        for state in ("cold", "warm"):
            (fit,) = in_fresh_process(FIRST_FIT, NUMBA_CACHE_DIR=cache)
            print(f"  first fit, {state} numba cache     {fit:7.2f} s")


if __name__ == "__main__":
    with threadpool_limits(1):
        speed()
    memory()
    first_call()
