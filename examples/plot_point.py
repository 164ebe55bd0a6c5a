"""
The point, in one picture
=========================

Ten of a thousand groups carry signal. The group lasso pays for selecting them by shrinking them, and lets dozens of
others in to make up for it. The network wakes the ten up one after another and leaves them at their full size: the
time of stopping is its only regularisation. Both choose their model on the same validation rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from covey import group_path
from covey.baselines import GroupLasso
from covey.datasets import make_group_sparse

rng = np.random.default_rng(0)
strengths = np.repeat(np.linspace(1.0, 2.8, 10), 5) * rng.choice([-1, 1], 50)
data = make_group_sparse(550, 5_000, 5, active=10, values=strengths, design="gaussian", sigma=3.0, random_state=1)
train, held_out = slice(0, 400), slice(400, None)

paths = {
    "covey": group_path(data.X[train], data.y[train], 5, max_iter=800),
    "group lasso": GroupLasso(groups=data.groups, tol=1e-5).path(
        data.X[train], data.y[train], n_penalties=60, least=0.05
    ),
}

# %%
# One panel a method: the true groups in colour, all others in grey, the true norms as marks at the right edge, and
# the model that the validation rows choose.

true = data.groups.norms(data.w_star)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for ax, (name, path) in zip(axes, paths.items(), strict=True):
    error = np.mean((path.predict(data.X[held_out]) - data.y[held_out, None]) ** 2, axis=0)
    best = int(np.argmin(error))
    norms = path.group_norms
    ax.plot(path.times, np.delete(norms, data.S, axis=1)[:, norms[-1, 10:] > 0], color="#B8B8B8", lw=0.7)
    ax.plot(path.times, norms[:, data.S], color="#0072B2", lw=1.5)
    ax.axvline(path.times[best], color="#444444", ls="--", lw=1)
    ax.plot(np.full(10, path.times[-1]), true[data.S], "<", color="#D55E00", ms=6, clip_on=False)
    false = int(np.count_nonzero(norms[best, 10:]))
    off = float(np.sum((path.at(path.times[best]) - data.w_star) ** 2))
    ax.set_title(f"{name}: {false} false groups, error {off:.2f}", loc="left", fontsize=11)
    ax.set_xlabel("iteration" if name == "covey" else "penalty, from large to small")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("norm of each group")
axes[1].plot([], [], "<", color="#D55E00", label="the truth")
axes[1].plot([], [], color="#444444", ls="--", lw=1, label="chosen on validation rows")
axes[1].legend(frameon=False, fontsize=9, loc="upper left")
oracle = float(np.sum((data.oracle() - data.w_star) ** 2))
print(f"error of least squares on the true groups: {oracle:.2f}")
