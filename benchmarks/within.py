"""Selection within groups beside a sparse-group lasso: errors where some or all columns of a group matter.

Rows are normal, columns of a group correlated or not; a share of the columns of three groups is active. The
sparse-group lasso is fitted by accelerated proximal gradient on a grid of two parameters, chosen by five folds. Errors
are those of the noise-free response on new rows, relative to its variance; the table has geometric means over problems.

    python benchmarks/within.py --seeds 3
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from covey import GroupSparseRegressor

Array = NDArray[np.float64]

# rows, groups, columns per group
SHAPES = ((200, 20, 20), (150, 50, 10))
SHARES, NOISES, CORRELATIONS = (0.1, 0.3, 0.5, 1.0), (0.3, 1.0), (0.0, 0.4)
N_ACTIVE, N_NEW, N_FOLDS = 3, 4000, 5
MIXES, N_PENALTIES, DEPTH = (0.05, 0.5, 0.95), 40, 2.5
MOST_STEPS, TOLERANCE = 400, 1e-4


def problem(
    n: int, n_groups: int, size: int, share: float, noise: float, correlation: float, seed: int
) -> tuple[Array, Array, Array, Array]:
    """Rows and their response, new rows and their noise-free response."""
    rng = np.random.default_rng(seed)

    def draw(n_rows: int) -> Array:
        single = rng.standard_normal((n_rows, n_groups * size))
        common = np.repeat(rng.standard_normal((n_rows, n_groups)), size, axis=1)
        return np.sqrt(1 - correlation) * single + np.sqrt(correlation) * common

    w = np.zeros(n_groups * size)
    for group in range(N_ACTIVE):
        k = max(1, round(share * size))
        columns = group * size + rng.choice(size, k, replace=False)
        w[columns] = rng.choice([-1, 1], k) * rng.uniform(0.5, 1.5, k)
    X, new = draw(n), draw(N_NEW)
    signal = X @ w
    return X, signal + noise * signal.std() * rng.standard_normal(n), new, new @ w


def sparse_group_path(X: Array, y: Array, size: int, mix: float, penalties: Array) -> Iterator[tuple[Array, float]]:
    """Coefficients and intercepts for decreasing penalties, the share `mix` of them on single columns."""
    means, level, n = X.mean(axis=0), float(y.mean()), len(y)
    X, y = X - means, y - level
    K, c, L = X.T @ X / n, X.T @ y / n, np.linalg.norm(X, 2) ** 2 / n
    w = np.zeros(X.shape[1])
    for penalty in penalties:
        v, t = w.copy(), 1.0
        for _ in range(MOST_STEPS):
            z = v - (K @ v - c) / L
            z = (np.sign(z) * np.maximum(np.abs(z) - penalty * mix / L, 0)).reshape(-1, size)
            norms = np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-300)
            after = (z * np.maximum(0, 1 - penalty * (1 - mix) * np.sqrt(size) / L / norms)).ravel()
            step, following = after - w, (1 + np.sqrt(1 + 4 * t * t)) / 2
            v = after + (t - 1) / following * step
            if (v - after) @ step < 0:  # start the acceleration again
                v, following = after.copy(), 1.0
            w, t = after, following
            if np.abs(step).max() < TOLERANCE * max(np.abs(w).max(), 1e-12):
                break
        yield w.copy(), level - float(means @ w)


def largest_penalty(c: Array, size: int, mix: float) -> float:
    """The least penalty, up to rounding, at which all coefficients are zero."""
    low, high = 0.0, float(np.abs(c).max()) / mix
    for _ in range(50):
        middle = (low + high) / 2
        left = np.maximum(np.abs(c).reshape(-1, size) - middle * mix, 0)
        is_zero = (np.linalg.norm(left, axis=1) <= middle * (1 - mix) * np.sqrt(size)).all()
        low, high = (low, middle) if is_zero else (middle, high)
    return high


def sparse_group_lasso(X: Array, y: Array, size: int) -> Callable[[Array], Array]:
    """The prediction of a sparse-group lasso whose mix and penalty are chosen by five folds."""
    means, scales = X.mean(axis=0), X.std(axis=0)
    Z, fold = (X - means) / scales, np.random.default_rng(0).permutation(len(y)) % N_FOLDS
    best: tuple[float, float, Array] = (np.inf, 0.0, np.zeros(0))
    for mix in MIXES:
        penalties, errors = (
            largest_penalty(Z.T @ (y - y.mean()) / len(y), size, mix) * np.logspace(0, -DEPTH, N_PENALTIES),
            np.zeros(N_PENALTIES),
        )
        for k in range(N_FOLDS):
            path = sparse_group_path(Z[fold != k], y[fold != k], size, mix, penalties)
            for i, (w, intercept) in enumerate(path):
                errors[i] += ((y[fold == k] - Z[fold == k] @ w - intercept) ** 2).sum()
        at = int(errors.argmin())
        best = min(best, (float(errors[at]), mix, penalties[: at + 1]), key=lambda one: one[0])
    *_, (w, intercept) = sparse_group_path(Z, y, size, best[1], best[2])
    return lambda new: (new - means) / scales @ w + intercept


def main() -> None:
    """Print a line per share and noise."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=1000)
    options = parser.parse_args()
    print("share  noise  sparse-group lasso  groups  within  within/lasso  within/groups  time within/groups")
    for share, noise in product(SHARES, NOISES):
        logs, seconds = [], np.zeros(2)
        for shape, correlation, seed in product(SHAPES, CORRELATIONS, range(options.seeds)):
            X, y, new, signal = problem(*shape, share, noise, correlation, options.first + seed)
            predictions = [sparse_group_lasso(X, y, shape[2])(new)]
            for i, within in enumerate((None, "columns")):
                begin = time.process_time()
                model = GroupSparseRegressor(groups=shape[2], within=within).fit(X, y)
                seconds[i] += time.process_time() - begin
                predictions.append(model.predict(new))
            logs.append([np.log(np.mean((one - signal) ** 2) / signal.var()) for one in predictions])
        lasso, groups, within = np.exp(np.mean(logs, axis=0))
        print(
            f"{share:5g}  {noise:5g}  {lasso:18.4f}  {groups:6.4f}  {within:6.4f}  {within / lasso:12.2f}  "
            f"{within / groups:13.2f}  {seconds[1] / seconds[0]:18.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
