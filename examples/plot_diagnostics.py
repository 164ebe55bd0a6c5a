"""
Reading the diagnostics
=======================

Before believing a list of groups, ask three things. Can the groups be told apart at all? Does what the theory asks of
the data hold? And is the choice sharp? Here one group of noise is nearly a copy of a group that matters.
"""

import matplotlib.pyplot as plt
import numpy as np

from covey import GroupSparseRegressor, Network
from covey.datasets import make_group_sparse
from covey.plots import CandidatesDisplay, CoherenceDisplay, GroupPathDisplay
from covey.theory import check_assumptions, coherence

data = make_group_sparse(200, 120, 4, design="gaussian", active=4, values=2.0, sigma=2.0, random_state=0)
X = data.X.copy()
X[:, 80:84] = X[:, 4:8] + 0.3 * np.random.default_rng(1).standard_normal((200, 4))  # group 20 follows group 1

# %%
# **Can the groups be told apart?** The coherence of two groups is the spectral norm of their part of the Gram matrix.
# The pair at the top stands apart from all others: if one of the two is selected, the data hardly say which.

found = coherence(X, data.groups)
print("worst pairs:", [(a, b, round(float(value), 2)) for a, b, value in found.worst_pairs(3)])
CoherenceDisplay.from_design(X, data.groups)

# %%
# **Does the theory cover this?** Mostly not, as with most data: the theorem's constants are strict, and the method
# does well far beyond them. What the table is good for is the order of magnitude, and the remarks.

report = check_assumptions(X, data.y, data.groups)
print(report.to_frame()[["condition", "measured", "required", "passed"]].to_string(index=False))

# %%
# **Is the choice sharp?** Folds judge every candidate. A long flat stretch of the curve means that models of many sizes
# predict alike; the rule ``min`` takes one from its middle, ``1se`` one from its left end. `fold_frequencies_` says in
# how many folds the same recipe has each group.

model = GroupSparseRegressor(groups=4).fit(X, data.y)
print(model.summary())
often = np.argsort(-model.fold_frequencies_)[:8]
print("in how many folds:", {int(group): int(model.fold_frequencies_[group]) for group in often})
figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
GroupPathDisplay.from_estimator(model, ax=axes[0])
CandidatesDisplay.from_estimator(model, ax=axes[1])

# %%
# Group 20 is nearly group 1. On the path of the paper's network both wake up together, and the path never lets a group
# go; the default search drops what the held-out rows do not miss.

network = GroupSparseRegressor(groups=4, network=Network()).fit(X, data.y)
print("the network:", [int(group) for group in network.selected_groups_])
print("the default:", [int(group) for group in model.selected_groups_])

# %%
# `covey diagnose` prints the first two for a table in a file; the report of `covey fit` has the same in words under
# "What to keep in mind".
