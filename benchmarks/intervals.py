"""Prediction intervals of 90%: how many test responses they contain, how wide they are, and what they cost.

The data sets of `real.py`, split as there. `covey` is one fit, whose intervals come from the models of its own folds;
`covey predict` has rule="predict"; `MAPIE` is CV+ by MAPIE around the same estimator on the same folds, which fits it
again without each of them. `covey power` is what `covey` would be with residuals divided by a power of the distance of
the prediction from the least one, fitted to the held-out rows: widths that depend on the prediction. `covey one recipe`
has the recipe of the final model in every fold, and not the one that the other folds choose. A coverage is the
share of test rows in their interval; a width is the mean over test rows. A second table has simulated responses of all
kinds, 200 rows to fit and 1000 to test, on the same seeds as `covey`. Decided on splits 0 to 7;
reported on splits 100 to 119, and on 100 and 101 for MAPIE, which takes six times as long, and `covey predict`.

    export OMP_NUM_THREADS=1 PYTHONPATH=src
    run=".venv-bench/bin/python benchmarks/intervals.py --keep intervals.jsonl"
    $run --seeds $(seq 100 119) --methods covey simulated
    $run --seeds 100 101 --methods MAPIE "covey predict"
    $run --seeds $(seq 100 119) --write benchmarks/results/intervals.md     prints what is kept

With `--keep` a run goes on where it was stopped. `pip install mapie` into .venv-bench.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg  # noqa: F401 - with a BLAS of its own, whose threads can only be limited once it is loaded
from threadpoolctl import threadpool_limits

from real import ALL, sizes, split_rows
from suite.store import Store

LEVEL = 0.9
TITLE = "<!-- What benchmarks/intervals.py wrote; its docstring says how to run it and which splits decided. -->"
Bounds = tuple[np.ndarray, np.ndarray]


def estimator(labels: np.ndarray, **settings: Any) -> Any:
    from covey import Groups, GroupSparseRegressor

    return GroupSparseRegressor(Groups.from_labels(labels), **settings)


def covey(X: np.ndarray, y: np.ndarray, labels: np.ndarray, X_test: np.ndarray, **settings: Any) -> Bounds:
    return estimator(labels, **settings).fit(X, y).predict(X_test, interval=LEVEL)


def covey_predict(X: np.ndarray, y: np.ndarray, labels: np.ndarray, X_test: np.ndarray) -> Bounds:
    return covey(X, y, labels, X_test, rule="predict")


def covey_one_recipe(X: np.ndarray, y: np.ndarray, labels: np.ndarray, X_test: np.ndarray) -> Bounds:
    """With the recipe of the final model in every fold, which the fold's rows have helped to choose."""
    from covey.search.rules import Rule

    honest = Rule.without_fold
    Rule.without_fold = lambda self: [self.verdict] * (len(self.board.scores) // self.found.n_deals)
    try:
        return covey(X, y, labels, X_test)
    finally:
        Rule.without_fold = honest


def folds(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The folds that covey deals first."""
    from covey.designs import as_design
    from covey.selection import Folds

    return Folds(5).parts(as_design(X), y, np.ones(len(y))).labels


def mapie(X: np.ndarray, y: np.ndarray, labels: np.ndarray, X_test: np.ndarray) -> Bounds:
    from mapie.regression import CrossConformalRegressor
    from sklearn.model_selection import PredefinedSplit

    wrapped = CrossConformalRegressor(estimator(labels), LEVEL, cv=PredefinedSplit(folds(X, y)))
    _, bounds = wrapped.fit_conformalize(X, y).predict_interval(X_test)
    return bounds[:, 0, 0], bounds[:, 1, 0]


def covey_power(X: np.ndarray, y: np.ndarray, labels: np.ndarray, X_test: np.ndarray) -> Bounds:
    """CV+ with residuals in units of ``exp(a + b log(distance))``, fitted to held-out rows by least squares."""
    from covey.designs import as_design

    model, fold = estimator(labels).fit(X, y), folds(X, y)
    held_out, rows = model.held_out_.predictors(as_design(X))[:, :, 0], np.arange(len(y))
    mean, new = held_out[rows, fold], model.held_out_.predictors(as_design(X_test))[:, :, 0]
    least, spread = mean.min(), np.std(mean) or 1.0

    def distance(values: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(values - least, 0) / spread + 0.1)

    slope = np.polyfit(distance(mean), np.log(np.abs(y - mean) + 1e-3 * np.std(y) + 1e-300), 1)[0]
    scores = np.abs(y - mean) / np.exp(slope * distance(mean))
    ends = np.exp(slope * distance(new))[:, fold] * scores
    n = len(y)
    upper = np.sort(new[:, fold] + ends, axis=1)[:, min(int(np.ceil(LEVEL * (n + 1) - 1e-9)), n) - 1]
    lower = np.sort(new[:, fold] - ends, axis=1)[:, max(int(np.floor((1 - LEVEL) * (n + 1) + 1e-9)), 1) - 1]
    return lower, upper


METHODS = {
    "covey": covey,
    "covey predict": covey_predict,
    "MAPIE": mapie,
    "covey one recipe": covey_one_recipe,
    "covey power": covey_power,
}


def measured(name: str, seed: int, method: str) -> dict[str, float]:
    (X, y, labels), test, fit, _ = split_rows(name, seed)
    start = time.process_time()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        lower, upper = METHODS[method](X[fit], y[fit], labels, X[test])
    inside = (lower <= y[test]) & (y[test] <= upper)
    width, seconds = float(np.mean(upper - lower)), time.process_time() - start
    return {"coverage": float(inside.mean()), "width": width, "rows": len(test), "seconds": seconds}


def simulate(kind: str, seed: int) -> dict[str, float]:
    """Coverage on simulated rows, and the mean size of sets where there are classes."""
    from covey import GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor, survival

    rng = np.random.default_rng([seed, *kind.encode()])
    n, X = 1200, rng.standard_normal((1200, 30))
    eta, fit, test = X[:, :4] @ [0.6, -0.5, 0.5, 0.4], slice(200), slice(200, None)
    if "classes" in kind:
        k = 2 if kind == "two classes" else 5
        classes = np.argmax(X[:, :k] + 0.5 * rng.gumbel(size=(n, k)), axis=1)
        sets = GroupSparseClassifier().fit(X[fit], classes[fit]).predict(X[test], interval=LEVEL)
        return {"coverage": float(sets[np.arange(1000), classes[test]].mean()), "size": float(sets.sum(axis=1).mean())}
    if kind.startswith("survival"):
        death, lost = rng.exponential(np.exp(-eta)), rng.exponential(0.7, n)
        y = survival(np.minimum(death, lost), death <= lost)
        bound = GroupSparseCox().fit(X[fit], y[fit]).predict(X[test], interval=LEVEL)
        return {"coverage": float(np.mean(death[test] >= bound))}
    loss, y = {
        "counts (poisson)": ("poisson", lambda: rng.poisson(np.exp(1 + eta))),
        "overdispersed counts (poisson)": ("poisson", lambda: rng.poisson(rng.gamma(2, np.exp(1 + eta) / 2))),
        "positive numbers (gamma)": ("gamma", lambda: rng.gamma(2, np.exp(eta))),
        "log-normal numbers (gamma)": ("gamma", lambda: np.exp(eta + rng.standard_normal(n))),
        "proportions (binomial)": ("binomial", lambda: rng.binomial(20, 1 / (1 + np.exp(-eta))) / 20),
        "heavy tails (huber)": ("huber", lambda: eta + rng.standard_t(1.5, n)),
        "unequal noise (squared)": ("squared", lambda: eta + np.exp(eta) * rng.standard_normal(n)),
    }[kind]
    y = y()
    lower, upper = GroupSparseRegressor(loss=loss).fit(X[fit], y[fit]).predict(X[test], interval=LEVEL)
    return {"coverage": float(np.mean((lower <= y[test]) & (y[test] <= upper)))}


KINDS = (
    "unequal noise (squared)", "heavy tails (huber)", "counts (poisson)", "overdispersed counts (poisson)",
    "positive numbers (gamma)", "log-normal numbers (gamma)", "proportions (binomial)", "two classes", "five classes",
    "survival, 60% censored",
)  # fmt: skip


def simulated_table(store: Store, seeds: list[int]) -> list[str]:
    lines = ["| simulated responses | seeds | coverage | standard error | classes in a set |", "| --- " * 5 + "|"]
    for kind in KINDS:
        rows = [store.rows["simulated", kind, seed] for seed in seeds if ("simulated", kind, seed) in store.rows]
        if not rows:
            continue
        coverage = np.array([row["coverage"] for row in rows])
        error = coverage.std(ddof=1) / np.sqrt(len(rows)) if len(rows) > 1 else np.nan
        size = f"{np.mean([row['size'] for row in rows]):.2f}" if "size" in rows[0] else ""
        lines.append(f"| {kind} | {len(rows)} | {coverage.mean():.1%} | {error:.1%} | {size} |")
    return lines


def mean_of(store: Store, method: str, name: str, seeds: list[int], measure: str) -> tuple[float, int]:
    """The mean over the seeds that are there, and how many are."""
    found = [store.rows[method, name, seed][measure] for seed in seeds if (method, name, seed) in store.rows]
    return (float(np.mean(found)) if found else np.nan), len(found)


def ratios(store: Store, method: str, other: str, names: list[str], seeds: list[int], measure: str) -> list[float]:
    """The measure of a method to that of another, per data set, on the splits that both have."""
    found = []
    for name in names:
        same = [seed for seed in seeds if (method, name, seed) in store.rows and (other, name, seed) in store.rows]
        if same:
            mine, its = (mean_of(store, one, name, same, measure)[0] for one in (method, other))
            found.append(mine / its if its > 0 else 1.0)
    return found or [np.nan]


def geometric_mean(values: list[float]) -> str:
    return f"{np.exp(np.mean(np.log(values))):.3f}"


def report(store: Store, names: list[str], methods: list[str], seeds: list[int]) -> list[str]:
    """A line per method over all data sets, and a line per data set."""
    lines = [
        "| method | sets | splits | mean coverage | least of a set | sets below 80% | width to MAPIE's | worst | "
        "width to covey's | time to covey's |",
        "| --- " * 10 + "|",
    ]
    shown = [method for method in methods if any(mean_of(store, method, name, seeds, "width")[1] for name in names)]
    for method in shown:
        some = [name for name in names if mean_of(store, method, name, seeds, "width")[1]]
        coverage, counts = np.array([mean_of(store, method, name, seeds, "coverage") for name in some]).T
        width, to_ours = (ratios(store, method, other, some, seeds, "width") for other in ("MAPIE", "covey"))
        seconds = ratios(store, method, "covey", some, seeds, "seconds")
        lines.append(
            f"| {method} | {len(some)} | {counts.min():.0f} to {counts.max():.0f} | {coverage.mean():.1%} | "
            f"{coverage.min():.1%} ({some[int(coverage.argmin())]}) | {(coverage < 0.8).sum()} | "
            f"{geometric_mean(width)} | {max(width):.2f} | {geometric_mean(to_ours)} | {np.median(seconds):.2f} |"
        )
    lines += ["", "| data set | test rows | " + " | ".join(f"{m}: coverage, width" for m in shown) + " |"]
    lines.append("| --- " * (2 + len(shown)) + "|")
    for name in names:
        rows = mean_of(store, "covey", name, seeds, "rows")[0]
        cells = [
            f"{mean_of(store, m, name, seeds, 'coverage')[0]:.1%}, {mean_of(store, m, name, seeds, 'width')[0]:.4g}"
            for m in shown
        ]
        lines.append(f"| {name} | {rows:.0f} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(4)))
    parser.add_argument("--methods", nargs="*", default=[], choices=[*METHODS, "simulated"], help="to run")
    parser.add_argument("--cells", nargs="+", help="only data sets whose name contains one of these")
    parser.add_argument("--keep", type=Path, help="a file of single results to go on from and to add to")
    parser.add_argument("--write", type=Path, help="a file for the tables")
    args = parser.parse_args()
    names = list(sizes([name for name in ALL if not args.cells or any(part in name for part in args.cells)]))
    store = Store(args.keep)
    for seed in args.seeds:
        for method in args.methods:
            for name in KINDS if method == "simulated" else names:
                if (method, name, seed) not in store.rows:
                    found = simulate(name, seed) if method == "simulated" else measured(name, seed, method)
                    store.add(method, name, seed, **found)
    lines = [*report(store, names, list(METHODS), args.seeds), "", *simulated_table(store, args.seeds)]
    print("\n".join(lines))
    if args.write:
        args.write.write_text("\n".join([TITLE, *lines]) + "\n")


if __name__ == "__main__":
    main()
