"""Survival times that join the suite: simulated cells, real data, and scikit-survival's Coxnet.

    run=".venv-bench/bin/python benchmarks/run_suite.py --join benchmarks/cox_cells.py --only"
    $run --methods covey "covey predict" adelie coxnet null

Simulated cells: 400 rows, 2000 columns in groups of five of which five are active, coefficients standard normal times
the signal, exponential times, 30% or 70% of them censored, rounded up to 60 distinct values so that there are ties. The
error is the deviance of the partial likelihood per event on 4000 fresh rows, above that of the true model. Real data:
nki70 (in the folder that COVEY_DATA names), and scikit-survival's GBSG2 and GSE7390. Settings were decided on seeds 0
to 9. What they print is in `results/cox.md`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from covey import survival
from suite.paths import N_PENALTIES, Models, by
from suite.problem import CannotRunError, Problem
from suite.survival import COX, drawn, problem_of

N_ROWS, N_COLUMNS, SIZE, ACTIVE, N_TEST = 400, 2000, 5, 5, 4000


def excess(y: np.ndarray, eta: np.ndarray) -> Callable[[np.ndarray], float]:
    """The deviance per event above that of known log risks."""
    least = COX.error(y, eta[:, None])
    return lambda mean: COX.error(y, mean) - least


def simulated(censored: float, signal: float, seed: int) -> Problem:
    rng = np.random.default_rng([seed, round(100 * censored), round(100 * signal)])
    X = rng.standard_normal((N_ROWS + N_TEST, N_COLUMNS))
    active = np.sort(rng.choice(N_COLUMNS // SIZE, ACTIVE, replace=False))
    eta = np.zeros(len(X))
    for group in active:
        eta += X[:, SIZE * group : SIZE * (group + 1)] @ (signal * rng.standard_normal(SIZE))
    y, labels = drawn(rng, eta, censored), np.repeat(np.arange(N_COLUMNS // SIZE), SIZE)
    return problem_of(X, y, labels, N_ROWS, excess(y[N_ROWS:], eta[N_ROWS:]), active=active)


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
    """Two thirds of the rows to fit, the others to test; the error is the deviance per event."""
    try:
        table, y, always = read()
    except (ImportError, OSError) as missing:
        raise CannotRunError(str(missing)) from None
    X, labels = encoded(table)
    train, test = train_test_split(np.arange(len(X)), test_size=1 / 3, random_state=seed, stratify=y["event"])
    kept = np.ptp(X[train], axis=0) > 0
    X, labels = X[:, kept], np.unique(labels[kept], return_inverse=True)[1]
    X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    fixed = tuple(k for k, name in enumerate(table) if name in always)
    error, order = partial(COX.error, y[test]), np.r_[train, test]
    return problem_of(X[order], y[order], labels, len(train), error, always=fixed)


def coxnet(problem: Problem, X: np.ndarray, y: np.ndarray, grid: np.ndarray | float) -> Models:
    """scikit-survival's lasso, which knows no groups."""
    from sksurv.linear_model import CoxnetSurvivalAnalysis

    penalty = (~np.isin(problem.labels, problem.always)).astype(float)
    options = {"n_alphas": N_PENALTIES, "alpha_min_ratio": grid} if isinstance(grid, float) else {"alphas": grid}
    model = CoxnetSurvivalAnalysis(l1_ratio=1.0, penalty_factor=penalty, **options)
    model.fit(X, y[["event", "time"]])
    coefs = np.full((len(grid) if not isinstance(grid, float) else len(model.alphas_), X.shape[1], 1), np.nan)
    coefs[: len(model.alphas_), :, 0] = model.coef_.T
    return Models(model.alphas_ if isinstance(grid, float) else grid, coefs, np.zeros((len(coefs), 1)))


PROBLEMS = {
    f"{round(100 * censored)}% censored, signal {signal:g}": partial(simulated, censored, signal)
    for signal in (1.0, 0.3)
    for censored in (0.3, 0.7)
} | {name: partial(real, read) for name, read in {"nki70": nki70, "GBSG2": gbsg2, "GSE7390": gse7390}.items()}
METHODS = {"coxnet": by(coxnet)}
