"""
Several responses that share their variables
============================================

Four traits and 200 markers are measured on the same patients. The same markers matter for all traits, but with
different sizes and signs. With a response of several columns, a group is in the model for all responses or for none:
its norm is taken over all its coefficients. About five sixths of each trait's variance can be predicted.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

from covey import GroupSparseRegressor
from covey.plots import GroupPathDisplay

rng = np.random.default_rng(0)
n_traits, n_rows, n_markers, active = 4, 60, 200, [3, 50, 120]
truth = np.zeros((n_traits, n_markers))
truth[:, active] = rng.choice([-1, 1], (n_traits, 3)) * rng.uniform(0.4, 1.2, (n_traits, 3))
markers = rng.standard_normal((n_rows, n_markers))
traits = markers @ truth.T + rng.normal(0, 0.7, (n_rows, n_traits))
signal = np.sum(truth**2, axis=1)
print("predictable: share of each trait's variance:", ", ".join(f"{one / (one + 0.49):.0%}" for one in signal))

together = GroupSparseRegressor().fit(markers, traits)
print(together.summary())
print("coefficients:", together.coef_.shape, "predictions:", together.predict(markers).shape)

# %%
# For comparison, each trait is fitted separately: a marker that is weak in one trait then gets no support from the
# others.

alone = np.array([GroupSparseRegressor().fit(markers, trait).coef_ for trait in traits.T])
figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), sharey=True, layout="constrained")
for ax, (title, coef) in zip(axes, {"truth": truth, "together": together.coef_, "alone": alone}.items(), strict=True):
    trait, marker = np.nonzero(coef)
    values = coef[trait, marker]
    ax.vlines(active, -0.5, n_traits - 0.5, color="#DDDDDD", lw=6, zorder=0)
    image = ax.scatter(
        marker, trait, 20 + 120 * np.abs(values), values, cmap="RdBu_r", vmin=-1.2, vmax=1.2, edgecolors="k"
    )
    error, found = np.sum((coef - truth) ** 2), np.unique(marker).size
    ax.set_title(title if coef is truth else f"{title}: {found} markers, error {error:.2f}", loc="left", fontsize=10)
    ax.set(xlabel="marker", xlim=(-8, n_markers + 8), yticks=range(n_traits))
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("trait")
figure.colorbar(image, ax=axes, label="coefficient")

# %%
# There is one path for all traits: the strength of a marker combines its four coefficients.

GroupPathDisplay.from_estimator(together)

# %%
# If every response has its own rows, such as four laboratories with their own patients, stack the regressions: one
# block of columns per laboratory, and one group per marker for its coefficients in all laboratories. The stacked design
# is a sparse matrix and stays sparse. Each laboratory has its own mean, so the responses are centred.

inputs = rng.standard_normal((n_traits, n_rows, n_markers))
responses = np.einsum("tnm,tm->tn", inputs, truth) + rng.normal(0, 0.7, (n_traits, n_rows))
stacked = sp.block_diag(list(inputs), format="csc")
centred = (responses - responses.mean(axis=1, keepdims=True)).ravel()
labels = np.tile(np.arange(n_markers), n_traits)
laboratories = GroupSparseRegressor(groups=labels, fit_intercept=False).fit(stacked, centred)
print("selected in all laboratories:", sorted(int(marker) for marker in laboratories.selected_groups_))
