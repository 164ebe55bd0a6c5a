"""Out, straight or curved: gamsel's simulation, with covey, gamsel, and smooths that are told the true terms.

gamsel's `gendata` (Chouldechova and Hastie, 2015): 500 rows, three variables with a line, three with a random
polynomial of degree 8, the others without effect, noise 0.5; 12 or 1000 variables. The error is the mean square between
predicted and true mean on 2000 fresh rows whose coordinates are drawn from those fitted, so that no method has to
extrapolate a polynomial of degree 8. pyGAM and mgcv are given the six true terms, lines as lines. gamsel is tuned by
ten folds, with its standard-error rule too. Settings are decided on seeds 0 to 4, results are reported on seeds 100 to
119. It needs `pip install pygam`, and R with mgcv and gamsel, which may lie in a folder that R_LIBS names. On one core:

    export OMP_NUM_THREADS=1 PYTHONPATH=src
    .venv-bench/bin/python benchmarks/curves.py --keep curves.jsonl --write benchmarks/results/curves.md
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from suite.rscript import run_r
from suite.store import Store, arguments, run_all

N, LINES, CURVES, DEGREE, NOISE, FRESH = 500, 3, 3, 8, 0.5, 2000
TRUTH = np.array([1] * LINES + [2] * CURVES)
Kinds = np.ndarray  # per variable: 0 out, 1 straight, 2 curved


@dataclass
class Fit:
    predicted: np.ndarray
    kinds: Kinds
    seconds: float | None = None


@dataclass
class Problem:
    """One draw of the simulation."""

    X: np.ndarray
    y: np.ndarray
    fresh: np.ndarray
    mean: np.ndarray

    def true_kinds(self) -> Kinds:
        return np.r_[TRUTH, np.zeros(self.X.shape[1] - len(TRUTH), dtype=int)]

    def score(self, fit: Fit) -> dict[str, Any]:
        true = self.true_kinds()
        right = fit.kinds == true
        measures = {
            "error": float(np.mean((fit.predicted - self.mean) ** 2)),
            "right": int(right[: len(TRUTH)].sum()),
            "false": int(np.sum((fit.kinds > 0) & (true == 0))),
            "share": float(right.mean()),
        }
        return measures if fit.seconds is None else {**measures, "seconds": fit.seconds}

    def frames(self) -> list[pd.DataFrame]:
        names = [f"v{j}" for j in range(self.X.shape[1])]
        return [pd.DataFrame(values, columns=names) for values in (self.X, self.fresh)]


def orthonormal_polynomials(x: np.ndarray) -> np.ndarray:
    """R's `poly(x, 8)`: orthonormal columns of rising degree."""
    Q, R = np.linalg.qr(np.vander((x - x.mean()) / np.abs(x - x.mean()).max(), DEGREE + 1, increasing=True))
    return (Q * np.sign(np.diag(R)))[:, 1:]


def make_problem(p: int, seed: int) -> Problem:
    rng = np.random.default_rng([seed, p])
    bases = [orthonormal_polynomials(x) for x in rng.standard_normal((p, N))]
    X = np.column_stack([basis[:, 0] for basis in bases])
    effects = [(10 + 3 * rng.standard_normal()) * X[:, j] for j in range(LINES)]
    effects += [bases[LINES + j] @ (10 * rng.standard_normal(DEGREE)) for j in range(CURVES)]
    at = rng.integers(0, N, (FRESH, p))
    fresh = np.take_along_axis(X, at, axis=0)
    mean = 0.05 + sum(effect[at[:, j]] for j, effect in enumerate(effects))
    y = 0.05 + np.sum(effects, axis=0) + NOISE * rng.standard_normal(N)
    scale = np.sqrt(
        N
    )  # unit variance instead of gamsel's unit norm: smoothers of R and Python differ in what they like
    return Problem(X * scale, y, fresh * scale, mean)


# ---------------------------------------------------------------------- methods


def covey(problem: Problem) -> Fit:
    from covey import GroupSparseRegressor, Terms

    X, fresh = problem.frames()
    model = GroupSparseRegressor(terms=Terms(pairs=None)).fit(X, problem.y)
    kinds = np.zeros(X.shape[1], dtype=int)
    for name in map(str, model.selected_groups_):
        j = int(name.strip("v~"))
        kinds[j] = max(kinds[j], 2 if name.endswith("~") else 1)
    return Fit(model.predict(fresh), kinds)


def pygam(problem: Problem) -> Fit:
    """pyGAM on the true terms, one penalty per curve by its generalised cross-validation."""
    from pygam import LinearGAM, l, s

    terms = l(0)
    for j in range(1, LINES + CURVES):
        terms = terms + (l(j) if j < LINES else s(j))
    model = LinearGAM(terms)
    grid = [[1e-3]] * LINES + [np.logspace(-3, 2, 6)] * CURVES
    model.gridsearch(problem.X[:, : len(TRUTH)], problem.y, lam=grid, progress=False)
    return Fit(model.predict(problem.fresh[:, : len(TRUTH)]), problem.true_kinds())


MGCV = """
suppressMessages(library(mgcv))
fit <- read.csv("fit.csv"); fresh <- read.csv("fresh.csv"); fit$y <- read.csv("y.csv")$y
start <- proc.time()
model <- gam(y ~ v0 + v1 + v2 + s(v3, k = 20) + s(v4, k = 20) + s(v5, k = 20), data = fit, method = "REML")
seconds <- sum((proc.time() - start)[1:2])
writeLines(format(c(seconds, predict(model, fresh)), digits = 12), "out.txt")
"""


def mgcv(problem: Problem) -> Fit:
    """Penalised splines on the true terms, penalties by REML."""
    X, fresh = problem.frames()
    tables = {"fit": X.iloc[:, :6], "fresh": fresh.iloc[:, :6], "y": pd.DataFrame({"y": problem.y})}
    found = run_r(MGCV, tables)
    return Fit(found[1:], problem.true_kinds(), float(found[0]))


GAMSEL = """
suppressMessages(library(gamsel))
fit <- as.matrix(read.csv("fit.csv")); fresh <- as.matrix(read.csv("fresh.csv")); y <- read.csv("y.csv")$y
set.seed(0)
start <- proc.time()
bases <- pseudo.bases(fit, degree = 10, df = 6)
model <- cv.gamsel(fit, y, bases = bases)
seconds <- sum((proc.time() - start)[1:2])
at <- model$index.RULE
straight <- curved <- rep(0, ncol(fit))
straight[unlist(getActive(model$gamsel.fit, at, "nonzero"))] <- 1
curved[unlist(getActive(model$gamsel.fit, at, "nonlinear"))] <- 1
predicted <- predict(model$gamsel.fit, fresh, index = at, type = "response")
writeLines(format(c(seconds, straight + curved, predicted), digits = 12), "out.txt")
"""


def gamsel(problem: Problem, rule: str = "min") -> Fit:
    """gamsel as in its documentation: ten basis functions, six degrees of freedom."""
    X, fresh = problem.frames()
    tables = {"fit": X, "fresh": fresh, "y": pd.DataFrame({"y": problem.y})}
    found = run_r(GAMSEL.replace("RULE", rule), tables, limit=900)
    p = X.shape[1]
    return Fit(found[1 + p :], found[1 : 1 + p].astype(int), float(found[0]))


METHODS: dict[str, Callable[[Problem], Fit]] = {
    "covey": covey,
    "pyGAM, true terms": pygam,
    "mgcv, true terms": mgcv,
    "gamsel": gamsel,
    "gamsel 1se": lambda problem: gamsel(problem, "1se"),
}


# ---------------------------------------------------------------------- report


def report(store: Store, cells: list[str], seeds: list[int], methods: list[str]) -> list[str]:
    lines = [
        "<!-- What benchmarks/curves.py wrote; its docstring says how to run it. -->",
        f"Seeds {seeds[0]} to {seeds[-1]}; means over seeds. Right: of the six true terms, line or curve as in truth.",
        "",
        "| rows x variables | method | error | to pyGAM | to mgcv | right of 6 | false | share right | seconds |",
        "| --- " * 9 + "|",
    ]
    for cell in cells:
        told = [store.error(method, cell, seeds) for method in ("pyGAM, true terms", "mgcv, true terms")]
        for method in methods:
            error, right, false, share, seconds = (
                store.error(method, cell, seeds, measure) for measure in ("error", "right", "false", "share", "seconds")
            )
            lines.append(
                f"| {cell} | {method} | {error:.4f} | {error / told[0]:.2f} | {error / told[1]:.2f} | {right:.2f} | "
                f"{false:.2f} | {share:.1%} | {seconds:.3f} |"
            )
    lines.append("")
    for (method, reason), where in store.failures(methods, cells, seeds).items():
        lines.append(f"{method} has no result in {len(where)} runs, the first on {where[0]}: {reason}")
    return lines


def main() -> None:
    parser = arguments(__doc__, METHODS, list(range(100, 120)), "three seeds of 12 variables")
    parser.add_argument("--write", type=Path, help="a file for the report")
    args = parser.parse_args()
    sizes, seeds = {f"{N} x {p}": p for p in (12, 1000)}, args.seeds
    sizes = {name: p for name, p in sizes.items() if not args.cells or any(part in name for part in args.cells)}
    if args.quick:
        sizes, seeds = {f"{N} x 12": 12}, seeds[:3]
    store = Store(args.keep)
    problems = {name: lambda seed, p=p: make_problem(p, seed) for name, p in sizes.items()}
    methods = {name: METHODS[name] for name in args.methods}
    if "covey" in methods:  # compiled before the clock starts
        covey(make_problem(12, 0))
    run_all(problems, methods, seeds, store, args.tag)
    shown = args.show or [method for method in METHODS if any(row[0] == method for row in store.rows)]
    lines = report(store, list(sizes), seeds, shown)
    print("\n".join(lines))
    if args.write:
        args.write.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
