"""
Without groups: a sparse linear model
=====================================

``groups=None`` makes every column a group of its own. The method is then an alternative to the lasso, with the same
difference as for groups: it does not shrink the columns it selects. Nearly all of this response is predictable.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LassoCV

from covey import GroupSparseRegressor
from covey.datasets import make_group_sparse

values = np.array([3.0, -2.5, 2.0, -1.5, 1.0, 0.7])
data = make_group_sparse(150, 500, 1, design="gaussian", active=6, values=values, sigma=1.0, random_state=3)
print(f"predictable: the true columns explain {np.var(data.X @ data.w_star) / np.var(data.y):.0%} of the variance")
models = {
    "covey": GroupSparseRegressor().fit(data.X, data.y),
    "lasso": LassoCV(cv=5).fit(data.X, data.y),
}

figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    w = model.coef_
    found = np.flatnonzero(w)
    ax.axhline(0, color="#B8B8B8", lw=0.8)
    ax.plot(range(6), data.w_star[:6], "_", color="#D55E00", ms=16, mew=2, label="the truth")
    ax.vlines(found, 0, w[found], color="#0072B2", lw=1.2)
    ax.plot(found, w[found], "o", color="#0072B2", ms=4, label="estimate")
    ax.set_xscale("symlog", linthresh=10)
    ax.set(xlabel="column", xlim=(-1, 500), xticks=[0, 5, 10, 100, 500], xticklabels=["0", "5", "10", "100", "500"])
    error = np.sum((w - data.w_star) ** 2)
    ax.set_title(f"{name}: {found.size} columns, error {error:.2f}", loc="left", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("coefficient")
axes[0].legend(frameon=False)
