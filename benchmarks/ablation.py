"""What each number of the search is worth: the error with it removed, halved or doubled, relative to the default.

Simulated problems of eight kinds for squared, binomial and Poisson loss, and the real data sets of `real.py`, on seeds
and splits that no other benchmark uses (900 and later). The error of simulated problems is the excess of the deviance
on 2000 fresh rows over the true model's, that of real data the mean square on test rows. A row gives geometric means
over the problems of each loss and over the data sets, the worst of them, the share of fits that change at all, and the
processor time. A number whose row stays within half a percent everywhere does not earn its place.

    OMP_NUM_THREADS=1 PYTHONPATH=src .venv-bench/bin/python benchmarks/ablation.py --seeds 4
    ... --fields ridges rounds --changes removed           some of them
    ... --rule predict --fields temperature settled        those that only matter for a mean of models
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache, partial
from time import process_time
from typing import Any

import numpy as np

import covey.estimators.base
from covey import Groups, GroupSparseClassifier, GroupSparseRegressor
from covey.search.select import select
from covey.search.settings import SETTINGS, Settings
from real import ALL, make_problem, sizes

FIRST_SEED, N_TEST = 900, 2000

# rows, columns, sizes of groups, active groups (0: all), signal-to-noise ratio, correlation of neighbours
KINDS = [
    (120, 60, (3,), 3, 1.0, 0.0),
    (150, 100, (5,), 4, 3.0, 0.7),
    (200, 60, (3,), 6, 0.5, 0.5),
    (100, 300, (4,), 3, 3.0, 0.0),
    (300, 80, (2,), 10, 1.0, 0.8),
    (80, 40, (2,), 0, 1.0, 0.0),
    (150, 120, (1, 2, 5, 10), 4, 2.0, 0.3),
    (250, 600, (5,), 8, 10.0, 0.5),
]
LOSSES = ("squared", "binomial", "poisson")

# what leaves a kind of candidates out, or a step of the search
REMOVED: dict[str, dict[str, Any]] = {
    "first_groups": {"first_groups": 1.0},
    "ridge_sizes": {"ridge_sizes": 1.01},
    "least_weight": {"least_weight": 0.0},
    "ridges": {"ridges": ()},
    "penalties": {"penalties": ()},
    "reweightings": {"reweightings": 0},
    "rounds": {"rounds": 1},
    "strictness": {"strictness": 0.0},
    "cost": {"cost": np.inf},
    "contention": {"contention": 1e9},
    "settled": {"settled": 1e9},
    "alike": {"alike": 1e9},
    "noisy": {"noisy": 0.0},
    "dense": {"dense": 0.0},
    "hopeless": {"hopeless": np.inf},
}


def problem(kind: int, loss: str, seed: int) -> tuple[Any, ...]:
    """Training rows, groups, and fresh rows with their linear predictor."""
    n, p, sizes, active, snr, rho = KINDS[kind]
    rng = np.random.default_rng([FIRST_SEED + seed, kind, LOSSES.index(loss)])
    X = rng.standard_normal((n + N_TEST, p))
    for j in range(1, p) if rho else ():
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho * rho) * X[:, j]
    labels, l = [], 0
    while len(labels) < p:
        labels += [l] * sizes[l % len(sizes)]
        l += 1
    labels = np.array(labels[:p])
    chosen = rng.choice(labels.max() + 1, active or labels.max() + 1, replace=False)
    w = np.where(np.isin(labels, chosen), rng.standard_normal(p), 0.0)
    eta = X @ w
    eta /= eta.std()
    if loss == "squared":
        y = eta + rng.standard_normal(len(eta)) / np.sqrt(snr)
    elif loss == "binomial":
        eta = 2 * np.sqrt(snr) * eta
        y = (rng.random(len(eta)) < 1 / (1 + np.exp(-eta))).astype(int)
    else:
        eta = 0.5 * np.sqrt(min(snr, 3.0)) * eta
        y = rng.poisson(np.exp(eta)).astype(float)
    return X, y, eta, labels, n


real_problem = cache(make_problem)


def real_error(name: str, seed: int, rule: str) -> float:
    """The mean square on the test rows of a data set."""
    problem = real_problem(name, FIRST_SEED + seed)
    model = GroupSparseRegressor(Groups.from_labels(problem.labels), rule=rule).fit(problem.X, problem.y)
    return float(problem.error(model.predict(problem.X_test)[:, None]))


def error(loss: str, data: tuple[Any, ...], rule: str) -> float:
    """The excess deviance per fresh row of a fit."""
    X, y, eta, labels, n = data
    if loss == "binomial":
        model = GroupSparseClassifier(groups=labels.tolist(), rule=rule).fit(X[:n], y[:n])
        found, true = model.decision_function(X[n:]), eta[n:]
        p = 1 / (1 + np.exp(-true))
        return float(2 * np.mean(np.logaddexp(0, found) - p * found - np.logaddexp(0, true) + p * true))
    model = GroupSparseRegressor(groups=labels.tolist(), loss=loss, rule=rule).fit(X[:n], y[:n])
    if loss == "squared":
        return float(np.mean((model.predict(X[n:]) - eta[n:]) ** 2))
    found, mean = np.log(model.predict(X[n:])), np.exp(eta[n:])
    return float(2 * np.mean(np.exp(found) - mean * found - mean + mean * eta[n:]))


def errors(settings: Settings, rule: str, n_seeds: int, names: list[str]) -> tuple[list[np.ndarray], float]:
    """Errors of the kinds of every loss and of the data sets, (n_problems, n_seeds) each, and processor seconds."""
    covey.estimators.base.select = partial(select, settings=settings)
    start, seeds = process_time(), range(n_seeds)
    try:
        simulated = [
            np.array([[error(loss, problem(k, loss, s), rule) for s in seeds] for k in range(len(KINDS))])
            for loss in LOSSES
        ]
        return [*simulated, np.array([[real_error(name, s, rule) for s in seeds] for name in names])], (
            process_time() - start
        )
    finally:
        covey.estimators.base.select = select


def variants(name: str) -> Iterator[tuple[str, Settings]]:
    """A setting removed, halved and doubled, as far as that makes sense."""
    value = getattr(SETTINGS, name)
    if name in REMOVED:
        yield "removed", replace(SETTINGS, **REMOVED[name])
    for word, factor in (("halved", 0.5), ("doubled", 2.0)):
        if isinstance(value, tuple):
            scaled: Any = tuple(type(one)(one * factor) for one in value)
        else:
            scaled = max(1, int(value * factor)) if isinstance(value, int) else value * factor
        if name != "first_penalties" and scaled != value:  # positions in another list cannot be scaled
            yield word, replace(SETTINGS, **{name: scaled})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--fields", nargs="*", default=[field.name for field in fields(Settings)])
    parser.add_argument("--changes", nargs="*", default=["removed", "halved", "doubled"])
    parser.add_argument("--rule", choices=["select", "predict"], default="select")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names = list(sizes(list(ALL)))
    base, base_time = errors(SETTINGS, options.rule, options.seeds, names)
    print(
        f"{options.seeds} seeds from {FIRST_SEED} on, {len(KINDS)} kinds, {len(names)} data sets; rule {options.rule}; "
        "error and time relative to the default\n"
    )
    print("| setting | change | " + " | ".join(LOSSES) + " | real data | worst | fits that change | time |")
    print("| --- | --- | " + "--- | " * (len(LOSSES) + 4), flush=True)
    for name in options.fields:
        for word, settings in variants(name):
            if word not in options.changes:
                continue
            found, seconds = errors(settings, options.rule, options.seeds, names)
            ratios = [np.log(one.mean(axis=1) / other.mean(axis=1)) for one, other in zip(found, base, strict=True)]
            means = " | ".join(f"{np.exp(ratio.mean()):.3f}" for ratio in ratios)
            changed = 1 - np.mean(np.isclose(np.concatenate(found), np.concatenate(base), rtol=1e-6))
            worst = np.exp(max(ratio.max() for ratio in ratios))
            print(
                f"| {name} | {word} | {means} | {worst:.2f} | {changed:.0%} | {seconds / base_time:.2f} |", flush=True
            )


if __name__ == "__main__":
    main()
