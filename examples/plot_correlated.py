"""
Correlated groups: common factors
=================================

If all columns share a common factor (a batch, a market, the size of a patient), every group is correlated with the
response, active or not, and groups wake up in the wrong order. The estimator detects such factors from the eigenvalues
of the columns' correlation matrix, and includes them in the model while it finds the order of the groups. The final
model has no factors: it is fitted on the selected groups alone. ``factors=0`` turns this off. Nearly all of the
response is predictable here; to find its groups is what is hard.
"""

import matplotlib.pyplot as plt
import numpy as np

from covey import GroupSparseRegressor, limit_path
from covey.datasets import make_group_sparse
from covey.paper.baselines import GroupLasso

data = make_group_sparse(
    600, 1000, 5, design="equicorrelated", rho=0.8, active=10, values="normal", sigma=1.0, random_state=0
)
X, y = data.X[:200], data.y[:200]
fresh, signal = data.X[200:], data.X[200:] @ data.w_star
print(
    f"predictable: the true groups explain {np.var(signal) / np.var(data.y[200:]):.1%} of the variance of the response"
)

# %%
# The order of the groups on the path, with the factor in the model and without: how many false groups wake before the
# last true one.

for factors in ("auto", 0):
    order = [group for group, _ in limit_path(X, y, 5, factors=factors, max_groups=30).entered]
    found = [group for group in order if group in data.S]
    before = order.index(found[-1]) + 1 - len(found)
    print(
        f"factors={factors!r}: {len(found)} true groups among the first 30, {before} false ones before the last of them"
    )

# %%
# The benefit: the error of the predicted signal on new rows.

models = {"factors found": GroupSparseRegressor(groups=5), "factors=0": GroupSparseRegressor(groups=5, factors=0)}
errors, false = {}, {}
for name, model in models.items():
    model.fit(X, y)
    errors[name] = np.mean((model.predict(fresh) - signal) ** 2)
    false[name] = len(set(model.selected_groups_) - set(data.S.tolist()))

path = GroupLasso(groups=5, tol=1e-4).path(X[:160], y[:160], n_penalties=40)
best = int(np.argmin(np.mean((path.predict(X[160:]) - y[160:, None]) ** 2, axis=0)))
errors["group lasso"] = np.mean((path.predict(fresh)[:, best] - signal) ** 2)
false["group lasso"] = int(np.count_nonzero(path.group_norms[best, 10:]))
w = np.linalg.lstsq(X[:, :50], y, rcond=None)[0]
errors["least squares on the true groups"] = np.mean((fresh[:, :50] @ w - signal) ** 2)
false["least squares on the true groups"] = 0

# %%
# The eigenvalues that reveal the factor, and the errors.

figure, axes = plt.subplots(1, 2, figsize=(10, 3.2), layout="constrained", width_ratios=(2, 3))
eigenvalues = np.linalg.svd((X - X.mean(0)) / X.std(0), compute_uv=False)[:15] ** 2 / len(X)
axes[0].semilogy(range(1, 16), eigenvalues, "o-", color="#0072B2", ms=4)
axes[0].set(xlabel="component", ylabel="eigenvalue of the correlations")
axes[1].barh(list(errors), list(errors.values()), color=["#0072B2", "#56B4E9", "#E69F00", "#B8B8B8"])
for k, name in enumerate(errors):
    axes[1].text(errors[name], k, f" {errors[name]:.2f}, {false[name]} false groups", va="center", fontsize=9)
axes[1].set(xlabel="error of the prediction on fresh rows", xlim=(0, 1.6 * max(errors.values())))
axes[1].invert_yaxis()
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
