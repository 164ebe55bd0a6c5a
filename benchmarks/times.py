"""Time of a fit against adelie's on the same folds, one thread, warm; and the cold first fit.

The default fit (five given folds, which are used once, then all rows) is set beside adelie's path of 100 penalties on
the same five folds and on all rows; one hold-out fit beside one path of adelie. Every time is the median of repeats
after a warm-up, and X'y is the time of one product, a unit of cost that any machine has. A table of its own has all
rivals of `rivals.py`, each tuned by the same five folds. On one core:

    OMP_NUM_THREADS=1 PYTHONPATH=src .venv-bench/bin/python benchmarks/times.py
    ... --quick              the small sizes and half of the kinds at a smaller size
    ... --cells AR cold      only tables and problems whose name contains one of these
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg  # noqa: F401 - with a BLAS of its own, whose threads can only be limited once it is loaded
from threadpoolctl import threadpool_limits


@dataclass
class Timed:
    """Training rows in both memory orders, so that nobody pays for a copy, and groups as labels."""

    X: np.ndarray
    y: np.ndarray  # of survival times, two columns: the time, and whether the event was observed
    labels: np.ndarray
    fortran: np.ndarray
    fold_of: np.ndarray
    family: str = "gaussian"


def posed(rng: np.random.Generator, X: np.ndarray, labels: np.ndarray, active: int, snr: float) -> Timed:
    on = rng.permutation(labels.max() + 1)[:active]
    columns = np.flatnonzero(np.isin(labels, on))
    signal = X[:, columns] @ rng.standard_normal(columns.size)
    y = signal + signal.std() / np.sqrt(snr) * rng.standard_normal(len(X))
    return Timed(X, y, labels, np.asfortranarray(X), rng.permutation(len(y)) % 5)


def equal(p: int, size: int) -> np.ndarray:
    return np.repeat(np.arange(p // size), size)


def gaussian(n: int, p: int, size: int, active: int = 10, snr: float = 10.0) -> Callable[[], Timed]:
    def make() -> Timed:
        rng = np.random.default_rng([n, p, size, active])
        return posed(rng, rng.standard_normal((n, p)), equal(p, size), active, snr)

    return make


def autoregressive(n: int, p: int, rho: float) -> Callable[[], Timed]:
    def make() -> Timed:
        rng = np.random.default_rng([n, p])
        X = rng.standard_normal((n, p))
        X[:, 1:] *= np.sqrt(1 - rho * rho)
        for j in range(1, p):
            X[:, j] += rho * X[:, j - 1]
        return posed(rng, X, equal(p, 5), 10, 10.0)

    return make


def shared_factor(n: int, p: int, rho: float, active: int, groups_per_block: int | None = None) -> Callable[[], Timed]:
    """Columns that share a factor: all of them, or those of a block of groups."""

    def make() -> Timed:
        rng = np.random.default_rng([n, p, active])
        labels = equal(p, 5)
        block = labels // groups_per_block if groups_per_block else np.zeros_like(labels)
        factors = rng.standard_normal((n, block.max() + 1))[:, block]
        X = np.sqrt(1 - rho) * rng.standard_normal((n, p)) + np.sqrt(rho) * factors
        return posed(rng, X, labels, active, 10.0)

    return make


def of_family(family: str, n: int, p: int, size: int, active: int, strength: float = 1.0) -> Callable[[], Timed]:
    """Classes, counts or survival times that depend on some groups; `strength` is the deviation of the predictor."""

    def make() -> Timed:
        rng = np.random.default_rng([n, p, size, active, *family.encode()])
        X, labels = rng.standard_normal((n, p)), equal(p, size)
        eta = X[:, : active * size] @ rng.standard_normal(active * size)
        eta *= strength / eta.std()
        if family == "cox":
            y = np.column_stack([rng.exponential(np.exp(-eta)), rng.random(n) < 0.7])
        else:
            y = rng.poisson(np.exp(eta)) if family == "poisson" else eta + rng.logistic(size=n) > 0
        return Timed(X, y.astype(float), labels, np.asfortranarray(X), rng.permutation(n) % 5, family)

    return make


SIZES: dict[str, Callable[[], Timed]] = {
    "150x300": gaussian(150, 300, 3),
    "500x10000": gaussian(500, 10_000, 5),
    "1000x50000": gaussian(1000, 50_000, 10),
}
KINDS: dict[str, Callable[[], Timed]] = {
    "groups of 200, 500x4000": gaussian(500, 4000, 200, active=2),
    "200 active, blocks, 2000x2000": shared_factor(2000, 2000, 0.6, 200, 5),
    "AR(0.99), 500x5000": autoregressive(500, 5000, 0.99),
    "equicorrelated, 100 active, 500x5000": shared_factor(500, 5000, 0.5, 100),
    "dense 5000x500": gaussian(5000, 500, 5, active=100),
    "20000x50": gaussian(20_000, 50, 5),
    "singletons 500x50000": gaussian(500, 50_000, 1),
}
LOSSES: dict[str, Callable[[], Timed]] = {
    "logistic 200x60": of_family("binomial", 200, 60, 3, 4, 2.0),
    "logistic 500x2000": of_family("binomial", 500, 2000, 5, 5, 2.0),
    "logistic 3000x200": of_family("binomial", 3000, 200, 5, 10, 2.0),
    "logistic 60000x500": of_family("binomial", 60_000, 500, 5, 10, 2.0),
    "Poisson 200x60": of_family("poisson", 200, 60, 3, 4),
    "Poisson 500x2000": of_family("poisson", 500, 2000, 5, 5),
    "Poisson 60000x500": of_family("poisson", 60_000, 500, 5, 10),
    "Cox 300x60": of_family("cox", 300, 60, 3, 4),
    "Cox 500x1000": of_family("cox", 500, 1000, 5, 5),
}
QUICK = ("150x300", "500x10000", "groups of 200, 500x4000", "AR(0.99), 500x5000", "20000x50")


# ---------------------------------------------------------------------- what is timed


def covey_folds(problem: Timed) -> None:
    """The default fit, on given folds."""
    from sklearn.model_selection import PredefinedSplit

    from covey import Groups, GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor, survival

    groups, folds, y = Groups.from_labels(problem.labels), PredefinedSplit(problem.fold_of), problem.y
    if problem.family == "cox":
        GroupSparseCox(groups, selection=folds).fit(problem.X, survival(*y.T))
    elif problem.family == "binomial":
        GroupSparseClassifier(groups, selection=folds).fit(problem.X, y)
    else:
        loss = "squared" if problem.family == "gaussian" else problem.family
        GroupSparseRegressor(groups, selection=folds, loss=loss).fit(problem.X, y)


def adelie_path(problem: Timed, rows: np.ndarray | None = None, penalties: np.ndarray | None = None) -> np.ndarray:
    import adelie as ad

    starts = np.flatnonzero(np.r_[True, np.diff(problem.labels) > 0])
    X, y = (problem.fortran, problem.y) if rows is None else (problem.fortran[rows], problem.y[rows])
    grid = {"lmda_path_size": 100} if penalties is None else {"lmda_path": penalties}
    if problem.family == "cox":
        glm = ad.glm.cox(
            start=np.zeros(len(y)), stop=np.ascontiguousarray(y[:, 0]), status=np.ascontiguousarray(y[:, 1])
        )
    else:
        glm = getattr(ad.glm, problem.family)(y=y)
    state = ad.grpnet(
        X=np.asfortranarray(X), glm=glm, groups=starts, early_exit=False, min_ratio=1e-2,
        progress_bar=False, n_threads=1, **grid,
    )  # fmt: skip
    return np.asarray(state.lmda_path)


def adelie_folds(problem: Timed) -> None:
    """The path over all rows, and over each fold's rows at the same penalties."""
    penalties = adelie_path(problem)
    for fold in range(5):
        adelie_path(problem, problem.fold_of != fold, penalties)


def covey_holdout(problem: Timed) -> None:
    """One hold-out fit: the rows of the first fold judge."""
    from covey import Groups, GroupSparseRegressor
    from covey.selection import HoldOut

    fit, judge = problem.fold_of != 0, problem.fold_of == 0
    selection = HoldOut(validation=(problem.X[judge], problem.y[judge]))
    groups = Groups.from_labels(problem.labels)
    GroupSparseRegressor(groups=groups, selection=selection).fit(problem.X[fit], problem.y[fit])


def adelie_holdout(problem: Timed) -> None:
    adelie_path(problem, problem.fold_of != 0)


def seconds(run: Callable[[Any], object], problem: Any, most: float = 3.0) -> float:
    """Processor seconds, the median over up to five runs, fewer where one takes long; the caller has warmed up."""
    taken: list[float] = []
    while len(taken) < 5 and (not taken or sum(taken) < most):
        start = time.process_time()
        run(problem)
        taken.append(time.process_time() - start)
    return float(np.median(taken))


def row(name: str, problem: Timed, ours: Callable[[Timed], object], theirs: Callable[[Timed], object]) -> float:
    """Times of both, warmed up on the problem, and their ratio."""
    ours(problem)
    theirs(problem)
    unit = seconds(lambda q: q.X.T @ q.y, problem, 0.2)
    a, b = seconds(ours, problem), seconds(theirs, problem)
    print(f"| {name} | {a:.4f} | {b:.4f} | {a / b:.3f} | {a / unit:.1f} | {unit * 1e3:.2f} |", flush=True)
    return a / b


def header(title: str) -> None:
    print(f"\n{title}\n| problem | covey, s | adelie, s | ratio | covey in X'y | X'y, ms |\n" + "| --- " * 6 + "|")


def real_losses() -> None:
    """Real classes and counts."""
    import glm_data
    from suite.problem import CannotRunError

    header("Real classes and counts, five folds")
    ratios = []
    for name in glm_data.DATA:
        try:
            problem = glm_data.PROBLEMS[name](0)
        except CannotRunError:
            continue
        if problem.outputs == 1:
            X, y, family = np.ascontiguousarray(problem.X), problem.y.astype(float), problem.family.name
            timed = Timed(X, y, problem.labels, np.asfortranarray(X), problem.fold_of, family)
            ratios.append(row(name, timed, covey_folds, adelie_folds))
    print(f"\nmedian ratio {np.median(ratios):.3f}, largest {max(ratios):.2f}")


def real_problem(load: Callable[[], tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Callable[[], Timed]:
    def make() -> Timed:
        X, y, labels = load()
        X = np.ascontiguousarray(X)
        return Timed(X, y, labels, np.asfortranarray(X), np.random.default_rng(0).permutation(len(y)) % 5)

    return make


def real_table(quick: bool) -> None:
    from suite.problem import CannotRunError
    from suite.real_data import DATA

    header("Real data, five folds")
    ratios = []
    for name in list(DATA)[:: 4 if quick else 1]:
        try:
            problem = real_problem(DATA[name])()
        except CannotRunError:
            continue
        ratios.append(row(name, problem, covey_folds, adelie_folds))
    print(f"\nmedian ratio {np.median(ratios):.3f}, largest {max(ratios):.2f}")


def rivals_table(quick: bool) -> None:
    """Processor seconds of every rival on the same folds, and how many times covey's."""
    from rivals import OURS, PEERS
    from suite.families import FAMILIES
    from suite.problem import CannotRunError, Problem
    from suite.real_data import DATA

    problems = {"150x300": SIZES["150x300"]}
    if not quick:
        problems |= {"diabetes splines": real_problem(DATA["diabetes splines"]), "300x2000": gaussian(300, 2000, 5)}
    methods = {"covey": OURS["covey"]} | {name: solve for name, solve in PEERS.items() if name != "mean"}
    print("\n| five folds, seconds (times covey's) | " + " | ".join(methods) + " |")
    print("| --- " * (len(methods) + 1) + "|")
    for title, make in problems.items():
        timed = make()
        problem = Problem(
            FAMILIES["gaussian"], timed.X, timed.y, timed.labels, timed.X[:1], lambda mean: 0.0, timed.fold_of
        )
        taken = {}
        for name, solve in methods.items():
            try:
                solve(problem)
                taken[name] = seconds(lambda q, solve=solve: solve(q), problem)
            except CannotRunError:  # least squares with more columns than rows
                taken[name] = np.nan
        cells = [f"{t:.3f} ({t / taken['covey']:.1f})" if np.isfinite(t) else "-" for t in taken.values()]
        print(f"| {title} | " + " | ".join(cells) + " |", flush=True)


COLD = """
import numpy as np
rng = np.random.default_rng(0)
X = rng.standard_normal((150, 300)); y = X[:, :3].sum(axis=1) + rng.standard_normal(150)
from covey import GroupSparseRegressor
GroupSparseRegressor(groups=3).fit(X, y)
"""


def cold_start() -> None:
    """Processor seconds of a fresh process that imports covey and fits 150 x 300, and of the imports alone."""
    print("\n| fresh process | processor seconds |\n| --- | --- |")
    for name, code in (
        ("import covey and fit 150x300", COLD),
        ("import scikit-learn and pandas only", "import sklearn.linear_model, pandas, scipy.sparse.linalg"),
    ):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"| {name} | {spent:.2f} |" if done.returncode == 0 else f"| {name} | failed: {done.stderr[-200:]} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the small sizes, some kinds, every fourth real data set")
    parser.add_argument(
        "--cells", nargs="+", help="only these, by a part of their names: also real, classes, rivals, cold"
    )
    args = parser.parse_args()

    def wanted(name: str) -> bool:
        return any(part in name for part in args.cells) if args.cells else not args.quick or name in QUICK

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for title, table in (
            ("Five folds, sizes", SIZES),
            ("Five folds, kinds", KINDS),
            ("Five folds, losses", LOSSES),
        ):
            if any(wanted(name) for name in table):
                header(title)
                for name, make in table.items():
                    if wanted(name):
                        row(name, make(), covey_folds, adelie_folds)
        if wanted("500x10000"):
            header("One hold-out fit")
            row("500x10000, hold-out", SIZES["500x10000"](), covey_holdout, adelie_holdout)
        if not args.cells or "real" in args.cells:
            real_table(args.quick)
        if not args.quick and (not args.cells or "classes" in args.cells):
            real_losses()
        if not args.cells or "rivals" in args.cells:
            rivals_table(args.quick)
        if not args.cells or "cold" in args.cells:
            cold_start()


if __name__ == "__main__":
    main()
