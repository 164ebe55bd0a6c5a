"""The limit path written down directly: plain numpy, refits by lstsq, nothing stored between events."""

from __future__ import annotations

import numpy as np

from covey.preprocess.working import read_weights
from covey.search.settings import SETTINGS

__all__ = ["mixed_problem", "refit", "simulate", "working_bases"]


def working_bases(X, lists, q, intercept, standardize="group"):
    """The working columns of every group, as the path uses them."""
    A = X - q @ X if intercept else X.copy()
    spread = np.sqrt(q @ A**2)
    spread[spread <= 1e-13 * np.abs(X).max(axis=0, initial=0)] = 0.0
    bases = []
    for members in lists:
        live = [j for j in members if spread[j] > 0]
        B = A[:, live]
        if standardize == "group":
            U, s, _ = np.linalg.svd(np.sqrt(q)[:, None] * B / spread[live], full_matrices=False)
            kept = U[:, s > 1e-7 * s.max(initial=0)]
            bases.append(np.divide(kept, np.sqrt(q)[:, None], out=np.zeros_like(kept), where=q[:, None] > 0))
        elif standardize == "column":
            bases.append(B / spread[live])
        elif standardize == "block":
            bases.append(B / np.sqrt(np.mean(spread[live] ** 2)) if live else B)
        else:
            bases.append(B / spread.max())
    return bases


def refit(X, y, columns, q, intercept):
    """Least squares on some columns: coefficients on all of them (the least ones), and the intercept."""
    columns = list(columns)
    A = np.column_stack([X[:, columns], np.ones(len(y))]) if intercept else X[:, columns]
    root = np.sqrt(q)
    found = np.linalg.lstsq(root[:, None] * A, root * y, rcond=1e-10)[0] if A.shape[1] else np.zeros(0)
    coef = np.zeros(X.shape[1])
    np.add.at(coef, columns, found[: len(columns)])
    return coef, float(found[-1]) if intercept else 0.0


def simulate(
    X, y, lists, *, group_weights="noise", sample_weight=None, intercept=True, standardize="group", awake=(), most=None
):
    """Events as (groups, times) with the fitted values after each, until nothing is left to explain."""
    n = len(y)
    q = np.ones(n) / n if sample_weight is None else np.asarray(sample_weight, dtype=float) / np.sum(sample_weight)
    bases = working_bases(X, lists, q, intercept, standardize)
    c = read_weights(group_weights, np.array([B.shape[1] for B in bases]), SETTINGS.first_groups)
    level = q @ y if intercept else 0.0
    unit = np.sqrt(q @ (y - level) ** 2) or 1.0
    groups, times, sums, time = list(awake), [0.0] * len(awake), np.zeros(len(lists)), 0.0
    first, fits = None, []
    while True:
        coef, constant = refit(X, y, [j for l in groups for j in lists[l]], q, intercept)
        fits.append(X @ coef + constant)
        residual = (y - fits[-1]) / unit
        rate = np.array([np.linalg.norm(B.T @ (q * residual)) for B in bases]) / c
        rate[groups] = 0.0
        first = rate.max(initial=0.0) if first is None else first
        if (most is not None and len(groups) >= most) or not (rate > 1e-7 * first).any():
            return groups, times, np.array(fits)
        wait = np.where(rate > 1e-7 * first, np.maximum(1 - sums, 0) / np.where(rate > 0, rate, 1.0), np.inf)
        group = int(np.argmax(wait <= wait.min() * (1 + 1e-10)))
        time += wait[group]
        sums += wait[group] * rate
        groups.append(group)
        times.append(time)


def mixed_problem(n=60, seed=0, noise=0.3):
    """Correlated groups of sizes 1 to 5, one of them rank-deficient, one constant column; three groups of signal."""
    rng = np.random.default_rng(seed)
    sizes = [3, 1, 4, 2, 5, 1, 3, 2, 1, 4]
    ends = np.cumsum(sizes)
    lists = [list(range(end - size, end)) for size, end in zip(sizes, ends, strict=True)]
    p = int(ends[-1])
    X = rng.standard_normal((n, p)) * rng.uniform(0.5, 2, p) + 0.7 * rng.standard_normal((n, 1)) + rng.uniform(-1, 1, p)
    X[:, lists[4][4]] = X[:, lists[4][0]] - 2 * X[:, lists[4][1]]
    X[:, lists[6][1]] = 3.0
    y = 2.0 + noise * rng.standard_normal(n)
    for l, strength in ((4, 3.0), (1, 2.0), (6, 1.0)):
        y += strength * X[:, lists[l]] @ rng.standard_normal(len(lists[l]))
    return X, y, lists
