"""The grid that decides: correlated, noisy, dense and oddly grouped problems, covey beside the peers.

Every method sees the same training rows and chooses its model on the same validation rows; the prediction error is
``mean((X w - X w*)^2)`` over fresh rows, which leaves the noise out. A cell is a design, a signal-to-noise ratio, a
sparsity and a layout of groups; its error is the mean over seeds. `--keep FILE` keeps every single result, so that a
run can be interrupted and gone on with, and only the methods that changed have to be run again.

The environment needs covey (or PYTHONPATH=src), adelie and abess, which want numpy < 2.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.linalg  # noqa: F401 - with a BLAS of its own, whose threads can only be limited once it is loaded
from threadpoolctl import threadpool_limits

N_TEST = 2000


@dataclass(frozen=True)
class Cell:
    """One kind of problem."""

    design: str
    snr: float
    active: int  # 0 is a dense signal
    sizes: str

    def __str__(self) -> str:
        return f"{self.design} snr={self.snr:g} active={self.active or 'all'} {self.sizes}"


@dataclass
class Problem:
    """Training, validation and test rows, groups as labels of the columns, and the truth."""

    X: np.ndarray
    y: np.ndarray
    X_val: np.ndarray
    y_val: np.ndarray
    X_test: np.ndarray
    labels: np.ndarray
    w: np.ndarray

    @property
    def starts(self) -> np.ndarray:
        return np.flatnonzero(np.r_[True, np.diff(self.labels) > 0])


# ---------------------------------------------------------------------- designs: rows of p columns


def iid(rng, rows, labels):
    return rng.standard_normal((rows, labels.size))


def rademacher(rng, rows, labels):
    return rng.choice([-1.0, 1.0], (rows, labels.size))


def autoregressive(rho):
    def make(rng, rows, labels):
        X = rng.standard_normal((rows, labels.size))
        X[:, 1:] *= np.sqrt(1 - rho * rho)
        for j in range(1, labels.size):
            X[:, j] += rho * X[:, j - 1]
        return X

    return make


def equicorrelated(rho):
    def make(rng, rows, labels):
        return np.sqrt(1 - rho) * iid(rng, rows, labels) + np.sqrt(rho) * rng.standard_normal((rows, 1))

    return make


def block_correlated(rng, rows, labels, rho=0.6, groups_per_block=5):
    """Groups in blocks of five; the columns of a block share a factor."""
    block = labels // groups_per_block
    shared = rng.standard_normal((rows, block.max() + 1))[:, block]
    return np.sqrt(1 - rho) * iid(rng, rows, labels) + np.sqrt(rho) * shared


def heavy_tailed(rng, rows, labels):
    return rng.standard_t(3, (rows, labels.size)) / np.sqrt(3.0)


def snp(rng, rows, labels):
    """Minor allele counts 0, 1, 2 with neighbours in linkage."""
    latent = autoregressive(0.7)(rng, rows, labels)
    order = np.argsort(np.argsort(latent, axis=0), axis=0) / rows
    frequency = np.random.default_rng(labels.size).uniform(0.05, 0.5, labels.size)
    return (order > (1 - frequency) ** 2).astype(float) + (order > 1 - frequency**2)


def splines(rng, rows, labels):
    """One variable a group, expanded in as many B-splines as the group has columns."""
    from sklearn.preprocessing import SplineTransformer

    parts = []
    for size in np.bincount(labels):
        x = rng.uniform(0, 1, (rows, 1))
        if size < 3:
            parts.append(np.hstack([x**k for k in range(1, size + 1)]))
        else:
            knots = np.linspace(0, 1, size - 1)[:, None]
            parts.append(SplineTransformer(degree=2, knots=knots).fit_transform(x)[:, :size])
    return np.hstack(parts)


DESIGNS: dict[str, Callable] = {
    "iid": iid, "rademacher": rademacher, "AR 0.5": autoregressive(0.5), "AR 0.9": autoregressive(0.9),
    "equi 0.5": equicorrelated(0.5), "equi 0.8": equicorrelated(0.8), "blocks": block_correlated,
    "heavy": heavy_tailed, "snp": snp, "splines": splines,
}  # fmt: skip
SNRS = (20.0, 5.0, 1.0, 0.3)
ACTIVE = (2, 10, 40, 0)
SIZES = ("equal", "mixed")


def make_problem(cell: Cell, seed: int, n: int, p: int) -> Problem:
    """Draw a problem of a cell."""
    rng = np.random.default_rng([seed, *f"{cell}".encode()])
    if cell.sizes == "equal":
        sizes = np.full(p // 5, 5)
    else:
        sizes = rng.integers(1, 31, p)
        sizes = sizes[np.cumsum(sizes) <= p]
    labels = np.repeat(np.arange(sizes.size), sizes)
    n_val = n // 2
    X = DESIGNS[cell.design](rng, n + n_val + N_TEST, labels)
    active = rng.permutation(sizes.size)[: cell.active or None]
    w = np.where(np.isin(labels, active), rng.standard_normal(labels.size), 0.0)
    signal = X @ w
    y = signal + signal.std() / np.sqrt(cell.snr) * rng.standard_normal(signal.size)
    return Problem(X[:n], y[:n], X[n : n + n_val], y[n : n + n_val], X[n + n_val :], labels, w)


# ---------------------------------------------------------------------- methods: a problem to predictions on test rows


def pick(problem: Problem, coefs: np.ndarray, intercepts: np.ndarray) -> tuple[np.ndarray, float]:
    """The model with the least validation error, and that error."""
    errors = np.mean((problem.y_val[:, None] - problem.X_val @ coefs.T - intercepts) ** 2, axis=0)
    best = int(np.argmin(errors))
    return problem.X_test @ coefs[best] + intercepts[best], float(errors[best])


def covey_rule(problem: Problem, restarts=2, factors="auto", dense_scales=(1e-2, 1e-1), average=True) -> np.ndarray:
    from covey import Groups
    from covey.stopping import HoldOut, PathTask

    groups = Groups.from_labels(problem.labels)
    task = PathTask(
        problem.X, problem.y, groups, np.ones(len(problem.y)), {"max_iter": 100_000},
        restarts=restarts, factors=factors, dense_scales=dense_scales, average=average,
    )  # fmt: skip
    choice = HoldOut(validation=(problem.X_val, problem.y_val)).choose(task)
    coef, intercept = choice.model
    return problem.X_test @ coef + intercept


def plain(problem: Problem) -> np.ndarray:
    """The paper's path, nothing else."""
    return covey_rule(problem, restarts=0, factors=0, dense_scales=(), average=False)


def _adelie(problem: Problem, X: np.ndarray, back: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, float]:
    import adelie as ad

    state = ad.grpnet(
        X=np.asfortranarray(X), glm=ad.glm.gaussian(y=problem.y), groups=problem.starts, lmda_path_size=100,
        early_exit=False, min_ratio=1e-3, progress_bar=False, n_threads=1, ddev_tol=0, adev_tol=1.0,
    )  # fmt: skip
    return pick(problem, back(state.betas.toarray()), np.asarray(state.intercepts))


def adelie_raw(problem: Problem) -> tuple[np.ndarray, float]:
    return _adelie(problem, problem.X, lambda betas: betas)


def adelie_orth(problem: Problem) -> tuple[np.ndarray, float]:
    """The group lasso on orthonormalised groups."""
    mean = problem.X.mean(axis=0)
    Z, T = [], []
    for cols in np.split(np.arange(problem.w.size), problem.starts[1:]):
        _, s, Vt = np.linalg.svd(problem.X[:, cols] - mean[cols], full_matrices=False)
        keep = s > 1e-7 * s[0]
        # columns that the group does not need stay as zeros, so that the groups stay as they are
        t = np.zeros((cols.size, cols.size))
        t[:, : keep.sum()] = Vt[keep].T / s[keep] * np.sqrt(len(problem.y))
        T.append(t)
        Z.append((problem.X[:, cols] - mean[cols]) @ t)

    def back(betas: np.ndarray) -> np.ndarray:
        return np.hstack([betas[:, a : a + t.shape[0]] @ t.T for a, t in zip(problem.starts, T, strict=True)])

    state_prediction, error = None, np.inf
    import adelie as ad

    state = ad.grpnet(
        X=np.asfortranarray(np.hstack(Z)), glm=ad.glm.gaussian(y=problem.y), groups=problem.starts,
        lmda_path_size=100, early_exit=False, min_ratio=1e-3, progress_bar=False, n_threads=1, ddev_tol=0, adev_tol=1.0,
    )  # fmt: skip
    coefs = back(state.betas.toarray())
    state_prediction, error = pick(problem, coefs, np.asarray(state.intercepts) - coefs @ mean)
    return state_prediction, error


def group_lasso(problem: Problem) -> np.ndarray:
    """The group lasso on raw or orthonormalised columns, whichever validates better."""
    return min((adelie_raw(problem), adelie_orth(problem)), key=lambda result: result[1])[0]


def abess(problem: Problem) -> np.ndarray:
    from abess import LinearRegression

    most = min(problem.starts.size - 1, 60)
    coefs, intercepts = [np.zeros(problem.w.size)], [problem.y.mean()]
    for size in sorted({*range(1, 16), 20, 25, 30, 35, 40, 45, 50, 60}):
        if size > most:
            break
        model = LinearRegression(support_size=[size], thread=1, group=problem.labels)
        model.fit(problem.X, problem.y)
        if np.isfinite(model.coef_).all():
            coefs.append(model.coef_)
            intercepts.append(float(model.intercept_))
    return pick(problem, np.array(coefs), np.array(intercepts))[0]


def oracle(problem: Problem) -> np.ndarray:
    """Least squares on the true groups where there are more rows than columns, else ridge of the best penalty."""
    on = problem.w != 0
    mean, y_mean = problem.X[:, on].mean(axis=0), problem.y.mean()
    U, s, Vt = np.linalg.svd(problem.X[:, on] - mean, full_matrices=False)
    b = U.T @ (problem.y - y_mean)
    coefs, intercepts = [], []
    for penalty in (1e-8 * s[0], *np.geomspace(1e-2, 1e1, 20) * s[0]):
        w = np.zeros(problem.w.size)
        w[on] = Vt.T @ (s * b / (s * s + penalty * penalty))
        coefs.append(w)
        intercepts.append(y_mean - w[on] @ mean)
    return pick(problem, np.array(coefs), np.array(intercepts))[0]


def null(problem: Problem) -> np.ndarray:
    return np.full(len(problem.X_test), problem.y.mean())


METHODS: dict[str, Callable[[Problem], np.ndarray]] = {
    "covey": covey_rule, "plain": plain, "group lasso": group_lasso, "abess": abess, "oracle": oracle, "null": null,
}  # fmt: skip
RIVALS = ("group lasso", "abess", "plain")


def runs(method: str, cell: Cell) -> bool:
    """The plain path takes minutes where all columns share a factor, and is left out there."""
    return not (method == "plain" and cell.design.startswith("equi"))


# ---------------------------------------------------------------------- running and printing


def run(method: str, cell: Cell, seed: int, n: int, p: int) -> tuple[float, float]:
    """Prediction error and seconds."""
    problem = make_problem(cell, seed, n, p)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = METHODS[method](problem)
    seconds = time.perf_counter() - start
    return float(np.mean((predicted - problem.X_test @ problem.w) ** 2)), seconds


def report(
    cells: list[Cell], results: dict[tuple[str, str, int], tuple[float, float]], methods: list[str], seeds: range
):
    """One line a cell: errors relative to the best method that is not told the truth; then the summary."""
    rivals = [m for m in methods if m in RIVALS or m == "covey"]
    table = {}
    print("| cell | " + " | ".join(methods) + " | best |\n" + "| --- " * (len(methods) + 2) + "|")
    for cell in cells:
        errors = {
            m: float(np.mean([results[m, str(cell), s][0] for s in seeds])) if runs(m, cell) else np.nan
            for m in methods
        }
        best = float(np.nanmin([errors[m] for m in rivals]))
        table[cell] = {m: errors[m] / best for m in methods} | {"absolute": best}
        shown = " | ".join(f"{errors[m] / best:.2f}" for m in methods)
        print(f"| {cell} | {shown} | {best:.3g} |")
    if "covey" not in methods or not table:
        return
    ours = np.array([row["covey"] for row in table.values()])
    print(f"\n{len(table)} cells, {len(seeds)} seeds")
    print(f"covey within 5% of the best: {np.mean(ours <= 1.05):.0%}")
    print(f"covey to the best: median {np.median(ours):.3f}, worst {ours.max():.2f}")
    if "group lasso" in methods:
        ratio = np.array([row["covey"] / row["group lasso"] for row in table.values()])
        print(f"covey / group lasso: median {np.median(ratio):.2f}, worst {ratio.max():.2f}")
        clear = np.array([c.active in (2, 10) and c.snr >= 5 for c in table])
        if clear.any():
            print(
                f"  2 or 10 active, SNR 5 and up: median {np.median(ratio[clear]):.2f}, worst {ratio[clear].max():.2f}"
            )
    seconds = {m: np.median([results[m, str(c), s][1] for c in table for s in seeds if runs(m, c)]) for m in methods}
    print("median seconds: " + ", ".join(f"{m} {t:.3f}" for m, t in seconds.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--designs", nargs="+", default=list(DESIGNS), choices=list(DESIGNS))
    parser.add_argument("--snr", nargs="+", type=float, default=list(SNRS))
    parser.add_argument("--active", nargs="+", type=int, default=list(ACTIVE), help="0 is a dense signal")
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), choices=SIZES)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=3, help="up to this one, which is not among them")
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--p", type=int, default=1000)
    parser.add_argument("--keep", type=Path, help="a file of single results to go on from and to add to")
    args = parser.parse_args()
    cells = [Cell(*values) for values in itertools.product(args.designs, args.snr, args.active, args.sizes)]
    results: dict[tuple[str, str, int], tuple[float, float]] = {}
    if args.keep and args.keep.exists():
        for line in args.keep.read_text().splitlines():
            row = json.loads(line)
            results[row["method"], row["cell"], row["seed"]] = (row["error"], row["seconds"])
    with threadpool_limits(1):
        for seed in range(args.first_seed, args.seeds):
            for cell in cells:
                for method in args.methods:
                    if (method, str(cell), seed) in results or not runs(method, cell):
                        continue
                    error, seconds = run(method, cell, seed, args.n, args.p)
                    results[method, str(cell), seed] = (error, seconds)
                    if args.keep:
                        with args.keep.open("a") as file:
                            row = {
                                "method": method,
                                "cell": str(cell),
                                "seed": seed,
                                "error": error,
                                "seconds": seconds,
                            }
                            print(json.dumps(row), file=file)
    report(cells, results, args.methods, range(args.first_seed, args.seeds))


if __name__ == "__main__":
    main()
