"""
Several responses that share their variables
============================================

Four laboratories measure the same 200 markers on their own patients. Which markers matter is the same everywhere; how
much, and in which direction, is not. Stack the four regressions into one, with a block of columns for each laboratory, and
let a group be one marker's coefficient in all four: it wakes up in all of them or in none.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

from covey import GroupSparseRegressorCV

rng = np.random.default_rng(0)
n_tasks, n_rows, n_markers, active = 4, 60, 200, [3, 50, 120]
truth = np.zeros((n_tasks, n_markers))
truth[:, active] = rng.choice([-1, 1], (n_tasks, 3)) * rng.uniform(0.4, 1.2, (n_tasks, 3))
inputs = rng.standard_normal((n_tasks, n_rows, n_markers))
responses = np.einsum("tnm,tm->tn", inputs, truth) + rng.normal(0, 0.7, (n_tasks, n_rows))

# %%
# The stacked design is block-diagonal: a sparse matrix, which is never filled in. Column ``m`` of every block has the
# label ``m``. Each laboratory has a mean of its own, so the responses are centred first and there is no intercept. The rows
# come laboratory by laboratory, so the folds are shuffled.

stacked = sp.block_diag(list(inputs), format="csc")
centred = (responses - responses.mean(axis=1, keepdims=True)).ravel()
labels = np.tile(np.arange(n_markers), n_tasks)
folds = [(np.flatnonzero(np.arange(n_tasks * n_rows) % 5 != k), np.arange(k, n_tasks * n_rows, 5)) for k in range(5)]
together = GroupSparseRegressorCV(groups=labels, cv=folds, fit_intercept=False).fit(stacked, centred)
print("selected together:", sorted(together.selected_groups_))

# %%
# Beside it, every laboratory by itself.

alone = np.array([GroupSparseRegressorCV().fit(X, y).coef_ for X, y in zip(inputs, responses, strict=True)])
shared = together.coef_.reshape(n_tasks, n_markers)
figure, axes = plt.subplots(1, 3, figsize=(10, 2.6), sharey=True, layout="constrained")
for ax, (title, coef) in zip(axes, {"truth": truth, "together": shared, "alone": alone}.items(), strict=True):
    error = np.sum((coef - truth) ** 2)
    found = np.count_nonzero(coef.any(axis=0))
    image = ax.imshow(coef, aspect="auto", cmap="RdBu_r", vmin=-1.2, vmax=1.2, interpolation="nearest")
    ax.set_title(title if coef is truth else f"{title}: {found} markers, error {error:.2f}", loc="left", fontsize=10)
    ax.set(xlabel="marker", yticks=range(n_tasks))
    for marker in active:
        ax.annotate("", (marker, -0.5), (marker, -1.0), arrowprops={"arrowstyle": "->", "color": "#444444"}, annotation_clip=False)
axes[0].set_ylabel("laboratory")
figure.colorbar(image, ax=axes, label="coefficient")
