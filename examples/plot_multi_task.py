"""
Several responses that share their variables
============================================

Four traits are measured on the same patients, beside 200 markers. Which markers matter is the same for all of them;
how much, and in which direction, is not. With a response of several columns a group is in the model for all responses
or for none: its norm is that of all its coefficients.
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

together = GroupSparseRegressor().fit(markers, traits)
print(together.summary())
print("coefficients:", together.coef_.shape, "predictions:", together.predict(markers).shape)

# %%
# Beside it, every trait by itself: a marker that is weak in one trait has nothing to lean on there.

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
# One path for all of them: the strength of a marker is that of its four coefficients together.

GroupPathDisplay.from_estimator(together)

# %%
# Where every response has rows of its own, four laboratories with their own patients for instance, stack the
# regressions: a block of columns per laboratory, and a group for one marker's coefficient in all of them. The stacked
# design is a sparse matrix, which is never filled in. Each laboratory has a mean of its own, so the responses are
# centred.

inputs = rng.standard_normal((n_traits, n_rows, n_markers))
responses = np.einsum("tnm,tm->tn", inputs, truth) + rng.normal(0, 0.7, (n_traits, n_rows))
stacked = sp.block_diag(list(inputs), format="csc")
centred = (responses - responses.mean(axis=1, keepdims=True)).ravel()
labels = np.tile(np.arange(n_markers), n_traits)
laboratories = GroupSparseRegressor(groups=labels, fit_intercept=False).fit(stacked, centred)
print("selected in all laboratories:", sorted(int(marker) for marker in laboratories.selected_groups_))
