"""The kinds of response: the loss of a linear predictor, its mean, and what a prediction loses.

Linear predictors and means are arrays of rows x outputs: one output for numbers, binary classes and counts, one per
class, one per response. Labels of classes are 0, 1, ... Deviance is twice the mean negative log-likelihood ratio for
counts, the mean log loss for classes, and the mean square over rows and responses otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, log_softmax, softmax, xlogy

SMALLEST = 1e-15  # the least probability or mean that a prediction is taken to have


@dataclass(frozen=True)
class Family:
    """Row by row: `loss(y, eta)` for tuning, `mean(eta)`, and `deviance(y, mean)` for what is reported.

    `deviance` also takes the true means in the place of y, and then gives the expected deviance up to a constant.
    """

    name: str
    loss: Callable[[np.ndarray, np.ndarray], np.ndarray]
    mean: Callable[[np.ndarray], np.ndarray]
    deviance: Callable[[np.ndarray, np.ndarray], np.ndarray]
    classes: bool = False

    def held_out(self, X: np.ndarray, y: np.ndarray, models: Any, out: np.ndarray) -> np.ndarray:
        """What each of some models, fitted without the rows `out`, loses on them."""
        return np.array([self.loss(y[out], eta).sum() for eta in models.predictors(X[out])])

    def excess(self, truth: np.ndarray, mean: np.ndarray) -> float:
        """Expected deviance of predictions over that of the true means, given the rows; no response is drawn for it."""
        return float(np.mean(self.deviance(truth, mean) - self.deviance(truth, truth)))

    def error(self, y: np.ndarray, mean: np.ndarray) -> float:
        """Mean deviance on given responses."""
        return float(np.mean(self.deviance(self.outputs(y, mean.shape[1]), mean)))

    def outputs(self, y: np.ndarray, count: int) -> np.ndarray:
        """Responses in the shape of means: labels become indicator columns."""
        if self.classes:
            return y[:, None].astype(float) if count == 1 else np.eye(count)[y.astype(int)]
        return y.reshape(len(y), -1)


def binomial_loss(y, eta):
    return np.logaddexp(0.0, eta[:, 0]) - y * eta[:, 0]


def binomial_deviance(truth, mean):
    p = np.clip(mean[:, 0], SMALLEST, 1 - SMALLEST)
    return -xlogy(truth[:, 0], p) - xlogy(1 - truth[:, 0], 1 - p)


def multinomial_loss(y, eta):
    return -log_softmax(eta, axis=1)[np.arange(len(y)), y.astype(int)]


def multinomial_deviance(truth, mean):
    return -xlogy(truth, np.clip(mean, SMALLEST, None)).sum(axis=1)


def poisson_loss(y, eta):
    with np.errstate(over="ignore"):
        return np.exp(eta[:, 0]) - y * eta[:, 0]


def poisson_deviance(truth, mean):
    mu = np.maximum(mean[:, 0], SMALLEST)
    return 2 * (xlogy(truth[:, 0], truth[:, 0]) - xlogy(truth[:, 0], mu) - truth[:, 0] + mu)


def squared(y, eta):
    return ((y.reshape(eta.shape) - eta) ** 2).mean(axis=1)


def exponential(eta):
    with np.errstate(over="ignore"):
        return np.exp(eta)


FAMILIES = {
    family.name: family
    for family in (
        Family("binomial", binomial_loss, expit, binomial_deviance, classes=True),
        Family("multinomial", multinomial_loss, lambda eta: softmax(eta, axis=1), multinomial_deviance, classes=True),
        Family("poisson", poisson_loss, exponential, poisson_deviance),
        Family("gaussian", squared, lambda eta: eta, squared),
        Family("several", squared, lambda eta: eta, squared),
    )
}
