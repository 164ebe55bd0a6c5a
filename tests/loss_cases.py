"""One response of each kind, with the loss that fits it: what every loss promises is tested against this table."""

from dataclasses import dataclass

import numpy as np

from covey.losses import (
    Binomial,
    Gamma,
    Huber,
    Loss,
    Multinomial,
    MultiQuantile,
    MultiSquared,
    NegativeBinomial,
    Poisson,
    Quantile,
    Squared,
    Tweedie,
)

N_ROWS = 30
N_OUTPUTS = 3


@dataclass(frozen=True)
class LossCase:
    """A loss and responses that it takes, edges of its domain among them."""

    loss: Loss
    y: np.ndarray

    @property
    def shape(self):
        """The shape of a linear predictor."""
        return self.y.shape

    def predictor(self, seed=0, scale=1.0):
        return scale * np.random.default_rng(seed).standard_normal(self.shape)

    def weight(self, seed=1):
        """Weights with a zero among them, which add up to something other than one."""
        weight = np.random.default_rng(seed).uniform(0.5, 2.0, N_ROWS)
        weight[3] = 0.0
        return weight


def _draw(kind):
    rng = np.random.default_rng(42)
    classes = rng.integers(0, N_OUTPUTS, N_ROWS)
    mixed = rng.dirichlet(np.ones(N_OUTPUTS), N_ROWS)
    return {
        "numbers": rng.standard_normal(N_ROWS) * 2,
        "heavy": rng.standard_t(1.5, N_ROWS),
        "counts": rng.poisson(1.5, N_ROWS).astype(float),
        "amounts": np.append(rng.gamma(0.5, 1e3, N_ROWS - 2), [1e-12, 1e12]),
        "positive": rng.gamma(2.0, 3.0, N_ROWS),
        "units": rng.gamma(2.0, 1e-60, N_ROWS),
        "labels": rng.integers(0, 2, N_ROWS).astype(float),
        "proportions": np.append(rng.uniform(0, 1, N_ROWS - 2), [0.0, 1.0]),
        "classes": np.eye(N_OUTPUTS)[classes],
        "mixed": np.vstack([mixed[:-1], [1.0, 0.0, 0.0]]),
        "several": rng.standard_normal((N_ROWS, N_OUTPUTS)),
        "claims": rng.poisson(1.2, N_ROWS) * rng.gamma(2.0, 3.0, N_ROWS),
    }[kind]


CASES = {
    "squared": LossCase(Squared(), _draw("numbers")),
    "huber": LossCase(Huber(0.8), _draw("heavy")),
    "quantile": LossCase(Quantile(0.3, 8.0), _draw("numbers")),
    "poisson": LossCase(Poisson(), _draw("counts")),
    "poisson-amounts": LossCase(Poisson(), _draw("amounts")),
    "negative-binomial": LossCase(NegativeBinomial(0.7), _draw("counts")),
    "negative-binomial-nearly-poisson": LossCase(NegativeBinomial(1e-6), _draw("counts")),
    "tweedie": LossCase(Tweedie(1.5), _draw("claims")),
    "tweedie-low": LossCase(Tweedie(1.05), _draw("claims")),
    "tweedie-amounts": LossCase(Tweedie(1.7), _draw("amounts")),
    "gamma": LossCase(Gamma(), _draw("positive")),
    "gamma-units": LossCase(Gamma(), _draw("units")),
    "binomial": LossCase(Binomial(), _draw("labels")),
    "binomial-proportions": LossCase(Binomial(), _draw("proportions")),
    "multinomial": LossCase(Multinomial(), _draw("classes")),
    "multinomial-proportions": LossCase(Multinomial(), _draw("mixed")),
    "multi-quantile": LossCase(MultiQuantile((0.2, 0.5, 0.7), 8.0), np.repeat(_draw("numbers")[:, None], 3, axis=1)),
    "multi-squared": LossCase(MultiSquared(), _draw("several")),
}

# The pinball loss is smoothed and fits quantiles, not means.
OF_MEANS = [name for name in CASES if "quantile" not in name]
