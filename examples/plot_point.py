"""
The point, in one picture
=========================

Ten of a thousand groups carry signal. The group lasso pays for selecting them by shrinking them, and lets dozens of
others in to make up for it. The network wakes the ten up one after another and leaves them at their full size: the
time of stopping is its only regularisation. Both choose their model on the same validation rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from covey import GroupSparseRegressor
from covey.baselines import GroupLasso
from covey.datasets import make_group_sparse
from covey.stopping import HoldOut

rng = np.random.default_rng(0)
strengths = np.repeat(np.linspace(1.0, 2.8, 10), 5) * rng.choice([-1, 1], 50)
data = make_group_sparse(550, 5_000, 5, active=10, values=strengths, design="gaussian", sigma=3.0, random_state=1)
X, y = data.X[:400], data.y[:400]
X_val, y_val = data.X[400:], data.y[400:]

model = GroupSparseRegressor(groups=5, stopping=HoldOut(validation=(X_val, y_val))).fit(X, y)
lasso = GroupLasso(groups=data.groups, tol=1e-5).path(X, y, n_penalties=60, least=0.01)
least = np.argmin(np.mean((lasso.predict(X_val) - y_val[:, None]) ** 2, axis=0))

# %%
# One panel a method: the true groups in colour, all others in grey, the true norms as marks at the right edge, and
# the model that the validation rows choose. There covey's path is cleaned: the validation rows can do without the grey
# groups, which are dropped, and the ten others are fitted again by least squares. Running on from there found nothing
# better.

true = data.groups.norms(data.w_star)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
chosen = {"covey": (model.path_, model.n_iter_), "group lasso": (lasso, lasso.times[least])}
for ax, (name, (path, time)) in zip(axes, chosen.items(), strict=True):
    norms = path.group_norms
    awake = np.flatnonzero(norms[:, 10:].any(axis=0)) + 10
    for leg in np.split(np.arange(len(path)), np.searchsorted(path.times, path.restarted)):
        ax.plot(path.times[leg], norms[np.ix_(leg, awake)], color="#B8B8B8", lw=0.7)
        ax.plot(path.times[leg], norms[np.ix_(leg, data.S)], color="#0072B2", lw=1.5)
    ax.axvline(time, color="#444444", ls="--", lw=1)
    ax.plot(np.full(10, path.times[-1]), true[data.S], "<", color="#D55E00", ms=6, clip_on=False)
    false = int(np.count_nonzero(norms[path.index(time), 10:]))
    off = float(np.sum((path.at(time) - data.w_star) ** 2))
    ax.set_title(f"{name}: {false} false groups, error {off:.2f}", loc="left", fontsize=11)
    ax.set_xlabel("iteration" if name == "covey" else "penalty, from large to small")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("norm of each group")
axes[1].plot([], [], "<", color="#D55E00", label="the truth")
axes[1].plot([], [], color="#444444", ls="--", lw=1, label="chosen on validation rows")
axes[1].legend(frameon=False, fontsize=9, loc="upper left")
on_true = X[:, np.isin(data.groups.labels, data.S)]
oracle = np.linalg.lstsq(on_true - on_true.mean(axis=0), y - y.mean(), rcond=None)[0]
print(f"error of least squares on the true groups: {np.sum((oracle - data.w_star[data.w_star != 0]) ** 2):.2f}")
