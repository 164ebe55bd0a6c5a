"""
The point, in one picture
=========================

Ten of a thousand groups carry signal. The group lasso pays for selecting them by shrinking them, and lets dozens of
others in to make up for it. covey's path wakes the ten up one after another, each at once at its full size, and drops
again what the validation rows do not need. Both choose their model on the same validation rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from covey import GroupSparseRegressor
from covey.baselines import GroupLasso
from covey.datasets import make_group_sparse
from covey.selection import HoldOut

rng = np.random.default_rng(0)
strengths = np.repeat(np.linspace(1.0, 2.8, 10), 5) * rng.choice([-1, 1], 50)
data = make_group_sparse(550, 5_000, 5, active=10, values=strengths, design="gaussian", sigma=3.0, random_state=1)
X, y = data.X[:400], data.y[:400]
X_val, y_val = data.X[400:], data.y[400:]

model = GroupSparseRegressor(groups=5, selection=HoldOut(validation=(X_val, y_val))).fit(X, y)
lasso = GroupLasso(groups=data.groups, tol=1e-5).path(X, y, n_penalties=60, least=0.01)
least = np.argmin(np.mean((lasso.predict(X_val) - y_val[:, None]) ** 2, axis=0))

# %%
# One panel per method: the true groups in colour, all others in grey, the true norms as marks at the right edge, and
# the model that the validation rows choose. On covey's path nothing moves between two events; at the end groups that
# the validation rows do not need are dropped, and the others are fitted again by least squares.

model.summary()
true = data.groups.norms(data.w_star)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
panels = {"covey": (model.path_, len(model.path_) - 1), "group lasso": (lasso, least)}
for ax, (name, (path, chosen)) in zip(axes, panels.items(), strict=True):
    norms, times = path.group_norms, np.asarray(path.times, dtype=float)
    awake = np.flatnonzero(norms[:, 10:].any(axis=0)) + 10
    drawstyle = "default"
    if name == "covey":  # models stand still between events, and so does the chosen one beyond the last
        norms, times, drawstyle = np.vstack([norms, norms[-1]]), np.append(times, 1.15 * times[-1]), "steps-post"
    ax.plot(times, norms[:, awake], color="#B8B8B8", lw=0.7, drawstyle=drawstyle)
    ax.plot(times, norms[:, data.S], color="#0072B2", lw=1.5, drawstyle=drawstyle)
    ax.axvline(times[chosen], color="#444444", ls="--", lw=1)
    ax.plot(np.full(10, times[-1]), true[data.S], "<", color="#D55E00", ms=6, clip_on=False)
    ax.set_xlim(0, times[-1])
    false = int(np.count_nonzero(norms[chosen, 10:]))
    off = float(np.sum((path.model(chosen)[0] - data.w_star) ** 2))
    ax.set_title(f"{name}: {false} false groups, error {off:.2f}", loc="left", fontsize=11)
    ax.set_xlabel("time of the limit path" if name == "covey" else "penalty, from large to small")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("norm of each group")
axes[1].plot([], [], "<", color="#D55E00", label="the truth")
axes[1].plot([], [], color="#444444", ls="--", lw=1, label="chosen on validation rows")
axes[1].legend(frameon=False, fontsize=9, loc="upper left")
on_true = X[:, np.isin(data.groups.labels, data.S)]
oracle = np.linalg.lstsq(on_true - on_true.mean(axis=0), y - y.mean(), rcond=None)[0]
print(f"error of least squares on the true groups: {np.sum((oracle - data.w_star[data.w_star != 0]) ** 2):.2f}")
