"""Pairs of variables, simulated: error, pairs found and time of covey, glinternet and a group lasso on all pairs.

Four active variables and three pairs among them; the main effects are as strong as the pairs, weak (0.3) or absent, and
in the additive designs there are no pairs, so that every pair found is false. In designs with categories every other
active variable, and a tenth of all, has three levels. The error is the mean square between the predicted and the true
mean on 2000 fresh rows. Methods are tuned by five folds of their own. Settings are decided on seeds 0 to 9, results are
reported on seeds 100 to 104. glinternet runs in R and may lie in a folder that R_LIBS names. On one core:

    export OMP_NUM_THREADS=1 PYTHONPATH=src
    .venv-bench/bin/python benchmarks/pairs.py --keep pairs.jsonl --write benchmarks/results/pairs.md
    ... --seeds 0 --cells "300 x 100" --methods covey oracle
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from suite.families import FAMILIES
from suite.paths import adelie
from suite.problem import Problem as ColumnProblem
from suite.r_methods import run_glinternet
from suite.store import Store, arguments, run_all

FRESH = 2000
SIZES = ((300, 100), (500, 500), (500, 2000))
NOISE = (1.0, 3.0)
MAIN = {"strong": 1.0, "weak": 0.3, "none": 0.0}
TRUE_PAIRS = ((0, 1), (1, 2), (2, 3))
# scores of the three levels, with mean 0 and variance 1
SCORES = np.array([-1.0, 0.0, 1.0]) * np.sqrt(1.5)
MOST_COLUMNS = 130_000  # that a group lasso is given: 0.5 GB at 500 rows
MOST_VARIABLES = 500  # that glinternet is given: it takes minutes there

Pair = tuple[int, int]


@dataclass(frozen=True)
class Design:
    """What a simulated table is made of."""

    n: int
    p: int
    noise: float
    main: float
    pairs: bool = True
    categories: bool = False

    def __str__(self) -> str:
        effects = next(name for name, main in MAIN.items() if main == self.main) if self.pairs else "additive"
        kinds = ", categories" if self.categories else ""
        return f"{self.n} x {self.p}, {effects}, noise {self.noise:g}{kinds}"

    def is_category(self) -> np.ndarray:
        """Variables 1 and 3, and every tenth after them."""
        j = np.arange(self.p)
        return ((j == 1) | (j == 3) | (j % 10 == 5)) & self.categories

    def draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Values (levels as 0, 1, 2) and the true mean."""
        category = self.is_category()
        values = rng.standard_normal((n, self.p))
        values[:, category] = rng.integers(0, 3, (n, int(category.sum())))
        score = values[:, :4].copy()
        for j in np.flatnonzero(category[:4]):
            score[:, j] = SCORES[values[:, j].astype(int)]
        mean = self.main * score.sum(axis=1)
        if self.pairs:
            mean = mean + sum(score[:, i] * score[:, j] for i, j in TRUE_PAIRS)
        return values, mean

    def true_pairs(self) -> set[Pair]:
        return set(TRUE_PAIRS) if self.pairs else set()


@dataclass
class Fit:
    predicted: np.ndarray
    pairs: set[Pair]
    seconds: float | None = None


@dataclass
class Problem:
    """One draw of a design."""

    design: Design
    values: np.ndarray
    y: np.ndarray
    fresh: np.ndarray
    mean: np.ndarray

    def score(self, fit: Fit) -> dict[str, Any]:
        true = self.design.true_pairs()
        measures = {
            "error": float(np.mean((fit.predicted - self.mean) ** 2)),
            "right": len(fit.pairs & true),
            "false": len(fit.pairs - true),
        }
        return measures if fit.seconds is None else {**measures, "seconds": fit.seconds}

    def frames(self) -> list[pd.DataFrame]:
        """The rows to fit and the fresh ones as tables, levels as text."""
        category = self.design.is_category()
        return [
            pd.DataFrame({f"v{j}": levels(x) if category[j] else x for j, x in enumerate(values.T)})
            for values in (self.values, self.fresh)
        ]


def levels(x: np.ndarray) -> np.ndarray:
    return np.array(["a", "b", "c"], dtype=object)[x.astype(int)]


def make_problem(design: Design, seed: int) -> Problem:
    rng = np.random.default_rng([seed, *str(design).encode()])
    values, mean = design.draw(design.n, rng)
    y = mean + design.noise * rng.standard_normal(design.n)
    return Problem(design, values, y, *design.draw(FRESH, rng))


def variable_columns(design: Design, values: np.ndarray, j: int) -> np.ndarray:
    """The variable itself, or two contrasts of its three levels."""
    x = values[:, j]
    if not design.is_category()[j]:
        return x[:, None]
    return np.column_stack([x == 0, x == 1]) - np.array([1, 1]) / 3


def products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)


# ---------------------------------------------------------------------- methods


def oracle(problem: Problem) -> Fit:
    """Least squares on the columns of the true terms."""
    design = problem.design

    def columns(values: np.ndarray) -> np.ndarray:
        single = [variable_columns(design, values, j) for j in range(4)]
        parts = [np.ones((len(values), 1)), *(single if design.main else [])]
        return np.hstack(parts + [products(single[i], single[j]) for i, j in sorted(design.true_pairs())])

    coef = np.linalg.lstsq(columns(problem.values), problem.y, rcond=None)[0]
    return Fit(columns(problem.fresh) @ coef, design.true_pairs())


def group_lasso(problem: Problem, folds: int = 5) -> Fit:
    """adelie's group lasso on all variables and all pairs, columns of unit variance, penalty by five folds."""
    design = problem.design
    pairs = list(combinations(range(design.p), 2))
    single = [variable_columns(design, problem.values, j) for j in range(design.p)]
    parts = single + [products(single[i], single[j]) for i, j in pairs]
    labels = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
    X = np.asfortranarray(np.hstack(parts))
    del parts
    center, scale = X.mean(axis=0), np.maximum(X.std(axis=0), 1e-12)
    X -= center
    X /= scale
    y = problem.y
    task = ColumnProblem(FAMILIES["gaussian"], X, y, labels, X[:0], lambda mean: 0.0)
    path = adelie(task, X, y, 1e-3 if len(y) < labels.size else 1e-4)
    losses = np.zeros(len(path.grid))
    if folds:
        fold_of = np.random.default_rng(0).permutation(len(y)) % folds
        for fold in range(folds):
            test = fold_of == fold
            found = adelie(task, X[~test], y[~test], path.grid)
            losses += [np.sum((y[test, None] - eta) ** 2) for eta in found.predictors(X[test])]
    chosen = int(np.nanargmin(losses))
    active = np.flatnonzero(path.coefs[chosen])
    coef = path.coefs[chosen, active, 0] / scale[active]
    groups = np.unique(labels[active])
    predicted = np.full(FRESH, path.intercepts[chosen, 0] - center[active] @ coef)
    first = np.searchsorted(labels, groups)
    for label, at in zip(groups, first, strict=True):
        members = variables_of(int(label), design.p, pairs)
        blocks = [variable_columns(design, problem.fresh, j) for j in members]
        columns = blocks[0] if len(blocks) == 1 else products(*blocks)
        here = (labels[active] == label).nonzero()[0]
        predicted += columns[:, active[here] - at] @ coef[here]
    return Fit(predicted, {pairs[label - design.p] for label in groups if label >= design.p})


def variables_of(label: int, p: int, pairs: list[Pair]) -> tuple[int, ...]:
    return (label,) if label < p else pairs[label - p]


def group_lasso_path(problem: Problem) -> Fit:
    """One path, no folds: only its time counts."""
    return group_lasso(problem, folds=0)


def glinternet(problem: Problem) -> Fit:
    """glinternet.cv of R with five folds."""
    levels = np.where(problem.design.is_category(), 3, 1)
    predicted, _, pairs, seconds = run_glinternet(problem.values, problem.fresh, problem.y, levels)
    return Fit(predicted, set(pairs), seconds)


def covey(problem: Problem) -> Fit:
    """All pairs in one race with the variables."""
    from covey import GroupSparseRegressor, Terms

    fit, fresh = problem.frames()
    model = GroupSparseRegressor(terms=Terms(pairs="auto")).fit(fit, problem.y)
    found = [sorted({int(j) for j in re.findall(r"v(\d+)", str(name))}) for name in model.selected_groups_]
    return Fit(model.predict(fresh), {(term[0], term[1]) for term in found if len(term) == 2})


METHODS: dict[str, Callable[[Problem], Fit]] = {
    "covey": covey,
    "oracle": oracle,
    "glinternet": glinternet,
    "group lasso": group_lasso,
    "group lasso path": group_lasso_path,
}


def skip(method: str, design: Design) -> str | None:
    """Why a method is not run on a design, or None."""
    if method.startswith("group lasso") and design.p * (design.p + 1) // 2 > MOST_COLUMNS:
        return f"{design.p * (design.p - 1) // 2} pairs do not fit in memory"
    if method == "glinternet" and design.p > MOST_VARIABLES:
        return "takes hours"
    return None


def designs() -> dict[str, Design]:
    found = [Design(n, p, noise, main) for n, p in SIZES for noise in NOISE for main in MAIN.values()]
    found += [Design(n, p, noise, 1.0, pairs=False) for n, p in SIZES for noise in NOISE]
    found += [Design(n, p, noise, 1.0, categories=True) for n, p in SIZES for noise in NOISE]
    found += [Design(n, p, 1.0, 1.0, pairs=False, categories=True) for n, p in SIZES]
    return {str(design): design for design in found}


# ---------------------------------------------------------------------- report


def report(store: Store, cells: dict[str, Design], seeds: list[int], methods: list[str]) -> list[str]:
    """Error, right and false pairs and seconds per design, then ratios to the rivals and to least squares."""
    lines = [
        "<!-- What benchmarks/pairs.py wrote; its docstring says how to run it. -->",
        f"Seeds {', '.join(map(str, seeds))}. Error, right / false pairs, seconds; means over seeds.",
        "",
        "| design | " + " | ".join(methods) + " |",
        "| --- " * (len(methods) + 1) + "|",
    ]

    def mean(method: str, cell: str, measure: str) -> float:
        return store.error(method, cell, seeds, measure)

    for cell in cells:
        parts = []
        for method in methods:
            error, right, false, seconds = (mean(method, cell, m) for m in ("error", "right", "false", "seconds"))
            parts.append(f"{error:.3g}, {right:.1f} / {false:.1f}, {seconds:.3g}" if np.isfinite(error) else "-")
        lines.append(f"| {cell} | " + " | ".join(parts) + " |")
    lines.append("")
    for ours in (method for method in methods if method.startswith("covey")):
        for rival in (method for method in methods if not method.startswith("covey")):
            for measure in ("error", "seconds"):
                with_pairs = [cell for cell, design in cells.items() if design.pairs]
                ratios = np.array([mean(ours, c, measure) / mean(rival, c, measure) for c in with_pairs])
                ratios = ratios[np.isfinite(ratios)]
                if ratios.size and not (rival == "oracle" and measure == "seconds"):
                    gmean = np.exp(np.log(ratios).mean())
                    lines.append(
                        f"{ours} to {rival}, {measure}: geometric mean {gmean:.3f}, worst {ratios.max():.3f}, "
                        f"{ratios.size} designs."
                    )
    for method in methods:
        additive = [c for c, design in cells.items() if not design.pairs]
        false = np.array([store.rows.get((method, c, s), {}).get("false", np.nan) for c in additive for s in seeds])
        false = false[np.isfinite(false)]
        if false.size:
            lines.append(f"{method}: no false pair in {np.mean(false == 0):.0%} of {false.size} additive truths.")
    for (method, reason), where in store.failures(methods, list(cells), seeds).items():
        lines.append(f"{method} has no result in {len(where)} runs, the first on {where[0]}: {reason}")
    return lines


def main() -> None:
    parser = arguments(__doc__, METHODS, list(range(100, 105)), "designs of 300 x 100, two seeds")
    parser.add_argument("--write", type=Path, help="a file for the report")
    args = parser.parse_args()
    cells = {name: design for name, design in designs().items() if not args.cells or any(c in name for c in args.cells)}
    seeds = args.seeds
    if args.quick:
        cells, seeds = {name: design for name, design in cells.items() if design.p == 100}, seeds[:2]
    store = Store(args.keep)
    problems = {name: lambda seed, design=design: make_problem(design, seed) for name, design in cells.items()}
    methods = {name: METHODS[name] for name in args.methods}
    if "covey" in methods:  # compiled before the clock starts
        covey(make_problem(Design(100, 10, 1.0, 1.0), 0))
    run_all(problems, methods, seeds, store, args.tag, lambda method, name: skip(method, cells[name]))
    shown = args.show or [method for method in METHODS if any(row[0] == method for row in store.rows)]
    lines = report(store, cells, seeds, shown)
    print("\n".join(lines))
    if args.write:
        args.write.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
