"""A pilot fit: which groups carry signal and how much noise there is, when nobody has said.

Forward selection of whole groups, refitted by least squares, stopped by the extended BIC. It is there to give the
theorems their numbers (u*, s, sigma) from data alone; it is not an estimator to report.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.groups import Groups
from covey.theory.blocks import correlate, dense_columns

__all__ = ["Pilot", "pilot_fit"]


@dataclass(frozen=True)
class Pilot:
    """Coefficients, the selected groups in order, and the residual standard deviation."""

    coef: NDArray[np.float64]
    selected: tuple[int, ...]
    sigma: float


def pilot_fit(X: Any, y: NDArray[np.float64], groups: Groups, *, max_groups: int = 25) -> Pilot:
    """Add the group with the largest ``norm(X_l'r/n)/sqrt(p_l)``, refit, and keep the model with the least EBIC.

    EBIC = n log(RSS/n) + df log n + 2 log(L choose s). Models use at most half of the rows.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((80, 40))
    >>> fit = pilot_fit(X, X[:, 4:8] @ np.ones(4) + 0.1 * rng.standard_normal(80), Groups.from_size(4, 40))
    >>> fit.selected, round(fit.sigma, 1)
    ((1,), 0.1)
    """
    n, p = X.shape
    root_size = np.sqrt(groups.sizes)
    lists = groups.lists()
    total = float(y @ y)
    best = Pilot(np.zeros(p), (), math.sqrt(total / n))
    if total == 0.0:
        return best
    best_score = n * math.log(total / n)
    chosen: list[int] = []
    residual = y
    for _ in range(min(max_groups, groups.n_groups)):
        scores = groups.norms(correlate(X, residual) / n) / root_size
        scores[chosen] = -1.0
        chosen.append(int(np.argmax(scores)))
        columns = np.concatenate([lists[l] for l in chosen])
        if columns.size > n / 2:
            break
        part = dense_columns(X, columns)
        weights, _, rank, _ = np.linalg.lstsq(part, y, rcond=None)
        residual = y - part @ weights
        rss = float(residual @ residual)
        coef = np.zeros(p)
        coef[columns] = weights
        fit = Pilot(coef, tuple(chosen), math.sqrt(rss / max(n - int(rank), 1)))
        # an exact fit: the log of its rounding error would mean nothing
        if rss <= 1e-24 * total:
            return Pilot(coef, tuple(chosen), 0.0)
        score = n * math.log(rss / n) + rank * math.log(n) + 2 * _log_choose(groups.n_groups, len(chosen))
        if score < best_score:
            best, best_score = fit, score
        elif len(chosen) > len(best.selected) + 3:
            break
    return best


def _log_choose(L: int, s: int) -> float:
    return math.lgamma(L + 1) - math.lgamma(s + 1) - math.lgamma(L - s + 1)
