"""Problems on which the plain path goes wrong, for tests of selection."""

from __future__ import annotations

import numpy as np

from covey import Groups

__all__ = ["autoregressive", "equicorrelated", "misleading"]


def autoregressive(rng: np.random.Generator, n: int, p: int, rho: float = 0.9) -> np.ndarray:
    """Rows in which neighbouring columns have correlation rho."""
    X = rng.standard_normal((n, p))
    X[:, 1:] *= np.sqrt(1 - rho**2)
    for j in range(1, p):
        X[:, j] += rho * X[:, j - 1]
    return X


def equicorrelated(rng: np.random.Generator, n: int, p: int, rho: float = 0.5) -> np.ndarray:
    """Rows in which any two columns have correlation rho."""
    return np.sqrt(1 - rho) * rng.standard_normal((n, p)) + np.sqrt(rho) * rng.standard_normal((n, 1))


def misleading(n: int = 150, p: int = 120, noise: float = 0.5, seed: int = 0):
    """An AR(0.9) design in groups of 3 where group 20, which lies between the true ones 19 and 21, wakes first."""
    rng = np.random.default_rng(seed)
    X = autoregressive(rng, n, p)
    groups = Groups.from_size(3, p)
    w = np.zeros(p)
    w[groups.lists()[19]] = w[groups.lists()[21]] = 1.0
    w[groups.lists()[3]] = (0.8, -0.8, 0.8)
    return X, X @ w + noise * rng.standard_normal(n), groups, w
