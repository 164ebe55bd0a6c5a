"""Simulated problems with classes, counts and several responses, whose active groups and true means are known.

Groups of five columns, five of them active, coefficients standard normal times the signal; columns are independent or
autoregressive with 0.8 between neighbours. Counts have linear predictors of standard deviation 1 or 0.5 instead, for
exp(5) would be a count of hundreds; several responses have noise of variance 5 around a signal of variance 25.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from glm_families import FAMILIES, Family

N_TEST = 4000
N_FOLDS = 5
SIZE, ACTIVE = 5, 5


@dataclass
class Fit:
    """What a method gives: means on the test rows, rows x outputs, and the groups in the model where it has such."""

    mean: np.ndarray
    groups: np.ndarray | None = None
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass
class GlmProblem:
    """Training rows, columns group after group, everyone's folds, and the measures of predictions on the test rows."""

    family: Family
    X: np.ndarray
    y: np.ndarray  # labels 0, 1, ...; counts; or rows x responses
    labels: np.ndarray  # 0, 1, ... in order
    X_test: np.ndarray
    measure: Callable[[Fit], dict[str, Any]]
    fold_of: np.ndarray
    outputs: int = 1
    active: np.ndarray | None = None  # indices of the true groups
    names: list[str] | None = None  # of the groups

    @cached_property
    def starts(self) -> np.ndarray:
        return np.flatnonzero(np.r_[True, np.diff(self.labels) > 0])

    @cached_property
    def n_groups(self) -> int:
        return int(self.labels[-1]) + 1

    @cached_property
    def independent(self) -> np.ndarray:
        """Columns for methods that cannot do with dependent ones; found once, so that it is not timed."""
        return independent(self.X, self.labels)

    def score(self, fit: Fit) -> dict[str, Any]:
        return self.measure(fit) | fit.notes


def independent(X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Columns that are no combination of a constant and earlier columns of their group.

    abess refuses constant columns, and its Newton steps go wrong on a factor that has all its levels.
    """
    used = []
    for columns in np.split(np.arange(X.shape[1]), np.flatnonzero(np.diff(labels)) + 1):
        basis = np.full((len(X), 1), len(X) ** -0.5)
        for j in columns:
            part = X[:, j] - basis @ (basis.T @ X[:, j])
            part -= basis @ (basis.T @ part)
            length = np.linalg.norm(part)
            if length > 1e-7 * np.linalg.norm(X[:, j]):
                used.append(j)
                basis = np.column_stack([basis, part / length])
    return np.array(used)


def folds(family: Family, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The fold of each row; classes are spread evenly over folds."""
    if not family.classes:
        return rng.permutation(len(y)) % N_FOLDS
    splitter = StratifiedKFold(N_FOLDS, shuffle=True, random_state=int(rng.integers(2**31)))
    fold_of = np.empty(len(y), dtype=int)
    for fold, (_, out) in enumerate(splitter.split(np.zeros((len(y), 1)), y)):
        fold_of[out] = fold
    return fold_of


# ---------------------------------------------------------------------- simulated cells


@dataclass(frozen=True)
class Cell:
    """One kind of simulated problem."""

    family: str
    n: int
    p: int
    rho: float
    signal: float

    @property
    def table(self) -> str:
        """Cells that a goal is stated for together."""
        return f"{self.family} {self.n}x{self.p}"

    def __str__(self) -> str:
        return f"{self.table} {f'AR({self.rho:g})' if self.rho else 'iid'} signal {self.signal:g}"


SHAPES = (
    ("binomial", 500, 2000), ("binomial", 500, 10_000), ("poisson", 500, 2000), ("multinomial", 500, 2000),
    ("several", 300, 1000),
)  # fmt: skip
CELLS = {
    str(cell): cell
    for cell in (Cell(*shape, rho, signal) for shape in SHAPES for rho in (0.0, 0.8) for signal in (1.0, 0.5))
}
OUTPUTS = {"multinomial": 3, "several": 5}


def autoregressive(rng: np.random.Generator, rows: int, p: int, rho: float) -> np.ndarray:
    X = rng.standard_normal((rows, p))
    if rho:
        X[:, 1:] *= np.sqrt(1 - rho * rho)
        for j in range(1, p):
            X[:, j] += rho * X[:, j - 1]
    return X


def drawn(rng: np.random.Generator, cell: Cell, eta: np.ndarray) -> np.ndarray:
    """Responses, given true linear predictors."""
    mean = FAMILIES[cell.family].mean(eta)
    if cell.family == "binomial":
        return (rng.random(len(eta)) < mean[:, 0]).astype(float)
    if cell.family == "multinomial":
        return np.minimum((rng.random((len(eta), 1)) > np.cumsum(mean, axis=1)).sum(axis=1), eta.shape[1] - 1)
    if cell.family == "poisson":
        return rng.poisson(mean[:, 0]).astype(float)
    return eta + np.sqrt(5.0) * rng.standard_normal(eta.shape)


def make_simulated(cell: Cell, seed: int) -> GlmProblem:
    """Draw a problem of a cell."""
    rng = np.random.default_rng([seed, *str(cell).encode()])
    family, outputs = FAMILIES[cell.family], OUTPUTS.get(cell.family, 1)
    labels = np.repeat(np.arange(cell.p // SIZE), SIZE)
    X = autoregressive(rng, cell.n + N_TEST, cell.p, cell.rho)
    active = np.sort(rng.permutation(labels[-1] + 1)[:ACTIVE])
    columns = np.flatnonzero(np.isin(labels, active))
    eta = X[:, columns] @ rng.standard_normal((columns.size, outputs))
    eta *= cell.signal / eta.std() if cell.family == "poisson" else cell.signal
    y = drawn(rng, cell, eta)[: cell.n]
    truth = family.mean(eta[cell.n :])

    def measure(fit: Fit) -> dict[str, Any]:
        measures: dict[str, Any] = {"error": family.excess(truth, fit.mean)}
        if fit.groups is not None:
            found = np.isin(fit.groups, active).sum()
            measures |= {"false": int(len(fit.groups) - found), "missed": int(ACTIVE - found)}
        return measures

    return GlmProblem(family, X[: cell.n], y, labels, X[cell.n :], measure, folds(family, y, rng), outputs, active)
