"""
Several responses that share their variables
============================================

Four laboratories measure the same 200 markers on their own patients. Which markers matter is the same everywhere; how
much, and in which direction, is not. Stack the four regressions into one, with a block of columns for each
laboratory, and let a group be one marker's coefficient in all four: it wakes up in all of them or in none.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

from covey import GroupSparseRegressor

rng = np.random.default_rng(0)
n_tasks, n_rows, n_markers, active = 4, 60, 200, [3, 50, 120]
truth = np.zeros((n_tasks, n_markers))
truth[:, active] = rng.choice([-1, 1], (n_tasks, 3)) * rng.uniform(0.4, 1.2, (n_tasks, 3))
inputs = rng.standard_normal((n_tasks, n_rows, n_markers))
responses = np.einsum("tnm,tm->tn", inputs, truth) + rng.normal(0, 0.7, (n_tasks, n_rows))

# %%
# The stacked design is block-diagonal: a sparse matrix, which is never filled in. Column ``m`` of every block has the
# label ``m``. Each laboratory has a mean of its own, so the responses are centred first and there is no intercept.
# The rows come laboratory by laboratory, so the folds are shuffled.

stacked = sp.block_diag(list(inputs), format="csc")
centred = (responses - responses.mean(axis=1, keepdims=True)).ravel()
labels = np.tile(np.arange(n_markers), n_tasks)
folds = [(np.flatnonzero(np.arange(n_tasks * n_rows) % 5 != k), np.arange(k, n_tasks * n_rows, 5)) for k in range(5)]
together = GroupSparseRegressor(groups=labels, selection=folds, fit_intercept=False).fit(stacked, centred)
print("selected together:", sorted(int(marker) for marker in together.selected_groups_))

# %%
# Beside it, every laboratory by itself.

alone = np.array([GroupSparseRegressor().fit(X, y).coef_ for X, y in zip(inputs, responses, strict=True)])
shared = together.coef_.reshape(n_tasks, n_markers)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), sharey=True, layout="constrained")
for ax, (title, coef) in zip(axes, {"truth": truth, "together": shared, "alone": alone}.items(), strict=True):
    task, marker = np.nonzero(coef)
    values = coef[task, marker]
    ax.vlines(active, -0.5, n_tasks - 0.5, color="#DDDDDD", lw=6, zorder=0)
    image = ax.scatter(
        marker, task, 20 + 120 * np.abs(values), values, cmap="RdBu_r", vmin=-1.2, vmax=1.2, edgecolors="k"
    )
    error, found = np.sum((coef - truth) ** 2), np.unique(marker).size
    ax.set_title(title if coef is truth else f"{title}: {found} markers, error {error:.2f}", loc="left", fontsize=10)
    ax.set(xlabel="marker", xlim=(-8, n_markers + 8), yticks=range(n_tasks))
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("laboratory")
figure.colorbar(image, ax=axes, label="coefficient")
