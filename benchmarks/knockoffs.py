"""Group knockoffs: false discoveries and power of the wake-up time, beside the group lasso's entry on the same copies.

Designs of 300 rows and 60 groups, 15 of them with an effect and the signal twice as strong as the noise:
independent columns, an autoregression of 0.7 over all columns (within and between groups), three common factors, and
groups of 1, 2, 4 or 8 columns; the others have groups of 4. Two designs have 200 rows, fewer than their 240 columns,
and a signal ten times as strong as the noise: the covariance is a Wishart matrix (many weak correlations), or columns
have Student's t distribution with three degrees of freedom. Both statistics see the same copies. The last column
counts the data sets with a remark on lost correlations or heavy tails. Without adelie the group lasso is left
out. With `--draws 3` the
wake-up time has more draws too, put together by e-values. Settings are decided on seeds below 1000; results are
reported on seeds from 1000 on. On one core, ten minutes:

    OMP_NUM_THREADS=1 PYTHONPATH=src .venv-bench/bin/python benchmarks/knockoffs.py --first-seed 1000
    ... --draws 3    several draws too
    ... --quick      5 data sets of each design
"""

from __future__ import annotations

import argparse
import importlib.util
import warnings
from collections.abc import Iterator

import numpy as np
import scipy.linalg  # noqa: F401 - with a BLAS of its own, whose threads can only be limited once it is loaded
from threadpoolctl import threadpool_limits

N, GROUPS, ACTIVE, SNR = 300, 60, 15, 2.0
DESIGNS = ("independent", "AR(0.7)", "factors", "unequal sizes", "weak, dense", "heavy tails")
FEWER_ROWS, STRONG_SNR = 200, 10.0
TARGETS = (0.1, 0.2)
# Of the group lasso's path: fine enough that few groups enter together.
LAMBDAS, LEAST_LAMBDA = 100, 0.1


def draw(design: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, set[int]]:
    """X, y, the group of each column, and the groups with an effect."""
    rng = np.random.default_rng([seed, *design.encode()])
    sizes = rng.choice([1, 2, 4, 8], GROUPS) if design == "unequal sizes" else np.full(GROUPS, 4)
    p, labels = int(sizes.sum()), np.repeat(np.arange(GROUPS), sizes)
    few = design in ("weak, dense", "heavy tails")
    n, snr = (FEWER_ROWS, STRONG_SNR) if few else (N, SNR)
    X = rng.standard_normal((n, p))
    if design == "AR(0.7)":
        for j in range(1, p):
            X[:, j] = 0.7 * X[:, j - 1] + np.sqrt(1 - 0.7**2) * X[:, j]
    elif design == "factors":
        X += rng.standard_normal((n, 3)) @ rng.standard_normal((3, p))
    elif design == "weak, dense":
        wishart = np.cov(rng.standard_normal((p, p + 1)))
        X = X @ np.linalg.cholesky(wishart / np.sqrt(np.outer(np.diag(wishart), np.diag(wishart)))).T
    elif design == "heavy tails":
        X = rng.standard_t(3, (n, p))
    active = rng.choice(GROUPS, ACTIVE, replace=False)
    parts = [X[:, labels == l] @ rng.standard_normal(sizes[l]) for l in active]
    signal = sum(part / part.std() for part in parts)
    y = np.sqrt(snr) * signal / signal.std() + rng.standard_normal(n)
    return X, y, labels, set(active.tolist())


def lasso_entries(Z: np.ndarray, copies: np.ndarray, ranks: np.ndarray, y: np.ndarray) -> np.ndarray:
    """W of the group lasso: the penalty at which the first of group and copy enters, negative for the copy."""
    import adelie as ad

    from covey.evidence.statistic import signed_maximum

    both = np.concatenate([ranks, ranks])
    starts = np.concatenate([[0], np.cumsum(both)[:-1]])
    M = np.hstack([Z, copies])
    M -= M.mean(axis=0)
    for a, r in zip(starts, both, strict=True):  # orthonormal within groups, as the limit path has them
        M[:, a : a + r] = np.linalg.qr(M[:, a : a + r])[0] * np.sqrt(len(M))
    state = ad.grpnet(
        X=np.asfortranarray(M), glm=ad.glm.gaussian(y=y - y.mean()), groups=starts, penalty=np.sqrt(both.astype(float)),
        lmda_path_size=LAMBDAS, min_ratio=LEAST_LAMBDA, early_exit=False, progress_bar=False, intercept=False,
    )  # fmt: skip
    entered = np.add.reduceat(state.betas.toarray() ** 2, starts, axis=1) > 0
    lambdas = np.asarray(state.lmdas)[: len(entered)]
    first = np.where(entered.any(axis=0), lambdas[np.argmax(entered, axis=0)], 0.0)
    return signed_maximum(first[: ranks.size], first[ranks.size :])


def selections(draws: np.ndarray, target: float) -> Iterator[tuple[str, np.ndarray]]:
    """What one draw and all of them select."""
    from covey.evidence.statistic import LEVEL, e_values, filter_threshold, largest_set

    yield "1 draw", np.flatnonzero(draws[0] >= filter_threshold(draws[0], target))
    if len(draws) == 1:
        return
    e = e_values(draws, LEVEL * target)
    yield f"{len(draws)} draws", np.flatnonzero(e >= largest_set(e, target))


def run(design: str, seeds: range, n_draws: int) -> None:
    from covey import Groups
    from covey.evidence import knockoffs
    from covey.evidence.copies import Copier, read_columns
    from covey.evidence.reading import read_problem

    rates: dict[tuple[float, str, str], list[tuple[float, float]]] = {}
    warned = 0
    for seed in seeds:
        X, y, labels, active = draw(design, seed)
        groups = Groups.from_labels(labels)
        found = knockoffs(X, y, groups, n_draws=n_draws, kind="gaussian", random_state=seed)
        columns, _ = read_columns(read_problem(X, y, groups, [], "squared", None, None, fit_intercept=True))
        copier = Copier(columns, fixed=False)
        (rng,) = np.random.default_rng(seed).spawn(1)
        warned += any("lacks some of them" in remark or "heavier tails" in remark for remark in found.remarks)
        both = {"wake-up time": found.draws}
        if importlib.util.find_spec("adelie"):
            both["group lasso entry"] = lasso_entries(columns.Z, copier.draw(rng), columns.ranks, y)[None]
        for statistic, draws in both.items():
            for target in TARGETS:
                for how, chosen in selections(draws, target):
                    false = len(set(chosen.tolist()) - active) / max(len(chosen), 1)
                    power = len(set(chosen.tolist()) & active) / ACTIVE
                    rates.setdefault((target, how, statistic), []).append((false, power))
    for (target, how, statistic), pairs in sorted(rates.items()):
        (false, power), errors = np.mean(pairs, axis=0), np.std(pairs, axis=0) / np.sqrt(len(pairs))
        print(
            f"| {design} | {target:g} | {how} | {statistic} | {false:.3f} +- {errors[0]:.3f} | {power:.3f} +- "
            f"{errors[1]:.3f} | {warned / len(seeds):.0%} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--designs", nargs="+", default=list(DESIGNS), choices=list(DESIGNS))
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="5 data sets of each design")
    args = parser.parse_args()
    print("| design | target | copies | statistic | false discovery rate | power | remark |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for design in args.designs:
            run(design, range(args.first_seed, args.first_seed + (5 if args.quick else args.repeats)), args.draws)


if __name__ == "__main__":
    main()
