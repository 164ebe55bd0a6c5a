"""A pilot fit that estimates which groups carry signal, and the noise level.

Forward selection of groups with least-squares refits, stopped by the extended BIC. It only supplies the theorems'
quantities (u*, s, sigma) from data; it is not an estimator to report.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.designs import Design, SparseDesign, as_design
from covey.groups import Groups
from covey.paper.theory.blocks import correlate
from covey.validation import FloatArray, as_response, check_scale, whole

__all__ = ["Pilot", "pilot_fit"]


@dataclass(frozen=True)
class Pilot:
    """Coefficients, the selected groups in order, and the residual standard deviation."""

    coef: FloatArray
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
    X = as_design(X)
    if not isinstance(groups, Groups):
        raise ValueError(f"groups must be a covey.Groups, not a {type(groups).__name__}.")
    n, p = X.shape
    if groups.n_columns != p:
        raise ValueError(f"groups are for {groups.n_columns} columns, but X has {p}.")
    max_groups = whole(max_groups, "max_groups")
    y = np.asarray(as_response(y, n), dtype=np.float64)
    check_scale(y, "y")
    root_size = np.sqrt(groups.sizes)
    lists = groups.lists()
    total = float(y @ y)
    best = Pilot(np.zeros(p), (), math.sqrt(total / n))
    if total == 0.0:
        return best
    best_score = n * math.log(total / n)
    chosen: list[int] = []
    refit = _Refit(X, y) if X.reads_columns or isinstance(X, SparseDesign) else _GramRefit(X, y)
    for _ in range(min(max_groups, groups.n_groups)):
        scores = groups.norms(refit.correlation / n) / root_size
        scores[chosen] = -1.0
        chosen.append(int(np.argmax(scores)))
        columns = np.concatenate([lists[l] for l in chosen])
        if columns.size > n / 2:
            break
        weights, rank, rss = refit.on(columns)
        coef = np.zeros(p)
        coef[columns] = weights
        fit = Pilot(coef, tuple(chosen), math.sqrt(rss / max(n - rank, 1)))
        # an exact fit: the log of its round-off error would be meaningless
        if rss <= refit.rounding * total:
            return Pilot(coef, tuple(chosen), 0.0)
        score = n * math.log(rss / n) + rank * math.log(n) + 2 * _log_choose(groups.n_groups, len(chosen))
        if score < best_score:
            best, best_score = fit, score
        elif len(chosen) > len(best.selected) + 3:
            break
    return best


class _Refit:
    """Least squares on selected columns; `correlation` is then ``X'`` times the residual."""

    rounding = 1e-24

    def __init__(self, X: Design, y: FloatArray) -> None:
        self.X, self.y = X, y
        self.correlation = correlate(X, y)

    def on(self, columns: NDArray[np.intp]) -> tuple[FloatArray, int, float]:
        """Weights, rank and residual sum of squares."""
        part = self.X.take(columns)
        weights, _, rank, _ = np.linalg.lstsq(part, self.y, rcond=None)
        residual = self.y - part @ weights
        self.correlation = correlate(self.X, residual)
        return weights, int(rank), float(residual @ residual)


class _GramRefit:
    """The same from Gram rows, for designs whose columns do not fit in memory; columns are only ever appended."""

    # squared residuals lose twice as many digits here
    rounding = 1e-12

    def __init__(self, X: Design, y: Any) -> None:
        self.X, self.n = X, X.shape[0]
        self.total = float(y @ y)
        self.first = self.correlation = correlate(X, y)
        self.rows = np.empty((0, X.shape[1]))

    def on(self, columns: NDArray[np.intp]) -> tuple[FloatArray, int, float]:
        """Weights, rank and residual sum of squares."""
        new = columns[self.rows.shape[0] :]
        self.rows = np.concatenate([self.rows, self.X.correlate(self.X.take(new).T)])
        G, c = self.rows[:, columns], self.first[columns]
        weights, _, rank, _ = np.linalg.lstsq(G, c, rcond=None)
        self.correlation = self.first - weights @ self.rows
        return weights, int(rank), max(self.total - 2 * float(weights @ c) + float(weights @ G @ weights), 0.0)


def _log_choose(L: int, s: int) -> float:
    return math.lgamma(L + 1) - math.lgamma(s + 1) - math.lgamma(L - s + 1)
