"""covey beside the peers: one scorer, same data, same validation rows, one thread, after warm-up.

Every method starts from arrays in memory and ends with the model that the validation rows chose; preprocessing is in
the time. `python benchmarks/peers.py --help` lists the options; the default is the whole table, `--quick` a glance.

The environment needs covey (or PYTHONPATH=src) and adelie, abess, celer, skglm, which want numpy < 2.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg  # noqa: F401 - with a BLAS of its own, whose threads can only be limited once it is loaded
from threadpoolctl import threadpool_limits

SIZES = {"150x300": 3, "500x10000": 5, "1000x50000": 10, "2000x100000": 10}
ACTIVE = 10


@dataclass
class Problem:
    """Training and validation rows, the truth, and equal groups of `size` columns."""

    X: np.ndarray
    y: np.ndarray
    X_val: np.ndarray
    y_val: np.ndarray
    w: np.ndarray
    size: int
    ar: float

    @cached_property
    def fortran(self) -> np.ndarray:
        """X in the order that the coordinate descents want; made before the clock starts."""
        return np.asfortranarray(self.X)

    @property
    def labels(self) -> np.ndarray:
        return np.repeat(np.arange(self.w.size // self.size), self.size)

    @property
    def support(self) -> np.ndarray:
        return np.flatnonzero(np.abs(self.w).reshape(-1, self.size).max(axis=1))


def make_problem(n: int, p: int, size: int, ar: float, noise: float, seed: int) -> Problem:
    """Rows of N(0, Sigma), Sigma_ij = ar^|i-j|; ACTIVE groups of coefficients +-1."""
    rng = np.random.default_rng(seed)
    m = max(n // 3, 50)
    X = rng.standard_normal((n + m, p))
    if ar:
        X[:, 1:] *= np.sqrt(1 - ar * ar)
        for j in range(1, p):
            X[:, j] += ar * X[:, j - 1]
    w = np.zeros((p // size, size))
    w[rng.choice(p // size, ACTIVE, replace=False)] = rng.choice([-1.0, 1.0], (ACTIVE, size))
    w = w.ravel()
    y = X[:, w != 0] @ w[w != 0] + noise * rng.standard_normal(n + m)
    return Problem(np.ascontiguousarray(X[:n]), y[:n], np.ascontiguousarray(X[n:]), y[n:], w, size, ar)


# ---------------------------------------------------------------------- methods: a problem to coefficients


def pick(problem: Problem, coefs: np.ndarray, intercepts: np.ndarray) -> np.ndarray:
    """The model on a path with the least validation error; predicts with the columns that are ever used."""
    used = np.flatnonzero(np.any(coefs != 0, axis=0))
    predictions = problem.X_val[:, used] @ coefs[:, used].T + intercepts
    return coefs[np.argmin(np.mean((problem.y_val[:, None] - predictions) ** 2, axis=0))]


def covey(problem: Problem) -> np.ndarray:
    from covey import Groups
    from covey.stopping import HoldOut, PathTask

    groups = Groups.from_size(problem.size, problem.w.size)
    task = PathTask(
        problem.X, problem.y, groups, np.ones(len(problem.y)),
        restarts=2, factors="auto", dense_scales=(1e-2, 1e-1), average=True,
    )  # fmt: skip
    choice = HoldOut(validation=(problem.X_val, problem.y_val)).choose(task)
    return choice.model[0]


def adelie(problem: Problem) -> np.ndarray:
    import adelie as ad

    starts = np.arange(0, problem.w.size, problem.size)
    state = ad.grpnet(
        X=problem.fortran, glm=ad.glm.gaussian(y=problem.y), groups=starts, lmda_path_size=100,
        early_exit=False, min_ratio=1e-2, progress_bar=False, n_threads=1,
    )  # fmt: skip
    betas = state.betas.toarray()
    return pick(problem, betas, np.asarray(state.intercepts))


def abess_ebic(problem: Problem) -> np.ndarray:
    from abess import LinearRegression

    model = LinearRegression(support_size=range(31), ic_type="ebic", thread=1, group=problem.labels)
    model.fit(problem.X, problem.y)
    return model.coef_


def abess_validation(problem: Problem) -> np.ndarray:
    from abess import LinearRegression

    coefs, intercepts = [], []
    for size in range(1, 31):
        model = LinearRegression(support_size=[size], thread=1, group=problem.labels)
        model.fit(problem.X, problem.y)
        coefs.append(model.coef_)
        intercepts.append(model.intercept_)
    return pick(problem, np.array(coefs), np.array(intercepts))


def _penalties(problem: Problem, count: int) -> np.ndarray:
    X, y = problem.X, problem.y
    c = (X.T @ (y - y.mean()) / len(y)).reshape(-1, problem.size)
    return np.geomspace(1, 1e-2, count) * np.linalg.norm(c, axis=1).max()


def celer(problem: Problem) -> np.ndarray:
    from celer import celer_path

    mean, y_mean = problem.X.mean(axis=0), problem.y.mean()
    _, coefs, _ = celer_path(
        problem.fortran - mean, problem.y - y_mean, pb="grouplasso", groups=problem.size,
        alphas=_penalties(problem, 50), tol=1e-4, weights=np.ones(problem.w.size // problem.size),
    )  # fmt: skip
    return pick(problem, coefs.T, y_mean - coefs.T @ mean)


def skglm(problem: Problem) -> np.ndarray:
    from skglm import GroupLasso

    mean, y_mean = problem.X.mean(axis=0), problem.y.mean()
    X = problem.fortran - mean
    coefs = []
    model = GroupLasso(groups=problem.size, fit_intercept=False, warm_start=True, tol=1e-4)
    for alpha in _penalties(problem, 50):
        model.alpha = alpha
        coefs.append(model.fit(X, problem.y - y_mean).coef_.copy())
    return pick(problem, np.array(coefs), y_mean - np.array(coefs) @ mean)


def oracle(problem: Problem) -> np.ndarray:
    """Least squares on the true groups."""
    on = problem.w != 0
    design = np.column_stack([np.ones(len(problem.y)), problem.X[:, on]])
    out = np.zeros_like(problem.w)
    out[on] = np.linalg.lstsq(design, problem.y, rcond=None)[0][1:]
    return out


def null(problem: Problem) -> np.ndarray:
    return np.zeros_like(problem.w)


METHODS: dict[str, Callable[[Problem], np.ndarray]] = {
    "covey": covey, "adelie 100": adelie, "abess EBIC": abess_ebic, "abess valid.": abess_validation,
    "celer 50": celer, "skglm 50": skglm, "oracle": oracle, "null": null,
}  # fmt: skip


# ---------------------------------------------------------------------- the scorer


def score(problem: Problem, w: np.ndarray) -> tuple[float, float, int, int]:
    """Squared error, prediction error under the true covariance, true and false groups selected."""
    d = w - problem.w
    half = d.astype(float)
    if problem.ar:  # d' Sigma d by one sweep of the AR(1) recursion
        carry, total = 0.0, 0.0
        for x in half:
            total += x * x + 2 * x * problem.ar * carry
            carry = problem.ar * carry + x
        prediction = total
    else:
        prediction = float(d @ d)
    chosen = np.flatnonzero(np.abs(w).reshape(-1, problem.size).max(axis=1))
    true = np.isin(chosen, problem.support).sum()
    return float(d @ d), prediction, int(true), int(chosen.size - true)


def timed(method: Callable[[Problem], np.ndarray], problem: Problem) -> tuple[float, np.ndarray]:
    problem.fortran  # noqa: B018
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        w = method(problem)
    return time.perf_counter() - start, w


def product_time(problem: Problem) -> float:
    """The time of one X'y: the unit in which a fit's cost is stated."""
    return min(timed(lambda q: q.X.T @ q.y, problem)[0] for _ in range(5))


def table(sizes: list[str], designs: list[float], noises: list[float], seeds: int, methods: list[str]) -> None:
    warm = make_problem(150, 300, 3, 0.0, 1.0, 99)
    for name in methods:
        timed(METHODS[name], warm)
    for size in sizes:
        n, p = map(int, size.split("x"))
        for ar in designs:
            for noise in noises:
                rows: dict[str, list[tuple[float, ...]]] = {name: [] for name in methods}
                unit = []
                for seed in range(seeds):
                    problem = make_problem(n, p, SIZES[size], ar, noise, seed)
                    unit.append(product_time(problem))
                    for name in methods:
                        repeats = 3 if p <= 1000 else 1
                        results = [timed(METHODS[name], problem) for _ in range(repeats)]
                        seconds = float(np.median([r[0] for r in results]))
                        rows[name].append((seconds, *score(problem, results[-1][1])))
                print_block(size, SIZES[size], ar, noise, float(np.median(unit)), rows)


def print_block(
    size: str, width: int, ar: float, noise: float, unit: float, rows: dict[str, list[tuple[float, ...]]],
    base: str = "adelie 100",
) -> None:  # fmt: skip
    design = f"AR({ar:g})" if ar else "iid"
    print(f"\n{size}, groups of {width}, {design}, noise {noise:g}; X'y {unit * 1e3:.2f} ms")
    print("| method | s | in X'y | to adelie | error | to oracle | prediction error | true | false |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    medians = {name: np.median(np.array(values), axis=0) for name, values in rows.items()}
    reference = medians.get(base, [np.nan])[0]
    best = medians.get("oracle", [np.nan, np.nan])[1]
    for name, (seconds, error, prediction, true, false) in medians.items():
        print(
            f"| {name} | {seconds:.4f} | {seconds / unit:.1f} | {seconds / reference:.2f} | {error:.4f} | "
            f"{error / best:.2f} | {prediction:.4f} | {true:g} | {false:g} |",
            flush=True,
        )


# ---------------------------------------------------------------------- cross-validation and memory


def covey_cv(problem: Problem) -> np.ndarray:
    """The estimator as a user would call it."""
    from covey import GroupSparseRegressorCV

    return GroupSparseRegressorCV(groups=problem.size).fit(problem.X, problem.y).coef_


def adelie_cv(problem: Problem) -> np.ndarray:
    import adelie as ad

    starts = np.arange(0, problem.w.size, problem.size)
    X, glm = problem.fortran, ad.glm.gaussian(y=problem.y)
    result = ad.cv_grpnet(X=X, glm=glm, groups=starts, n_folds=5, min_ratio=1e-2, n_threads=1, progress_bar=False)
    state = result.fit(X=X, glm=glm, groups=starts, min_ratio=1e-2, n_threads=1, progress_bar=False)
    return state.betas[-1].toarray().ravel()


def cv_table(sizes: list[str], noises: list[float], seeds: int) -> None:
    methods = {"covey 5-fold": covey_cv, "adelie cv_grpnet": adelie_cv, "oracle": oracle}
    for method in methods.values():
        timed(method, make_problem(150, 300, 3, 0.0, 1.0, 99))
    for size in sizes:
        n, p = map(int, size.split("x"))
        for noise in noises:
            rows: dict[str, list[tuple[float, ...]]] = {name: [] for name in methods}
            for seed in range(seeds):
                problem = make_problem(n, p, SIZES[size], 0.0, noise, seed)
                for name, method in methods.items():
                    seconds, w = timed(method, problem)
                    rows[name].append((seconds, *score(problem, w)))
            unit = product_time(problem)
            print_block(size, SIZES[size], 0.0, noise, unit, rows, base="adelie cv_grpnet")


def memory_table(sizes: list[str]) -> None:
    """Peak of what a fit allocates beside X, by tracemalloc, which slows it down."""
    import tracemalloc

    covey(make_problem(150, 3000, 3, 0.0, 1.0, 99))
    print("\n| size | X, MB | allocated at most, MB | share of X |\n| --- | --- | --- | --- |")
    for size in sizes:
        n, p = map(int, size.split("x"))
        problem = make_problem(n, p, SIZES[size], 0.0, 1.0, 0)
        tracemalloc.start()
        covey(problem)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(
            f"| {size} | {problem.X.nbytes / 1e6:.0f} | {peak / 1e6:.0f} | {peak / problem.X.nbytes:.2f} |", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--designs", nargs="+", type=float, default=[0.0, 0.9], help="AR coefficients; 0 is iid")
    parser.add_argument("--noises", nargs="+", type=float, default=[1.0, 5.0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--cv", action="store_true", help="5-fold cross-validation against adelie's, instead")
    parser.add_argument("--memory", action="store_true", help="peak memory beside X, instead")
    parser.add_argument("--quick", action="store_true", help="two sizes, one seed, the two fastest peers")
    args = parser.parse_args()
    if args.quick:
        args.sizes, args.seeds = ["150x300", "500x10000"], 1
        args.methods = ["covey", "adelie 100", "abess EBIC", "oracle", "null"]
    with threadpool_limits(1):
        if args.cv:
            cv_table(args.sizes, args.noises, args.seeds)
        elif args.memory:
            memory_table(args.sizes)
        else:
            table(args.sizes, args.designs, args.noises, args.seeds, args.methods)


if __name__ == "__main__":
    main()
