"""A pilot fit that estimates which groups carry signal, and the noise level.

The model of least extended BIC on the limit path. It only supplies the theorems' quantities (u*, s, sigma) from data;
it is not an estimator to report.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from covey.designs import as_design
from covey.groups import Groups
from covey.paper.theory.blocks import fitted
from covey.search.limit_path import limit_path
from covey.validation import FloatArray, as_response, check_scale, whole

__all__ = ["Pilot", "pilot_fit"]

# A residual sum of squares below this share of that of the response is round-off error.
EXACT = 1e-18


@dataclass(frozen=True)
class Pilot:
    """Coefficients, the selected groups in order, and the residual standard deviation."""

    coef: FloatArray
    selected: tuple[int, ...]
    sigma: float


def pilot_fit(X: object, y: FloatArray, groups: Groups, *, max_groups: int = 25) -> Pilot:
    """The model of least EBIC on the limit path, on the columns as given and without an intercept.

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
    most = min(whole(max_groups, "max_groups"), groups.n_groups)
    y = np.asarray(as_response(y, n), dtype=np.float64)
    check_scale(y, "y")
    total = float(y @ y)
    best, least = Pilot(np.zeros(p), (), math.sqrt(total / n)), n * math.log(total / n) if total else math.inf
    path = limit_path(
        X, y, groups, max_groups=most, group_weights=np.sqrt(groups.sizes), standardize=False, fit_intercept=False
    )
    woken = [l for l, _ in path.entered]
    for s, coef in enumerate(path.coefs.toarray()):
        df = min(int(groups.sizes[woken[:s]].sum()), n)
        if s == 0 or df > n / 2:
            continue
        residual = y - fitted(X, coef)
        rss = float(residual @ residual)
        if rss <= EXACT * total:
            return Pilot(coef, tuple(woken[:s]), 0.0)
        score = n * math.log(rss / n) + df * math.log(n) + 2 * math.log(math.comb(groups.n_groups, s))
        if score < least:
            best, least = Pilot(coef, tuple(woken[:s]), math.sqrt(rss / max(n - df, 1))), score
    return best
