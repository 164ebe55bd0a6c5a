"""About 70 fits whose models are recorded.

`python tests/search/frozen_cases.py FILE` records the models of the installed version.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import covey
from covey import GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor
from covey.selection import HoldOut, Size


def simulate(seed: int, n: int, p: int, size: int, active: int, rho: float = 0.0) -> tuple[Any, Any, Any]:
    """Columns in groups of equal size, the linear predictor of some of them, and the generator."""
    rng = np.random.default_rng([77, seed, n, p])
    X = rng.standard_normal((n, p))
    if rho:
        X = np.sqrt(1 - rho) * X + np.sqrt(rho) * rng.standard_normal((n, 1))
    groups = rng.choice(p // size, active, replace=False)
    w = np.zeros((p // size, size))
    w[groups] = rng.standard_normal((active, size))
    eta = X @ w.ravel()
    return X, eta / eta.std(), rng


def response(name: str, eta: Any, rng: Any, noise: float) -> Any:
    """A response of some kind with this linear predictor."""
    n = len(eta)
    if name == "cox":
        time, censored = rng.exponential(np.exp(-eta / noise)), rng.exponential(2.0, n)
        return covey.survival(np.minimum(time, censored), time <= censored)
    y = {
        "squared": lambda: 3.0 + eta + noise * rng.standard_normal(n),
        "huber": lambda: eta + noise * rng.standard_normal(n),
        "poisson": lambda: rng.poisson(np.exp(0.5 + 0.8 * eta)).astype(float),
        "gamma": lambda: rng.gamma(2.0, np.exp(0.5 * eta) / 2),
        "binomial": lambda: (rng.random(n) < 1 / (1 + np.exp(-2 * eta / noise))).astype(int),
        "classes": lambda: np.array(list("abc"))[np.digitize(eta + noise * rng.logistic(size=n), [-0.8, 0.8])],
        "several": lambda: np.column_stack([eta, -0.5 * eta, 0.3 * eta]) + noise * rng.standard_normal((n, 3)),
    }[name]()
    if name == "huber":
        y[: n // 20] += 20
    return y


def estimator(name: str, **options: Any) -> Any:
    """The estimator of a kind of response."""
    if name in ("binomial", "classes"):
        return GroupSparseClassifier(**options)
    if name == "cox":
        return GroupSparseCox(**options)
    loss = {"several": "squared"}.get(name, name)
    return GroupSparseRegressor(loss=loss, **options)


def case(
    name: str,
    seed: int = 0,
    *,
    shape: tuple[int, int, int, int] = (100, 60, 3, 3),
    noise: float = 0.7,
    rho: float = 0.0,
    fit: Callable[..., dict[str, Any]] = lambda rng, n: {},
    change: Callable[[Any], Any] = lambda X: X,
    **options: Any,
) -> Callable[[], Any]:
    """A fit to run later."""

    def run() -> Any:
        n, p, size, active = shape
        X, eta, rng = simulate(seed, n, p, size, active, rho)
        y = response(name, eta, rng, noise)
        return estimator(name, **{"groups": size, **options}).fit(change(X), y, **fit(rng, n))

    return run


KINDS = ("squared", "huber", "poisson", "gamma", "binomial", "classes", "several", "cox")
QUICK_KINDS = ("squared", "huber", "poisson", "binomial", "several")


def weights(rng: Any, n: int) -> dict[str, Any]:
    """Row weights, some of them zero."""
    return {"sample_weight": rng.integers(0, 4, n).astype(float)}


def offset(rng: Any, n: int) -> dict[str, Any]:
    """An offset."""
    return {"offset": 0.3 * rng.standard_normal(n)}


def overlapping(p: int) -> Any:
    """Groups of four columns that share one with the next."""
    lists = [list(range(a, min(a + 4, p))) for a in range(0, p - 1, 3)]
    return covey.Groups.from_lists(lists, p, overlap=True)


def one_hot(X: Any) -> Any:
    """Rank-deficient groups: the signs of columns with their complements."""
    return np.hstack([(X[:, :30] > 0), (X[:, :30] <= 0)]).astype(float)[:, np.arange(60).reshape(2, 30).T.ravel()]


CASES: dict[str, Callable[[], Any]] = {
    **{f"{kind}, five folds": case(kind, 1) for kind in KINDS},
    **{f"{kind}, little noise": case(kind, 2, noise=0.15) for kind in QUICK_KINDS},
    **{
        f"{kind}, wide": case(kind, 3, shape=(120, 1500, 5, 3), noise=0.4) for kind in ("squared", "several", "poisson")
    },
    **{f"{kind}, wide": case(kind, 3, shape=(160, 1200, 4, 3), noise=0.6) for kind in ("binomial", "cox")},
    **{f"{kind}, hold-out": case(kind, 4, selection=HoldOut(0.25, random_state=3)) for kind in KINDS},
    **{f"{kind}, ebic": case(kind, 5, selection="ebic") for kind in KINDS},
    **{f"{kind}, weights": case(kind, 7, fit=weights) for kind in ("squared", "poisson", "binomial", "several")},
    **{f"{kind}, offset": case(kind, 8, fit=offset) for kind in ("squared", "poisson")},
    **{f"{kind}, always": case(kind, 9, always=[0, 4]) for kind in ("squared", "binomial")},
    **{f"{kind}, overlap": case(kind, 10, groups=overlapping(60)) for kind in ("squared", "binomial")},
    **{f"{kind}, indicators": case(kind, 14, change=one_hot, groups=4) for kind in ("squared", "poisson")},
    "squared, four groups": case("squared", 15, selection=Size(4)),
    "binomial, two groups": case("binomial", 15, selection=Size(2)),
    "squared, bic": case("squared", 16, selection="bic", noise=1.5),
    "squared, predict": case("squared", 17, rule="predict", noise=1.5),
    "binomial, predict": case("binomial", 17, rule="predict", noise=1.5),
    "squared, tall": case("squared", 18, shape=(2500, 40, 2, 5), noise=3.0),
    "squared, pure noise": case("squared", 19, noise=1e6),
    "squared, dense": case("squared", 20, shape=(120, 100, 5, 20), noise=1.0),
    "squared, wide and dense": case("squared", 21, shape=(100, 1500, 5, 300), noise=0.5),
    "squared, factor": case("squared", 22, shape=(120, 600, 4, 3), rho=0.5, noise=0.3),
    "binomial, factor": case("binomial", 22, shape=(160, 600, 4, 3), rho=0.5),
    "squared, columns": case("squared", 23, standardize="column", group_weights="sqrt"),
    "squared, no intercept": case("squared", 24, fit_intercept=False),
    "poisson, no intercept": case("poisson", 24, fit_intercept=False),
    "squared, float32": case("squared", 25, change=lambda X: X.astype(np.float32)),
}


def record(model: Any) -> dict[str, Any]:
    """What is compared: the recipe, the groups, the coefficients, and the held-out error if rows were held out."""
    coef = np.atleast_2d(model.coef_)
    columns = np.flatnonzero(coef.any(axis=0))
    table = model.candidates_
    name = next((name for name in ("mse", "deviance") if name in table), None)
    error = None
    if name and model.n_splits_:
        error = float(f"{table[name] @ (table['weight'] / table['weight'].sum()):.9g}")
    return {
        "recipe": model.recipe_,
        "error": error,
        "groups": sorted(str(name) for name in model.selected_groups_),
        "columns": columns.tolist(),
        "coef": [float(f"{value:.12g}") for value in coef[:, columns].ravel()],
        "intercept": [float(f"{value:.12g}") for value in np.atleast_1d(getattr(model, "intercept_", 0.0))],
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    records = {name: record(run()) for name, run in CASES.items()}
    with open(sys.argv[1], "w") as file:
        json.dump(records, file, indent=None, separators=(",", ":"))
        file.write("\n")
