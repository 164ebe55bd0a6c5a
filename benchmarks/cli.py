"""Speed of the command line, each in a process of its own: `python benchmarks/cli.py`.

`covey fit` on 10 000 rows x 200 columns of CSV against what it cannot do without: reading that file and fitting it,
timed inside a process that has imported everything already. And `covey --help` against an empty interpreter.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

REPEATS = 5

CORE = """
import sys, time
import pandas as pd
from sklearn.model_selection import KFold
from covey import GroupSparseRegressorCV, Groups
begin = time.perf_counter()
frame = pd.read_csv(sys.argv[1])
read = time.perf_counter()
X, y = frame.drop(columns="y"), frame["y"]
GroupSparseRegressorCV(groups=Groups.from_size(5, 200), cv=KFold(5, shuffle=True, random_state=0)).fit(X, y)
print(read - begin, time.perf_counter() - read)
"""


def seconds(*command):
    begin = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - begin


def help_speed():
    bare = statistics.median(seconds(sys.executable, "-c", "pass") for _ in range(REPEATS))
    ours = statistics.median(seconds(sys.executable, "-m", "covey.cli", "--help") for _ in range(REPEATS))
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
        begin = time.perf_counter()
        out = subprocess.run([sys.executable, "-c", CORE, str(table)], check=True, capture_output=True, text=True)
        wholes.append(time.perf_counter() - begin)
        read, fit = map(float, out.stdout.split())
        reads.append(read)
        fits.append(fit)
        ours.append(seconds(*command, "-o", str(folder / "fit")))
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
