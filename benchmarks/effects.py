"""Effects: how often 95% intervals hold with many possible confounders, beside simpler ways.

500 rows and 200 or 1000 controls with an autoregression of 0.5. In "decaying", control j has an effect proportional to
1/j^2 on both the treatment and the response; in "sparse", eight controls have an effect on the treatment and eight on
the response, four of them the same, and the noise of the response grows with the treatment. Controls explain half of
the treatment's variance. The effect is 0.5; for two classes it is a log odds ratio, for counts a log ratio of means,
for survival times (a third of them censored) a log hazard ratio, and clusters of five rows share a part of the
treatment and of the noise in "clusters". Beside stand a default fit with the treatment always in, with ordinary
standard errors of a refit on what it selects, and a regression on all controls where there are fewer than rows.
Settings were decided on seeds below 2000; results are reported on seeds from 2000 on:

    OMP_NUM_THREADS=1 PYTHONPATH=src python benchmarks/effects.py --first-seed 2000
    ... --quick      5 data sets of each kind
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import scipy.linalg  # noqa: F401 - with a BLAS of its own, whose threads can only be limited once it is loaded
from scipy import stats
from threadpoolctl import threadpool_limits

N, EFFECT = 500, 0.5
KINDS = ("decaying", "sparse", "clusters", "binomial", "poisson", "cox")


def draw(kind: str, p: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """X, whose first column is the treatment, y, and the labels of clusters if there are any."""
    rng = np.random.default_rng([seed, p, *kind.encode()])
    C = rng.standard_normal((N, p))
    for j in range(1, p):
        C[:, j] = 0.5 * C[:, j - 1] + np.sqrt(0.75) * C[:, j]
    g, b = np.zeros(p), np.zeros(p)
    if kind == "decaying":
        g = b = 1 / np.arange(1, p + 1) ** 2
    else:
        b[:8], g[4:12] = 1, 1
    on_treatment, on_response = (part / part.std() for part in (C @ g, C @ b))
    noise, other, labels = rng.standard_normal(N), rng.standard_normal(N), None
    if kind == "clusters":
        labels = np.arange(N) // 5
        shared = rng.standard_normal((2, N // 5))[:, labels]
        noise, other = (np.sqrt(0.5) * (one + part) for one, part in zip((noise, other), shared, strict=True))
    d = on_treatment + other
    eta = EFFECT * d + on_response
    if kind == "binomial":
        y = (rng.random(N) < 1 / (1 + np.exp(-eta))).astype(float)
    elif kind == "poisson":
        y = rng.poisson(np.exp(eta - 1)).astype(float)
    elif kind == "cox":
        death, lost = rng.exponential(np.exp(-eta)), rng.exponential(3.0, N)
        y = np.column_stack([np.minimum(death, lost), death <= lost])
    else:
        y = eta + noise * (np.sqrt((1 + d**2) / (1 + np.mean(d**2))) if kind == "sparse" else 1.0)
    return np.column_stack([d, C]), y, labels


def ordinary(X: np.ndarray, y: np.ndarray, columns: list[int]) -> tuple[float, float, float]:
    """The coefficient of the first column beside some others, with its ordinary 95% interval."""
    A = np.column_stack([X[:, 0], np.ones(len(X)), X[:, columns]])
    Q, R = np.linalg.qr(A)
    coef = np.linalg.solve(R, Q.T @ y)
    left = len(y) - A.shape[1]
    error = np.sqrt(np.sum((y - A @ coef) ** 2) / left) * np.linalg.norm(np.linalg.inv(R)[0])
    margin = stats.t.ppf(0.975, left) * error
    return coef[0], coef[0] - margin, coef[0] + margin


def run(kind: str, p: int, seeds: range, simpler: bool) -> None:
    from covey import GroupSparseRegressor
    from covey.evidence import effect

    found: dict[str, list[tuple[float, float, float]]] = {"effect": []}
    start = time.process_time()
    for seed in seeds:
        X, y, labels = draw(kind, p, seed)
        loss = kind if kind in ("binomial", "poisson", "cox") else "squared"
        one = effect(X, y, of=0, loss=loss, clusters=labels)
        found["effect"].append((one.estimates[0], *one.intervals[0]))
    seconds = (time.process_time() - start) / len(seeds)
    for seed in seeds if simpler and kind in ("decaying", "sparse") else ():
        X, y, _ = draw(kind, p, seed)
        model = GroupSparseRegressor(always=[0]).fit(X, y)
        chosen = [name for name in model.selected_groups_ if name != 0]
        found.setdefault("refit of a default fit", []).append(ordinary(X, y, chosen))
        if p < N:
            found.setdefault("all controls", []).append(ordinary(X, y, list(range(1, p + 1))))
    for name, values in found.items():
        estimates, low, high = np.array(values).T
        holds = np.mean((low <= EFFECT) & (high >= EFFECT))
        print(
            f"| {kind} | {p} | {name} | {len(seeds)} | {holds:.1%} +- {np.sqrt(holds * (1 - holds) / len(seeds)):.1%} "
            f"| {np.mean(estimates) - EFFECT:+.3f} | {np.std(estimates):.3f} | {np.mean(high - low):.3f} "
            f"| {f'{seconds:.2f}' if name == 'effect' else ''} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--controls", nargs="+", type=int, default=[200, 1000])
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--simpler", action="store_true", help="simpler ways beside it")
    parser.add_argument("--quick", action="store_true", help="5 data sets of each kind")
    args = parser.parse_args()
    print("| kind | controls | method | data sets | intervals hold | bias | spread | width | seconds |")
    print("| --- " * 9 + "|", flush=True)
    repeats = 5 if args.quick else args.repeats
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in args.kinds:
            for p in args.controls:
                run(kind, p, range(args.first_seed, args.first_seed + repeats), args.simpler)


if __name__ == "__main__":
    main()
