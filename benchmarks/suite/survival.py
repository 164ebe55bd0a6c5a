"""Survival times: the family, and simulated problems. The partial likelihood is that of `covey.losses.Cox`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from covey import survival
from covey.losses import Cox
from covey.losses.cox import read_survival

from .families import Family
from .problem import N_FOLDS, Problem

LOSS = Cox()


@dataclass(frozen=True)
class CoxFamily(Family):
    """Linear predictors are log risks; what a fold loses is a difference of partial likelihoods (van Houwelingen)."""

    def held_out(self, X: np.ndarray, y: np.ndarray, models: Any, out: np.ndarray) -> np.ndarray:
        rows, eta = read_survival(y).rows, models.predictors(X)[:, :, 0].T
        return LOSS.on(rows, np.ones(len(rows))).total(eta) - LOSS.on(rows, (~out).astype(float)).total(eta)

    def outputs(self, y: np.ndarray, count: int) -> np.ndarray:
        return np.zeros((len(y), 1))

    def error(self, y: np.ndarray, mean: np.ndarray) -> float:
        """Deviance of the partial likelihood per event."""
        rows = read_survival(y).rows
        return float(LOSS.on(rows, np.ones(len(rows))).deviance(mean[:, 0])) / float(y["event"].sum())


def not_by_row(y: np.ndarray, eta: np.ndarray) -> np.ndarray:
    raise TypeError("the partial likelihood is not a sum over rows")


COX = CoxFamily("cox", not_by_row, lambda eta: eta, not_by_row)


def folds(y: np.ndarray, random_state: int = 0) -> np.ndarray:
    """The fold of each row; events are spread evenly."""
    fold_of = np.empty(len(y), dtype=int)
    splitter = StratifiedKFold(N_FOLDS, shuffle=True, random_state=random_state)
    for fold, (_, out) in enumerate(splitter.split(np.zeros((len(y), 1)), y["event"])):
        fold_of[out] = fold
    return fold_of


def drawn(rng: np.random.Generator, eta: np.ndarray, censored: float, n_times: int = 60) -> np.ndarray:
    """Exponential times with a hazard of exp(eta), a share of them censored, rounded up so that there are ties."""
    events, losses = rng.exponential(np.exp(-eta)), rng.exponential(1.0, len(eta))
    # the share of the censored falls as losses come later
    low, high = -40.0, 40.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (losses * np.exp(middle) < events).mean() > censored else (low, middle)
    losses *= np.exp(high)
    seen = np.minimum(events, losses)
    steps = np.quantile(seen, np.linspace(0, 1, n_times + 1)[1:])
    return survival(steps[np.searchsorted(steps, seen * (1 - 1e-12))], events <= losses)


def problem_of(
    X: np.ndarray, y: np.ndarray, labels: np.ndarray, n: int, error: Callable[[np.ndarray], float], **known: Any
) -> Problem:
    """The first `n` rows are fitted."""
    return Problem(COX, X[:n], y[:n], labels, X[n:], error, folds(y[:n]), **known)
