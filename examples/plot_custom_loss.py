"""
A loss of your own
==================

Counts are often overdispersed, which the negative binomial loss models. It is built in, as
``loss="negative-binomial"``, with an overdispersion that is estimated; written anew with a known one, it shows what a
loss of your own takes: three functions of the response and the linear predictor, from which everything else follows,
from the path to the choice of the model. The counts of the example are mostly chance: their true means remove two
fifths of the deviance.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

from covey import GroupSparseRegressor
from covey.losses import Loss, Poisson
from covey.plots import GroupPathDisplay


@dataclass(frozen=True)
class NegativeBinomial(Loss):
    """Counts with a log link and the variance ``mean + mean^2 / size``."""

    size: float = 1.0
    name = "negative-binomial"
    known_dispersion = True
    effect = "rate ratio"

    def check(self, y, name="y"):
        return Poisson().check(y, name)

    def value(self, y, eta):
        return (y + self.size) * np.logaddexp(0, eta - np.log(self.size)) - y * eta

    def residual(self, y, eta):
        return y - (y + self.size) * self._share(eta)

    def curvature(self, y, eta):
        share = self._share(eta)
        return (y + self.size) * share * (1 - share)

    def link(self, mean):
        return Poisson().link(mean)

    def inverse_link(self, eta):
        return Poisson().inverse_link(eta)

    def _share(self, eta):
        """``mean / (mean + size)``, without an exponential that overflows."""
        return (1 + np.tanh((eta - np.log(self.size)) / 2)) / 2


# %%
# Derivatives are easy to get wrong, and easy to check.

rng = np.random.default_rng(0)
loss = NegativeBinomial(size=0.5)
y, eta, step = rng.poisson(3, 100).astype(float), rng.standard_normal(100), 1e-6
slope = (loss.value(y, eta + step) - loss.value(y, eta - step)) / (2 * step)
bend = (loss.residual(y, eta - step) - loss.residual(y, eta + step)) / (2 * step)
assert np.allclose(loss.residual(y, eta), -slope, atol=1e-5)
assert np.allclose(loss.curvature(y, eta), bend, atol=1e-5)

# %%
# Two of forty groups matter, and at a mean of two the variance of the counts is five times that of Poisson counts.
# Under a Poisson loss, a few extreme rows look like evidence, and the BIC selects groups to fit them.

X = rng.standard_normal((300, 120))
mean = np.exp(0.7 + X[:, :3] @ [0.6, -0.5, 0.4] + X[:, 30:33] @ [0.5, 0.4, -0.5])
counts = rng.poisson(mean * rng.gamma(0.5, 1 / 0.5, 300))
level = np.full(300, np.log(counts.mean()))
removed = 1 - loss.deviance(counts, np.log(mean)).sum() / loss.deviance(counts, level).sum()
print(f"predictable: the true means remove {removed:.0%} of the negative binomial deviance of the mean count")
fits = {
    "Poisson": GroupSparseRegressor(3, loss="poisson", selection="bic").fit(X, counts),
    "negative binomial": GroupSparseRegressor(3, loss=loss, selection="bic").fit(X, counts),
}
for name, model in fits.items():
    error = np.mean((np.log(model.predict(X)) - np.log(mean)) ** 2)
    print(f"{name}: {len(model.selected_groups_)} groups, squared error of the log rate {error:.3f}: {model.recipe_}")

# %%
# Both paths find the true groups, 0 and 10, first.

figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
figure.get_layout_engine().set(wspace=0.12)  # room for the names beside the paths
for ax, (name, model) in zip(axes, fits.items(), strict=True):
    GroupPathDisplay.from_estimator(model, ax=ax)
    ax.set_title(f"{name}: {len(model.selected_groups_)} of 40 groups", loc="left", fontsize=10)
