"""Random correlated problems on which the two engines of the network must agree.

``python tools/robustness.py --engines 500`` tries many of them; the suite tries a few.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from covey import Groups, GroupSparseRegressor, Network
from covey.selection import HoldOut

__all__ = ["apart", "problem"]


def problem(seed: int) -> tuple[Any, Any, Groups]:
    """Correlated columns of one of three kinds, groups of one size or several, a few of them with an effect."""
    rng = np.random.default_rng([seed, 21])
    n, n_groups = int(rng.integers(50, 150)), int(rng.integers(8, 60))
    sizes = rng.integers(1, 6, n_groups) if rng.random() < 0.5 else np.full(n_groups, int(rng.integers(1, 6)))
    p, rho = int(sizes.sum()), float(rng.choice([0.0, 0.3, 0.6, 0.9]))
    X = rng.standard_normal((n, p))
    kind = rng.integers(3)
    if kind == 0:
        X = np.sqrt(1 - rho) * X + np.sqrt(rho) * rng.standard_normal((n, 1))
    elif kind == 1:
        for j in range(1, p):
            X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho * rho) * X[:, j]
    else:
        X = X + rho * rng.standard_normal((n, n_groups)).repeat(sizes, axis=1)
    groups = Groups.from_sizes(sizes.tolist())
    coef = np.zeros(p)
    for l in rng.choice(n_groups, int(rng.integers(1, max(2, n_groups // 4))), replace=False):
        coef[groups.members[groups.starts[l] : groups.starts[l + 1]]] = rng.standard_normal(sizes[l])
    signal = X @ coef
    return X, signal + float(rng.choice([0.1, 0.5, 1.5])) * signal.std() * rng.standard_normal(n), groups


def apart(seed: int, **options: Any) -> tuple[float, bool]:
    """How far the predictions of the two engines' models are apart, in units of y, and whether the groups differ.

    A group that has just woken up in one engine, at less than a hundredth of the spread of y, may sleep in the other.
    """
    X, y, groups = problem(seed)
    made = [
        GroupSparseRegressor(groups, network=Network(engine=engine, max_iter=20_000, **options), selection=HoldOut())
        .fit(X, y) for engine in ("exact", "screened")
    ]  # fmt: skip
    exact, screened = (model.predict(X) for model in made)
    norms = np.array([model.group_norms_ for model in made])
    differ = bool((((norms > 0).sum(axis=0) == 1) & (norms.max(axis=0) > 1e-2 * y.std())).any())
    return float(np.abs(exact - screened).max() / y.std()), differ
