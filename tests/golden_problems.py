"""The problems on which the network's models are compared with recorded ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from covey import Groups
from covey.datasets import make_group_sparse

__all__ = ["ALGORITHMS", "PROBLEMS", "RULES", "Problem", "case_names"]

ALGORITHMS = ("single-stage", "two-stage")
RULES = ("cv", "ebic", "bic", "gcv", "discrepancy", "at-300")


@dataclass(frozen=True)
class Problem:
    """A regression problem as an estimator is given it."""

    X: Any
    y: Any
    groups: Any
    weight: Any = None


def published() -> Problem:
    """The paper's first experiment."""
    data = make_group_sparse(random_state=0)
    return Problem(data.X, data.y, 3)


def correlated() -> Problem:
    """Correlated columns, unequal effects, and as much noise as signal in the weakest group."""
    data = make_group_sparse(120, 200, 4, design="ar", active=5, values="normal", snr=4.0, random_state=1)
    return Problem(data.X, data.y, 4)


def weighted() -> Problem:
    """Rows that count differently, some of them not at all."""
    data = make_group_sparse(140, 240, 3, active=4, values="normal", snr=8.0, random_state=2)
    weight = np.random.default_rng(2).integers(0, 4, 140).astype(float)
    return Problem(data.X, data.y, 3, weight)


def overlapping() -> Problem:
    """Groups of four columns that share one with the next."""
    data = make_group_sparse(120, 121, 1, active=range(6, 13), values=2.0, sigma=1.0, random_state=3)
    lists = [list(range(a, a + 4)) for a in range(0, 118, 3)]
    return Problem(data.X, data.y, Groups.from_lists(lists, 121, overlap=True))


def sparse() -> Problem:
    """A sparse matrix, a tenth of it filled."""
    rng = np.random.default_rng(4)
    X = sp.random(200, 300, density=0.1, random_state=4, format="csr")
    coef = np.zeros(300)
    coef[:12] = rng.standard_normal(12)
    return Problem(X, X @ coef + 0.1 * rng.standard_normal(200), 3)


def wide() -> Problem:
    """More columns than are kept near, so that far groups are checked."""
    data = make_group_sparse(150, 4000, 4, active=4, values=2.0, sigma=0.5, random_state=5)
    return Problem(data.X, data.y, 4)


PROBLEMS = {make.__name__: make for make in (published, correlated, weighted, overlapping, sparse, wide)}


def case_names() -> list[tuple[str, str, str]]:
    """Problem, algorithm and rule of every case."""
    return [(problem, algorithm, rule) for problem in PROBLEMS for algorithm in ALGORITHMS for rule in RULES]
