"""Which margin the networks reach on separable classes: shares of the best L2,1 margin over ten data sets.

    python benchmarks/margins.py
    ... --step-share 0.3      the steps times this, and as many more of them

Thirty rows, six groups of two columns, two of them telling the classes apart. The best margin is found by SLSQP on the
weights of the rows, which prove it from above. "falls" counts the records, one every ten steps, at which the smoothed
margin in the network's own norm is lower than at the one before. Settings were decided on seeds below 1000; results are
reported on seeds from 1000 on.
"""

import argparse

import numpy as np
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from covey.paper.dynamics import normalized_descent, plain_descent
from covey.paper.theory import margins

ROWS, GROUPS, SIZE = 30, 6, 2
SETTINGS = {"loss": "binomial", "clock": "loss", "n_steps": 5000, "record_every": 10}
NETWORKS = {
    "normalised": (normalized_descent, {"step_size": 0.05}, 1.0),
    "u v": (plain_descent, {"depth": 1, "start": "aligned", "step_size": 0.1}, 1.0),
    "u^2 v": (plain_descent, {"depth": 2, "start": "aligned", "step_size": 0.03}, 2 / 3),
    "normalised, depth 3": (normalized_descent, {"depth": 3, "step_size": 0.03}, 2 / 3),
}


def problem(seed):
    """Classes that the first two groups tell apart."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS, GROUPS * SIZE))
    return X, (X[:, : 2 * SIZE] @ rng.standard_normal(2 * SIZE) > 0).astype(float)


def best_margin(X, y):
    """An upper bound on every L2,1 margin, sharp where SLSQP has converged."""
    A = (2 * y - 1)[:, None] * X

    def norms(p):
        return np.linalg.norm((A.T @ p).reshape(GROUPS, SIZE), axis=1)

    def slopes(z):
        directions = (A.T @ z[:-1]).reshape(GROUPS, SIZE) / norms(z[:-1])[:, None]
        return np.column_stack([-(A.reshape(ROWS, GROUPS, SIZE) * directions).sum(axis=2).T, np.ones(GROUPS)])

    even, in_weights = np.full(ROWS, 1 / ROWS), np.append(np.ones(ROWS), 0.0)
    found = minimize(
        lambda z: z[-1],
        np.append(even, norms(even).max()),
        jac=lambda z: 1 - in_weights,
        bounds=[(0, 1)] * ROWS + [(0, None)],
        constraints=[
            {"type": "ineq", "fun": lambda z: z[-1] - norms(z[:-1]), "jac": slopes},
            {"type": "eq", "fun": lambda z: z @ in_weights - 1, "jac": lambda z: in_weights},
        ],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    weights = found.x[:-1].clip(0)
    return norms(weights / weights.sum()).max()


def main():
    """Print a row per network."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--step-share", type=float, default=1.0)
    parser.add_argument("--init-scale", type=float, default=0.1)
    options = parser.parse_args()
    shares, groups, falls = {}, {}, {}
    n_steps = round(SETTINGS["n_steps"] / options.step_share)
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        X, y = problem(seed)
        best = best_margin(X, y)
        svm = LinearSVC(C=1e4, loss="hinge", fit_intercept=False, max_iter=200_000, random_state=0).fit(X, y).coef_[0]
        ends = {"support vector machine": svm}
        for name, (method, own, power) in NETWORKS.items():
            step = options.step_share * own["step_size"]
            more = {**SETTINGS, **own, "step_size": step, "n_steps": n_steps}
            path = method(X, y, SIZE, init_scale=options.init_scale, **more)
            smoothed = margins(X, y, SIZE, path.w, power=power).smoothed
            falls.setdefault(name, []).append(int((np.diff(smoothed[smoothed > 0]) < 0).sum()))
            ends[name] = path.w[-1]
        for name, w in ends.items():
            norms = np.linalg.norm(w.reshape(GROUPS, SIZE), axis=1)
            shares.setdefault(name, []).append(margins(X, y, SIZE, w).margin / best)
            groups.setdefault(name, []).append(int((norms > 0.01 * norms.max()).sum()))
    print("| network | least | median | largest | groups (median) | data sets with a fall |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in [*NETWORKS, "support vector machine"]:
        low, middle, high = np.quantile(shares[name], [0, 0.5, 1])
        fell = f"{np.count_nonzero(falls[name])} of {options.seeds}" if name in falls else "-"
        print(f"| {name} | {low:.3f} | {middle:.3f} | {high:.3f} | {np.median(groups[name]):g} | {fell} |")


if __name__ == "__main__":
    main()
