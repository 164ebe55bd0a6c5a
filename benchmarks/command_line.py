"""Speed of the command line, each in a process of its own, in processor seconds: `python benchmarks/command_line.py`.

`covey fit` on 10 000 rows x 200 columns of CSV against what it cannot do without: reading that file and fitting it,
timed inside a process that has imported everything already. And `covey --help` against an empty interpreter.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

REPEATS = 5
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}

CORE = """
import sys, time
import pandas as pd
from sklearn.model_selection import KFold
from covey import GroupSparseRegressorCV, Groups
begin = time.process_time()
frame = pd.read_csv(sys.argv[1])
read = time.process_time()
X, y = frame.drop(columns="y"), frame["y"]
GroupSparseRegressorCV(groups=Groups.from_size(5, 200), cv=KFold(5, shuffle=True, random_state=0)).fit(X, y)
print(read - begin, time.process_time() - read)
"""


def seconds(*command):
    """Processor seconds of a process on one thread: what it takes on an idle machine, measured on a busy one."""
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run(command, check=True, capture_output=True, text=True, env=ONE_THREAD).stdout
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return end.ru_utime - begin.ru_utime + end.ru_stime - begin.ru_stime, out


def help_speed():
    bare = statistics.median(seconds(sys.executable, "-c", "pass")[0] for _ in range(REPEATS))
    ours = statistics.median(seconds(sys.executable, "-m", "covey.cli", "--help")[0] for _ in range(REPEATS))
    print(f"covey --help                       {ours:6.2f} s   (an empty interpreter {bare:.2f} s)")


def fit_speed(folder):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10_000, 200))
    frame = pd.DataFrame(X, columns=[f"g{j // 5:02d}_{j % 5}" for j in range(200)])
    frame["y"] = X[:, :10] @ rng.standard_normal(10) + rng.standard_normal(10_000)
    table = folder / "table.csv"
    frame.to_csv(table, index=False)
    command = (sys.executable, "-m", "covey.cli", "fit", str(table), "-t", "y", "-g", "_", "--overwrite")
    reads, fits, wholes, ours = [], [], [], []
    seconds(*command, "-o", str(folder / "fit"))  # kernels are compiled
    for _ in range(REPEATS):  # in turns, so that a busy minute is everybody's
        whole, out = seconds(sys.executable, "-c", CORE, str(table))
        read, fit = map(float, out.split())
        wholes.append(whole)
        reads.append(read)
        fits.append(fit)
        ours.append(seconds(*command, "-o", str(folder / "fit"))[0])
    ratios = [o / (r + f) for o, r, f in zip(ours, reads, fits, strict=True)]
    print(f"covey fit, 10 000 x 200 of CSV     {statistics.median(ours):6.2f} s")
    print(f"  reading (pandas)                 {statistics.median(reads):6.2f} s")
    print(f"  the fit                          {statistics.median(fits):6.2f} s")
    print(f"  ratio to reading plus fit        {statistics.median(ratios):6.2f}     (goal: at most 3)")
    alike = [o / w for o, w in zip(ours, wholes, strict=True)]
    print(f"  ratio to a script of the same    {statistics.median(alike):6.2f}     (imports, reading, fit)")


if __name__ == "__main__":
    help_speed()
    with tempfile.TemporaryDirectory() as name:
        fit_speed(Path(name))
