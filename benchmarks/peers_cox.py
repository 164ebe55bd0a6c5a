"""Survival times: covey beside adelie's group lasso and scikit-survival's Coxnet.

Simulated cells: 400 rows, 2000 columns in groups of five of which five are active, coefficients standard normal times
the signal, exponential times, 30% or 70% of them censored, rounded up to 60 distinct values so that there are ties.
Measured on 4000 fresh rows: the deviance of the partial likelihood per event above that of the true model, the
concordance, true and false groups. Real data: nki70 (in the folder that COVEY_DATA names), and scikit-survival's GBSG2
and GSE7390; a third of the rows are test rows. All methods tune by the same five folds, on one thread: adelie and
Coxnet by the held-out difference of the partial likelihood (van Houwelingen), as covey does.

Settings are decided on seeds 0 to 9; `--reported` takes seeds 100 to 119. On one core:

    export OMP_NUM_THREADS=1 PYTHONPATH=src
    .venv-bench/bin/python benchmarks/peers_cox.py --reported --cache cox-cache --write benchmarks/results/cox.md
    ... --quick          two seeds of the simulated cells
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.linalg  # noqa: F401 - with a BLAS of its own, whose threads can only be limited once it is loaded
from sklearn.model_selection import StratifiedKFold, train_test_split
from threadpoolctl import threadpool_limits

from covey import GroupSparseCox, survival
from covey.estimators.concordance import concordance_index
from covey.losses import Cox
from covey.losses.cox import read_survival
from results_store import Store

N_ROWS, N_COLUMNS, SIZE, ACTIVE, N_TEST = 400, 2000, 5, 5, 4000
N_TIMES = 60
N_PENALTIES = 100
DECIDED, REPORTED = range(10), range(100, 120)
LOSS = Cox()


@dataclass
class Problem:
    """Training and test rows, columns group after group, and everyone's folds."""

    X: np.ndarray
    y: np.ndarray  # of covey.survival
    labels: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    always: list[int]
    active: np.ndarray | None = None
    eta_test: np.ndarray | None = None  # of the true model

    def folds(self) -> list[tuple[np.ndarray, np.ndarray]]:
        splitter = StratifiedKFold(5, shuffle=True, random_state=0)
        return list(splitter.split(self.X, self.y["event"]))


def simulated(seed: int, censored: float, signal: float) -> Problem:
    """Exponential times with a hazard of exp(eta), and exponential censoring."""
    rng = np.random.default_rng([seed, round(100 * censored), round(100 * signal)])
    n = N_ROWS + N_TEST
    X = rng.standard_normal((n, N_COLUMNS))
    active = np.sort(rng.choice(N_COLUMNS // SIZE, ACTIVE, replace=False))
    eta = np.zeros(n)
    for group in active:
        eta += X[:, SIZE * group : SIZE * (group + 1)] @ (signal * rng.standard_normal(SIZE))
    events, losses = rng.exponential(np.exp(-eta)), rng.exponential(1.0, n)
    # the share of the censored falls as losses come later
    low, high = -40.0, 40.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (losses * np.exp(middle) < events).mean() > censored else (low, middle)
    losses *= np.exp(high)
    seen = np.minimum(events, losses)
    steps = np.quantile(seen, np.linspace(0, 1, N_TIMES + 1)[1:])
    y = survival(steps[np.searchsorted(steps, seen * (1 - 1e-12))], events <= losses)
    labels = np.repeat(np.arange(N_COLUMNS // SIZE), SIZE)
    return Problem(X[:N_ROWS], y[:N_ROWS], labels, X[N_ROWS:], y[N_ROWS:], [], active, eta[N_ROWS:])


def nki70() -> tuple[pd.DataFrame, np.ndarray, list[str]]:
    """Seventy genes, each a group, and five clinical columns that are always in."""
    data = pd.read_csv(Path(os.environ.get("COVEY_DATA", "")) / "nki70.csv")
    y = survival(data["time"], data["event"])
    X = data.drop(columns=["time", "event"])
    return X, y, list(X.columns[:5])


def gbsg2() -> tuple[pd.DataFrame, np.ndarray, list[str]]:
    """The German breast cancer study."""
    from sksurv.datasets import load_gbsg2

    X, y = load_gbsg2()
    return X, survival(y["time"], y["cens"]), []


def gse7390() -> tuple[pd.DataFrame, np.ndarray, list[str]]:
    """Expressions of 76 genes, and clinical columns."""
    from sksurv.datasets import load_breast_cancer

    X, y = load_breast_cancer()
    return X, survival(y["t.tdm"], y["e.tdm"]), []


def encoded(X: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Categories as groups of indicators without the first level; every other column a group of its own."""
    parts, labels = [], []
    for group, name in enumerate(X):
        column = X[name]
        text = not pd.api.types.is_numeric_dtype(column)
        part = pd.get_dummies(column, drop_first=True).to_numpy(float) if text else column.to_numpy(float)[:, None]
        parts.append(part)
        labels += [group] * part.shape[1]
    return np.hstack(parts), np.array(labels)


def real(read: Callable[[], Any], seed: int) -> Problem:
    """Two thirds of the rows to fit, the others to test."""
    table, y, always = read()
    X, labels = encoded(table)
    train, test = train_test_split(np.arange(len(X)), test_size=1 / 3, random_state=seed, stratify=y["event"])
    kept = np.ptp(X[train], axis=0) > 0
    X, labels = X[:, kept], np.unique(labels[kept], return_inverse=True)[1]
    mean, scale = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - mean) / scale
    fixed = [k for k, name in enumerate(table) if name in always]
    return Problem(X[train], y[train], labels, X[test], y[test], fixed)


SIMULATED = {
    f"{round(100 * censored)}% censored, signal {signal:g}": (censored, signal)
    for signal in (1.0, 0.3)
    for censored in (0.3, 0.7)
}
REAL = {"nki70": nki70, "GBSG2": gbsg2, "GSE7390": gse7390}


def make(name: str, seed: int) -> Problem:
    return real(REAL[name], seed) if name in REAL else simulated(seed, *SIMULATED[name])


# ---------------------------------------------------------------------- methods: log risk of the test rows, and groups

Fitted = tuple[np.ndarray, np.ndarray, dict[str, float]]


def covey(problem: Problem, **settings: Any) -> Fitted:
    model = GroupSparseCox(problem.labels, selection=problem.folds(), always=problem.always, **settings)
    model.fit(problem.X, problem.y)
    return model.predict(problem.X_test), np.asarray(model.selected_groups_), {}


def adelie(problem: Problem) -> Fitted:
    """The group lasso on the columns as they are, square roots of group sizes as weights, 0 for those always in."""
    import adelie as ad

    starts = np.flatnonzero(np.r_[True, np.diff(problem.labels) > 0])
    sizes = np.diff(np.r_[starts, problem.labels.size])
    penalty = np.sqrt(sizes) * ~np.isin(np.arange(sizes.size), problem.always)

    def path(rows: np.ndarray, grid: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        y = problem.y[rows]
        glm = ad.glm.cox(np.full(rows.size, -1.0), y["time"].copy(), y["event"].astype(float), tie_method="efron")
        options: dict[str, Any] = {"lmda_path": grid} if grid is not None else {"lmda_path_size": N_PENALTIES}
        state = ad.grpnet(
            X=np.asfortranarray(problem.X[rows]), glm=glm, groups=starts, penalty=penalty, early_exit=False,
            intercept=False, min_ratio=1e-2, progress_bar=False, n_threads=1, **options,
        )  # fmt: skip
        return np.asarray(state.lmda_path), state.betas.toarray()

    return _tuned(problem, path)


def coxnet(problem: Problem) -> Fitted:
    """scikit-survival's lasso, which knows no groups."""
    from sksurv.linear_model import CoxnetSurvivalAnalysis

    penalty = (~np.isin(problem.labels, problem.always)).astype(float)

    def path(rows: np.ndarray, grid: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        options = {"n_alphas": N_PENALTIES, "alpha_min_ratio": 0.01} if grid is None else {"alphas": grid}
        model = CoxnetSurvivalAnalysis(l1_ratio=1.0, penalty_factor=penalty, **options)
        model.fit(problem.X[rows], problem.y[rows][["event", "time"]])
        return model.alphas_, model.coef_.T

    return _tuned(problem, path)


def _tuned(problem: Problem, path: Callable[..., tuple[np.ndarray, np.ndarray]]) -> Fitted:
    """The model of the path that the folds choose by the held-out difference of the partial likelihood."""
    begun = time.process_time()
    grid, coefs = path(np.arange(len(problem.X)), None)
    took = time.process_time() - begun
    rows = read_survival(problem.y).rows
    everything = LOSS.on(rows, np.ones(len(rows)))
    losses = np.zeros(grid.size)
    for train, _ in problem.folds():
        _, inner = path(train, grid)
        eta = problem.X @ inner.T
        weight = np.isin(np.arange(len(rows)), train).astype(float)
        own = everything.total(eta) - LOSS.on(rows, weight).total(eta)
        losses += np.r_[own, np.full(grid.size - own.size, np.inf)]
    coef = coefs[min(int(np.argmin(losses)), len(coefs) - 1)]
    groups = np.unique(problem.labels[coef != 0])
    return problem.X_test @ coef, groups, {"path_seconds": took}


METHODS: dict[str, Callable[[Problem], Fitted]] = {
    "covey": covey,
    "covey predict": lambda problem: covey(problem, rule="predict"),
    "adelie": adelie,
    "coxnet": coxnet,
}


def measured(problem: Problem, fitted: Fitted) -> dict[str, Any]:
    """Deviance per event above that of the true model, or of the model without columns; concordance; groups."""
    risk, groups, notes = fitted
    rows = read_survival(problem.y_test).rows
    ones = np.ones(len(rows))
    on = LOSS.on(rows, ones)
    reference = np.zeros(len(rows)) if problem.eta_test is None else problem.eta_test
    n_events = float(problem.y_test["event"].sum())
    out = {
        "error": float(on.deviance(risk) - on.deviance(reference)) / n_events,
        "concordance": concordance_index(rows, risk, ones),
        "groups": int(np.setdiff1d(groups, problem.always).size),
        **notes,
    }
    if problem.active is not None:
        out["false"] = int(np.setdiff1d(groups, problem.active).size)
        out["all_found"] = bool(np.isin(problem.active, groups).all())
    return out


def table(store: Store, cells: list[str], seeds: list[int], methods: list[str]) -> list[str]:
    """Means over seeds as Markdown; peers may have been run on fewer seeds, and are compared on those."""
    lines = []
    for cell in cells:
        known = cell in SIMULATED
        head = ["excess deviance", "all found", "false groups"] if known else ["deviance gained", "groups"]
        columns = ["method", "seeds", *head, "concordance", "seconds"]
        lines += ["", f"### {cell}", "", f"| {' | '.join(columns)} |", "|" + " --- |" * len(columns)]
        for method in methods:
            by_seed = [store.rows[method, cell, seed] for seed in seeds if (method, cell, seed) in store.rows]
            if by_seed:
                lines.append(f"| {method} | {len(by_seed)} | {' | '.join(cells_of(pd.DataFrame(by_seed), known))} |")
        both = [s for s in seeds if ("covey", cell, s) in store.rows and ("adelie", cell, s) in store.rows]
        if both:
            ours, theirs = store.error("covey", cell, both), store.error("adelie", cell, both)
            times = store.error("covey", cell, both, "seconds") / store.error("adelie", cell, both, "path_seconds")
            what, sign = ("excess deviance", 1) if known else ("deviance gained", -1)
            said = f"covey to adelie on {len(both)} common seeds: {what} {sign * ours:.3f} to {sign * theirs:.3f}"
            lines += ["", f"{said}, time of the fit to that of one path of adelie's {times:.2f}."]
    return lines


def cells_of(rows: pd.DataFrame, known: bool) -> list[str]:
    """A line of the table."""
    sign = 1 if known else -1
    out = [f"{sign * rows['error'].mean():.3f}"]
    out += (
        [f"{rows['all_found'].mean():.0%}", f"{rows['false'].mean():.2f}"]
        if known
        else [f"{rows['groups'].mean():.1f}"]
    )
    out.append(f"{rows['concordance'].mean():.3f} ± {rows['concordance'].sem():.3f}")
    seconds = f"{rows['seconds'].median():.2f}"
    return [*out, f"{seconds} (one path {rows['path_seconds'].median():.2f})" if "path_seconds" in rows else seconds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reported", action="store_true", help="the seeds that are reported")
    parser.add_argument("--quick", action="store_true", help="two seeds")
    parser.add_argument("--cells", nargs="+", help="words that names of cells contain")
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--seeds", type=int, help="so many of them")
    parser.add_argument("--cache", type=Path, help="folder in which results are kept, and not computed again")
    parser.add_argument("--write", type=Path, help="file for the tables")
    options = parser.parse_args()
    seeds = list(REPORTED if options.reported else DECIDED)[: 2 if options.quick else options.seeds]
    cells = [c for c in [*SIMULATED, *REAL] if not options.cells or any(word in c for word in options.cells)]
    store = Store(options.cache / "results.jsonl" if options.cache else None)
    for cell in cells:
        for seed in seeds:
            problem = make(cell, seed)
            for method in options.methods:
                if (method, cell, seed) in store.rows:
                    continue
                with threadpool_limits(1), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    begun = time.process_time()
                    fitted = METHODS[method](problem)
                    seconds = time.process_time() - begun
                store.add(method, cell, seed, keep=True, seconds=seconds, **measured(problem, fitted))
        print("\n".join(table(store, [cell], seeds, options.methods)), flush=True)
    if options.write:
        head = [
            "<!-- What benchmarks/peers_cox.py wrote; its docstring says how to run it and which seeds decided. -->"
        ]
        head += ["", "# Survival times", "", f"Seeds {seeds[0]} to {seeds[-1]}; processor seconds, one thread."]
        options.write.write_text("\n".join([*head, *table(store, cells, seeds, options.methods), ""]))


if __name__ == "__main__":
    main()
