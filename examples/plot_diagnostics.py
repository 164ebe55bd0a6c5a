"""
Reading the diagnostics
=======================

Before believing a list of groups, ask three questions. Can the groups be distinguished at all? Do the conditions of the
theory hold? Is the choice clear? In this example one noise group is nearly a copy of a group that matters; nearly all
of the response is predictable, so what is not clear is due to that copy.
"""

import matplotlib.pyplot as plt
import numpy as np

from covey import GroupSparseRegressor
from covey.datasets import make_group_sparse
from covey.paper import NetworkRegressor
from covey.paper.plots import CoherenceDisplay
from covey.paper.theory import check_assumptions, coherence
from covey.plots import CandidatesDisplay, GroupPathDisplay

data = make_group_sparse(200, 120, 4, design="gaussian", active=4, values=2.0, sigma=2.0, random_state=0)
print(f"predictable: the true groups explain {np.var(data.X @ data.w_star) / np.var(data.y):.0%} of the variance")
X = data.X.copy()
X[:, 80:84] = X[:, 4:8] + 0.3 * np.random.default_rng(1).standard_normal((200, 4))  # group 20 follows group 1

# %%
# **Can the groups be distinguished?** The coherence of two groups is the spectral norm of their block of the Gram
# matrix. The top pair stands out from all others: if one of the two is selected, the data hardly say which.

found = coherence(X, data.groups)
print("worst pairs:", [(a, b, round(float(value), 2)) for a, b, value in found.worst_pairs(3)])
CoherenceDisplay.from_design(X, data.groups)

# %%
# **Do the conditions of the theory hold?** Mostly not, as with most data: the theorem's constants are strict, and the
# method works well far beyond them. The table is useful for orders of magnitude, and for its remarks.

report = check_assumptions(X, data.y, data.groups)
print(report.to_frame()[["condition", "measured", "required", "passed"]].to_string(index=False))

# %%
# **Is the choice clear?** Folds score every candidate. A long flat stretch of the curve means that models of many sizes
# predict equally well, and the rule ``"select"`` takes one from its left end. `fold_frequencies_` counts the folds
# without whose rows each group would still be selected, and `rivals_` lists the sets of groups that the held-out rows
# cannot tell from the best.

model = GroupSparseRegressor(groups=4).fit(X, data.y)
print(model.summary())
often = np.argsort(-model.fold_frequencies_)[:8]
print("in how many folds:", {int(group): int(model.fold_frequencies_[group]) for group in often})
print(model.rivals_.head().to_string(index=False))
figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
GroupPathDisplay.from_estimator(model, ax=axes[0])
CandidatesDisplay.from_estimator(model, ax=axes[1])

# %%
# Group 20 is nearly a copy of group 1. On the path of the paper's network both wake up together, and the path never
# drops a group; the default search drops groups that the held-out rows do not need.

network = NetworkRegressor(groups=4, stopping=5).fit(X, data.y)
print("the network:", [int(group) for group in network.selected_groups_])
print("the default:", [int(group) for group in model.selected_groups_])

# %%
# `covey diagnose` answers the first two questions for a table in a file; the report of `covey fit` does so in words
# under "What to keep in mind".
