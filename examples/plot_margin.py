"""
Which margin a network maximises
================================

When two classes are separable, the logistic loss has no minimum: the coefficients of a network grow without bound, and
the question is in which direction. It is the direction of the largest margin, and the parametrisation determines the
norm in which that margin is measured. For the paper's normalised network of depth 2, and for ``w_l = u_l v_l``, it is
the group norm ``sum_l norm(w_l)``, the penalty of the group lasso. For ``w_l = u_l^2 v_l`` it is
``sum_l norm(w_l)^(2/3)``, which is not convex and favours fewer groups. The section "Separable classes" of the theory
page says which parts are proved and which are measured. The classes are entirely predictable, by construction.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from covey.paper.dynamics import normalized_descent, plain_descent
from covey.paper.theory import margins

rng = np.random.default_rng(0)
n_rows, n_groups, size = 30, 6, 2
X = rng.standard_normal((n_rows, n_groups * size))
y = (X[:, : 2 * size] @ rng.standard_normal(2 * size) > 0).astype(float)

print(f"predictable: a plane separates all rows; always the larger class is right in {max(y.mean(), 1 - y.mean()):.0%}")

# %%
# Three networks, all with ``clock="loss"``: gradients are divided by the loss, because otherwise the margins would grow
# like the logarithm of the number of steps.

settings = {"loss": "binomial", "clock": "loss", "init_scale": 0.1, "n_steps": 5000, "record_every": 10}
paths = {
    "normalised": normalized_descent(X, y, size, step_size=0.05, **settings),
    "u v": plain_descent(X, y, size, depth=1, start="aligned", step_size=0.1, **settings),
    "u^2 v": plain_descent(X, y, size, depth=2, start="aligned", step_size=0.03, **settings),
}

# %%
# The best margin in the group norm. Any non-negative row weights that add up to one give an upper bound on the margin
# of every classifier: the largest group norm of ``sum_i p_i s_i x_i``. The best weights give a sharp bound.

A = (2 * y - 1)[:, None] * X


def group_norms(p):
    """The norm of each group of ``sum_i p_i s_i x_i``."""
    return np.linalg.norm((A.T @ p).reshape(n_groups, size), axis=1)


def slopes(z):
    """The derivative of ``bound - norm`` of each group in the weights and the bound."""
    directions = (A.T @ z[:-1]).reshape(n_groups, size) / group_norms(z[:-1])[:, None]
    return np.column_stack([-(A.reshape(n_rows, n_groups, size) * directions).sum(axis=2).T, np.ones(n_groups)])


even, in_weights = np.full(n_rows, 1 / n_rows), np.append(np.ones(n_rows), 0.0)
found = minimize(
    lambda z: z[-1],
    np.append(even, group_norms(even).max()),
    jac=lambda z: 1 - in_weights,
    bounds=[(0, 1)] * n_rows + [(0, None)],
    constraints=[
        {"type": "ineq", "fun": lambda z: z[-1] - group_norms(z[:-1]), "jac": slopes},
        {"type": "eq", "fun": lambda z: z @ in_weights - 1, "jac": lambda z: in_weights},
    ],
    method="SLSQP",
    options={"maxiter": 500, "ftol": 1e-12},
)
weights = found.x[:-1].clip(0)
best = group_norms(weights / weights.sum()).max()
svm = LinearSVC(C=1e4, loss="hinge", fit_intercept=False, max_iter=200_000, random_state=0).fit(X, y).coef_[0]

for name, w in {**{name: path.w[-1] for name, path in paths.items()}, "support vector machine": svm}.items():
    norms = np.linalg.norm(w.reshape(n_groups, size), axis=1)
    share = margins(X, y, size, w).margin / best
    print(f"{name:22s} {share:.3f} of the best margin, {np.sum(norms > 0.01 * norms.max())} groups")

# %%
# The left panel shows the margin in the group norm, as a share of the best one, and the right panel each network's
# smoothed margin in its own norm, as a share of its last value. Along the gradient flow the smoothed margin never
# falls. With finite steps it can: with steps a few times larger than these, it drops at some iterations.

colours = dict(zip(paths, ["#0072B2", "#009E73", "#D55E00"], strict=True))
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.9), layout="constrained")
for name, path in paths.items():
    in_l21 = margins(X, y, size, path.w)
    own = margins(X, y, size, path.w, power=2 / 3 if name == "u^2 v" else 1.0)
    reached = -np.log10(path.loss)
    apart = own.smoothed > 0
    left.plot(reached[apart], in_l21.margin[apart] / best, color=colours[name], label=name)
    right.plot(reached[apart], own.smoothed[apart] / own.smoothed[-1], color=colours[name], label=name)
    print(
        f"{name:22s} the smoothed margin falls in {np.sum(np.diff(own.smoothed[apart]) < 0)} of {apart.sum()} records"
    )
left.axhline(margins(X, y, size, svm).margin / best, color="#888888", ls=":", label="support vector machine")
left.axhline(1, color="black", lw=0.8)
left.set(ylim=(0, 1.05), xlabel="loss", ylabel="L2,1 margin, share of the best")
right.set(ylim=(0, 1.05), xlabel="loss", ylabel="smoothed margin in the network's norm")
left.legend(frameon=False, fontsize=9, loc="lower right")
for ax in (left, right):
    ax.set_xscale("log")
    ax.set_xticks([2, 5, 10, 20, 50], [f"1e-{k}" for k in (2, 5, 10, 20, 50)])
    ax.minorticks_off()
    ax.spines[["top", "right"]].set_visible(False)
