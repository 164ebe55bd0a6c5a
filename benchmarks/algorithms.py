"""Algorithm 1 beside Algorithm 2 in the engine: `python benchmarks/algorithms.py`.

Squared error of the model that validation rows choose, and the time at which the weakest true group wakes up; medians
over seeds. In the last rows one group is fifty times as strong as the other: the second wakes up long after the first
has settled and Algorithm 2 has switched.
"""

import numpy as np
from covey.stopping.monitor import PATIENCE, Monitor
from threadpoolctl import threadpool_limits

from covey import group_path
from covey.datasets import make_group_sparse
from covey.designs import as_design

SEEDS = 10
ALGORITHMS = ("single-stage", "two-stage")


def problem(kind, noise, seed):
    if kind == "one group 50 times another":
        values = np.r_[np.full(3, 50.0), np.full(3, 1.0)]
        return make_group_sparse(500, 60, 3, design="gaussian", active=2, values=values, sigma=noise, random_state=seed)
    design, rho = ("ar", 0.9) if kind == "AR(0.9)" else ("gaussian", 0.0)
    return make_group_sparse(
        400, 1500, 5, design=design, rho=rho, active=10, values=1.0, sigma=noise, random_state=seed
    )


def run(data, algorithm):
    n = len(data.y) * 3 // 4
    X_val, y_val = data.X[n:], data.y[n:]
    monitor = Monitor(as_design(X_val).errors(y_val, np.ones(len(y_val))), PATIENCE, data.groups.n_groups)
    path = group_path(data.X[:n], data.y[:n], data.groups, algorithm=algorithm, stop=monitor, max_iter=1_000_000)
    woke = dict(path.entered)
    error = float(np.sum((path.at(monitor.best_time) - data.w_star) ** 2))
    return error, max(woke.get(int(l), np.nan) for l in data.S)


if __name__ == "__main__":
    print("| design | noise | error, single-stage | two-stage | last true group wakes, single-stage | two-stage |")
    print("| --- | --- | --- | --- | --- | --- |")
    with threadpool_limits(1):
        for kind in ("independent columns", "AR(0.9)", "one group 50 times another"):
            for noise in (0.5, 1.0, 3.0):
                runs = np.array([[run(problem(kind, noise, seed), a) for a in ALGORITHMS] for seed in range(SEEDS)])
                (e1, t1), (e2, t2) = np.nanmedian(runs, axis=0)
                print(f"| {kind} | {noise:g} | {e1:.4g} | {e2:.4g} | {t1:.0f} | {t2:.0f} |")
