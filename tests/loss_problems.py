"""Responses of every kind on grouped columns, and a quadratic loss that is not one of covey's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from covey import Groups, GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor, survival
from covey.losses import Loss
from covey.selection import Folds

__all__ = ["KINDS", "MAIN", "SLOW", "Quadratic", "estimator", "grouped_problem"]

# Every way to choose with these, and fewer with the others: a way is the same for every loss.
MAIN, SLOW = ("squared", "survival", "poisson", "two classes", "several"), ("quantile", "quantiles", "ordered classes")

# responses with the loss that fits them; None for the usual one of the classifier
KINDS = {
    "huber": "huber",
    "quantile": "quantile",
    "quantiles": "multi-quantile",
    "poisson": "poisson",
    "negative-binomial": "negative-binomial",
    "gamma": "gamma",
    "tweedie": "tweedie",
    "proportions": "binomial",
    "several": "squared",
    "two classes": None,
    "three classes": None,
    "ordered classes": "ordinal",
}


@dataclass(frozen=True)
class Quadratic(Loss):
    """Squared loss again, written by someone who does not know that there is one."""

    name = "quadratic"
    unpenalised = "least squares"

    def value(self, y, eta):
        return (y - eta) ** 2 / 2

    def residual(self, y, eta):
        return y - eta

    def curvature(self, y, eta):
        return np.ones(np.broadcast_shapes(np.shape(y), np.shape(eta)))


def estimator(kind, groups=None, **options):
    """The estimator of a kind of response, with three folds."""
    options = {"selection": Folds(3, deals=2 if kind in MAIN else 1), **options}
    if "survival" in kind:
        return GroupSparseCox(groups, **options)
    loss = KINDS.get(kind, "squared")
    if loss in (None, "ordinal"):
        return GroupSparseClassifier(groups, loss=loss or "multinomial", **options)
    return GroupSparseRegressor(groups, loss=loss, **options)


def grouped_problem(kind, noise="weak", n=60, n_groups=13, seed=0):
    """Groups of 1 to 4 correlated columns, three of them with signal; X, y and the groups."""
    rng = np.random.default_rng(seed)
    groups = Groups.from_sizes(rng.integers(1, 5, n_groups))
    X = rng.standard_normal((n, groups.n_columns)) + 0.4 * rng.standard_normal((n, 1))
    outputs = 3 if kind in ("several", "three classes") else 1
    signal = sum(X[:, groups.lists()[l]] @ rng.choice([-1.0, 1.0], (groups.sizes[l], outputs)) for l in (2, 7, 11))
    signal = signal / signal.std(axis=0)
    size = {"weak": 1.0, "strong": 0.35}[noise]
    eta = signal[:, 0]
    if "survival" in kind:
        death, lost = rng.exponential(np.exp(-size * eta)), rng.exponential(2.0, n)
        time = np.minimum(death, lost) + 0.01
        if kind == "survival":
            return X, survival(time, death <= lost), groups
        time = np.ceil(8 * time) / 8  # tied, in strata, with entry times
        start = np.maximum(time - rng.uniform(0.2, 2.0, n), 0.0) * (rng.random(n) < 0.6)
        return X, survival(time, death <= lost, start=start, strata=np.array(["a", "b"])[rng.integers(0, 2, n)]), groups
    spread, spreads = {"weak": (0.1, 0.3), "strong": (1.2, 1.0)}[noise]
    y = {
        "squared": lambda: 1.0 + eta + spread * rng.standard_normal(n),
        "several": lambda: 1.0 + size * signal + spreads * rng.standard_normal((n, 3)),
        "two classes": lambda: np.where(rng.random(n) < expit(2.5 * size * eta), "yes", "no"),
        "three classes": lambda: np.array(list("abc"))[(2.5 * size * signal + rng.gumbel(size=(n, 3))).argmax(axis=1)],
        "ordered classes": lambda: np.array([1, 3, 4, 9])[
            np.digitize(2.5 * size * eta + rng.logistic(size=n), [-1.5, 0.0, 2.0])
        ],
        "proportions": lambda: rng.binomial(10, expit(1.5 * size * eta)) / 10,
        "poisson": lambda: rng.poisson(np.exp(1.0 + size * eta)).astype(float),
        "negative-binomial": lambda: rng.negative_binomial(3, 3 / (3 + np.exp(1.0 + size * eta))).astype(float),
        "tweedie": lambda: rng.poisson(np.exp((1 + size * eta) / 2)) * np.exp(size * eta / 2) * rng.gamma(2.0, 0.5, n),
        "gamma": lambda: np.exp(1.0 + size * eta) * rng.gamma(2.0, 0.5, n),
    }.get(kind, lambda: 1.0 + size * eta + 0.2 * rng.standard_t(2, n))()
    return X, y, groups
