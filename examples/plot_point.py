"""
The point, in one picture
=========================

Ten of a thousand groups carry signal. The group lasso shrinks the groups it selects, and lets many others in to make up
for it. On covey's path the ten wake up one after another, each at once at its full size, and groups that the validation
rows do not need are dropped again. The relaxed group lasso, least squares on the groups that the group lasso selects at
each penalty, avoids the shrinkage too and does as well here: it is the fair competitor. All methods choose their model
on the same validation rows. The true groups explain about nine tenths of the response: the signal is there, and the
question is who finds it.
"""

import matplotlib.pyplot as plt
import numpy as np

from covey import GroupSparseRegressor
from covey.datasets import make_group_sparse
from covey.paper.baselines import GroupLasso
from covey.selection import HoldOut

rng = np.random.default_rng(0)
strengths = np.repeat(np.linspace(1.0, 2.8, 10), 5) * rng.choice([-1, 1], 50)
data = make_group_sparse(550, 5_000, 5, active=10, values=strengths, design="gaussian", sigma=3.0, random_state=1)
print(f"predictable: the true groups explain {np.var(data.X @ data.w_star) / np.var(data.y):.0%} of the variance")
X, y = data.X[:400], data.y[:400]
X_val, y_val = data.X[400:], data.y[400:]

model = GroupSparseRegressor(groups=5, selection=HoldOut(validation=(X_val, y_val))).fit(X, y)
lasso = GroupLasso(groups=data.groups, tol=1e-5).path(X, y, n_penalties=60, least=0.01)


def least_squares(columns):
    """Coefficients and intercept on some columns."""
    coef = np.zeros(X.shape[1])
    centre = X[:, columns].mean(axis=0)
    coef[columns] = np.linalg.lstsq(X[:, columns] - centre, y - y.mean(), rcond=None)[0]
    return coef, y.mean() - centre @ coef[columns]


# %%
# The relaxed group lasso: least squares on the group lasso's selection, as long as rows outnumber columns.

supports = [np.flatnonzero(lasso.model(i)[0]) for i in range(len(lasso))]
n_relaxed = next((i for i, columns in enumerate(supports) if len(columns) >= len(y) - 1), len(lasso))
relaxed = [least_squares(columns) for columns in supports[:n_relaxed]]
shrunk = [lasso.model(i) for i in range(len(lasso))]


def best(models):
    """The model of least error on the validation rows."""
    return int(np.argmin([np.mean((X_val @ coef + intercept - y_val) ** 2) for coef, intercept in models]))


# %%
# One panel per method: the true groups in colour, all others in grey, the true norms as marks at the right edge, and
# the model that the validation rows choose. On covey's path nothing changes between two events; at the end, groups that
# the validation rows do not need are dropped, and the others are refitted by least squares.

print(model.summary())
true = data.groups.norms(data.w_star)
last = len(model.path_) - 1
panels = {
    "covey": (model.path_.times, model.path_.group_norms, last, model.path_.model(last)[0]),
    "relaxed group lasso": (
        lasso.times[:n_relaxed], np.array([data.groups.norms(coef) for coef, _ in relaxed]), best(relaxed),
        relaxed[best(relaxed)][0],
    ),
    "group lasso": (lasso.times, lasso.group_norms, best(shrunk), shrunk[best(shrunk)][0]),
}  # fmt: skip
figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), sharey=True, layout="constrained")
for ax, (name, (times, norms, chosen, coef)) in zip(axes, panels.items(), strict=True):
    times = np.asarray(times, dtype=float)
    others = np.flatnonzero(norms[:, 10:].any(axis=0)) + 10
    drawstyle = "default"
    if name == "covey":  # models stand still between events, and so does the chosen one beyond the last
        norms, times, drawstyle = np.vstack([norms, norms[-1]]), np.append(times, 1.15 * times[-1]), "steps-post"
    ax.plot(times, norms[:, others], color="#B8B8B8", lw=0.7, drawstyle=drawstyle)
    ax.plot(times, norms[:, data.S], color="#0072B2", lw=1.5, drawstyle=drawstyle)
    ax.axvline(times[chosen], color="#444444", ls="--", lw=1)
    ax.plot(np.full(10, times[-1]), true[data.S], "<", color="#D55E00", ms=6, clip_on=False)
    ax.set_xlim(0, times[-1])
    false, off = int(np.count_nonzero(data.groups.norms(coef)[10:])), float(np.sum((coef - data.w_star) ** 2))
    title = f"{name}: {false} false groups, error {off:.2f}"
    ax.set_title(title, loc="left", fontsize=11)
    print(title)
    ax.set_xlabel("time of the limit path" if name == "covey" else "penalty, from large to small")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("norm of each group")
axes[0].set_ylim(0, 1.35 * true.max())
axes[2].plot([], [], "<", color="#D55E00", label="the truth")
axes[2].plot([], [], color="#444444", ls="--", lw=1, label="chosen on validation rows")
axes[2].legend(frameon=False, fontsize=9, loc="upper left")
oracle = least_squares(np.flatnonzero(data.w_star))[0]
print(f"error of least squares on the true groups: {np.sum((oracle - data.w_star) ** 2):.2f}")
