"""The grid that decides: correlated, noisy, dense and oddly grouped problems, covey beside its rivals.

Every method sees the same training rows and chooses its model on the same validation rows; the prediction error is
``mean((X w - X w*)^2)`` over fresh rows, which leaves the noise out. A cell is a design, a signal-to-noise ratio, a
sparsity and a layout of groups; its error is the mean over seeds. The results of covey 0.1.0 (its default, a mean of
models, and the network's plain path) are read from `results/hard-0.1.0.jsonl`.

Settings are decided on seeds 101 and 102; results are reported on 201, 202 and 203. On one core:

    OMP_NUM_THREADS=1 PYTHONPATH=src .venv-bench/bin/python benchmarks/hard.py --keep hard.jsonl --seeds 201 202 203
    ... --quick --methods covey      every fifth cell, one seed, rivals from the file where it has them
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from rivals import OURS, PEERS
from suite.families import FAMILIES
from suite.paths import adelie, adelie_orthonormal, by, relaxed
from suite.problem import Fit, Method, Problem
from suite.problems import autoregressive as autoregressive_columns
from suite.store import Store, arguments, print_all, run_all

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


# ---------------------------------------------------------------------- designs: rows of p columns


def iid(rng, rows, labels):
    return rng.standard_normal((rows, labels.size))


def rademacher(rng, rows, labels):
    return rng.choice([-1.0, 1.0], (rows, labels.size))


def autoregressive(rho):
    return lambda rng, rows, labels: autoregressive_columns(rng, rows, labels.size, rho)


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


def make_problem(cell: Cell, seed: int, n: int = 200, p: int = 1000) -> Problem:
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
    judges, test, family = slice(n, n + n_val), slice(n + n_val, None), FAMILIES["gaussian"]
    error = partial(family.excess, signal[test, None])
    validation = (X[judges], y[judges])
    return Problem(family, X[:n], y[:n], labels, X[test], error, validation=validation, active=np.sort(active))


# ---------------------------------------------------------------------- methods and tables


def network(problem: Problem) -> Fit:
    """The paper's network from a small start, its path stopped by the validation rows, nothing else."""
    from covey import Groups
    from covey.paper import NetworkRegressor
    from covey.selection import HoldOut

    stopping = HoldOut(validation=problem.validation)
    model = NetworkRegressor(Groups.from_labels(problem.labels), stopping=stopping).fit(problem.X, problem.y)
    return problem.linear(model.coef_[:, None], model.intercept_)


def oracle(problem: Problem) -> Fit:
    """Least squares on the true groups where there are more rows than columns, else ridge of the best penalty."""
    on = np.isin(problem.labels, problem.active)
    mean, level = problem.X[:, on].mean(axis=0), problem.y.mean()
    U, s, Vt = np.linalg.svd(problem.X[:, on] - mean, full_matrices=False)
    penalties = s[0] * np.r_[1e-8, np.geomspace(1e-2, 1e1, 20)][:, None]
    coefs = (s * (U.T @ (problem.y - level)) / (s * s + penalties**2)) @ Vt
    X_val, y_val = problem.validation
    errors = np.mean((y_val - level - coefs @ (X_val[:, on] - mean).T) ** 2, axis=1)
    coef = np.zeros((problem.labels.size, 1))
    coef[on, 0] = coefs[np.argmin(errors)]
    return problem.linear(coef, level - mean @ coef[on])


METHODS: dict[str, Method] = {
    "group lasso": by(adelie, adelie_orthonormal),
    "relaxed group lasso": by(relaxed(adelie), relaxed(adelie_orthonormal)),
    "adaptive group lasso": PEERS["adaptive"],
    **{name: PEERS[name] for name in ("group MCP", "group SCAD", "abess", "mean")},
    **OURS,
    "covey network": network,
    "oracle": oracle,
}
RIVALS = [
    "group lasso", "relaxed group lasso", "adaptive group lasso", "group MCP", "group SCAD", "abess", "plain 0.1.0"
]  # fmt: skip
# those without concave penalties and adaptive weights, which were added later
FIRST_RIVALS = ["group lasso", "relaxed group lasso", "abess", "plain 0.1.0"]
REFERENCE = Path(__file__).parent / "results" / "hard-0.1.0.jsonl"


def skip(method: str, cell: str) -> str | None:
    return "takes minutes where all columns share a factor" if method == "covey network" and "equi" in cell else None


def print_discoveries(store: Store, names: list[str], methods: list[str], seeds: list[int]) -> None:
    """The share of false groups among those selected, and of active groups that are, by signal-to-noise ratio."""
    print("\n| signal to noise | method | false of selected | selected of active |")
    print("| --- | --- | --- | --- |")
    for snr in SNRS:
        cells = [name for name in names if f" snr={snr:g} " in name]
        for method in methods:
            rows = [store.rows.get((method, name, seed), {}) for name in cells for seed in seeds]
            rows = [row for row in rows if "false" in row]
            if rows:
                false = np.mean([row["false"] / max(row["groups"], 1) for row in rows])
                right = np.array([row["groups"] - row["false"] for row in rows])
                power = np.mean(right / np.maximum(right + [row["missed"] for row in rows], 1))
                print(f"| {snr:g} | {method} | {false:.2f} | {power:.2f} |")


def report(store: Store, names: list[str], asked: list[str] | None, seeds: list[int], brief: bool) -> None:
    """Errors relative to the best rival, then each method relative to 0.1.0 and to the group lasso."""
    shown = print_all(store, names, asked, RIVALS, seeds, "cell", brief)
    errors = {method: np.array([store.error(method, name, seeds) for name in names]) for method in shown}
    known = [rival for rival in FIRST_RIVALS if rival in errors]
    if known:
        best = np.nanmin([errors[rival] for rival in known], axis=0)
        close = {method: np.mean(errors[method] <= 1.05 * best) for method in shown if method not in known}
        parts = ", ".join(f"{method} {share:.0%}" for method, share in close.items())
        print(f"within 5% of the best of {', '.join(known)}: {parts}")
    for method in shown:
        for base in ("0.1.0", "group lasso"):
            if method != base:
                ratio = errors[method] / np.array([store.error(base, name, seeds) for name in names])
                ratio = ratio[np.isfinite(ratio)]
                if ratio.size:
                    mean = np.exp(np.log(ratio).mean())
                    middle, worst = np.median(ratio), ratio.max()
                    print(f"{method} / {base}: geometric mean {mean:.3f}, median {middle:.3f}, worst {worst:.2f}")
    print_discoveries(store, names, shown, seeds)


def main() -> None:
    parser = arguments(__doc__, METHODS, [101, 102], "every fifth cell")
    args = parser.parse_args()
    cells = [Cell(*values) for values in itertools.product(DESIGNS, SNRS, ACTIVE, SIZES)]
    cells = cells[::5] if args.quick else cells
    cells = [c for c in cells if not args.cells or any(part in str(c) for part in args.cells)]
    store = Store(args.keep, REFERENCE)
    problems = {str(cell): lambda seed, cell=cell: make_problem(cell, seed) for cell in cells}
    run_all(problems, {name: METHODS[name] for name in args.methods}, args.seeds, store, args.tag, skip)
    report(store, list(problems), args.show, args.seeds, args.brief)


if __name__ == "__main__":
    main()
