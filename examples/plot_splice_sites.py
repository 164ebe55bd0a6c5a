"""
Splice sites: two classes, factors and their pairs
==================================================

Where is a gene cut? Seven letters of DNA around a site determine whether it is a splice site. Each position is a factor
with four levels, and a group: it is in the model with all levels or not at all. Every pair of positions is a group too,
with sixteen columns. A plain logistic regression on all letters says first how predictable a site is.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict

from covey import Groups, GroupSparseClassifier
from covey.datasets import DataNotFoundError, GroupedData, load_splice
from covey.plots import GroupPathDisplay

# %%
# The data come from the R package grplasso, if ``COVEY_DATA`` names a folder that has them; otherwise similar data are
# simulated, in which positions 2, 3 and 5 matter, without interactions.


def simulated(n=400):
    rng = np.random.default_rng(0)
    letters = rng.integers(0, 4, (n, 7))
    weight = np.array([0.0, 3.0, 3.0, 0.0, 4.0, 0.0, 0.0])
    logit = (weight * (letters == 2)).sum(axis=1) - 3.0
    hot = {f"Pos.{k + 1}_{x}": 1.0 * (letters[:, k] == i) for k in range(7) for i, x in enumerate("acgt")}
    labels = [f"Pos.{k + 1}" for k in range(7) for _ in "acgt"]
    for a in range(7):
        for b in range(a + 1, 7):
            pairs = [(i, j) for i in range(4) for j in range(4)]
            hot |= {f"{a + 1}{b + 1}_{i}{j}": 1.0 * ((letters[:, a] == i) & (letters[:, b] == j)) for i, j in pairs}
            labels += [f"Pos.{a + 1}:Pos.{b + 1}"] * 16
    X = pd.DataFrame(hot)
    return GroupedData(X, (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(float), Groups.from_labels(labels))


try:
    data = load_splice(interactions=True)
except DataNotFoundError:
    data = simulated()
    print("COVEY_DATA names no folder with splice.csv: these data are simulated.")
site = np.where(data.y == 1, "site", "none")
main = data.X.iloc[:, :28]
plain = cross_val_predict(LogisticRegression(), main, site, cv=5, method="predict_proba")
rate = (site == "site").mean()
null = log_loss(site, np.tile([1 - rate, rate], (len(site), 1)))
print(
    f"predictable: logistic regression removes {1 - log_loss(site, plain) / null:.0%} of the log loss of the base rate"
)

# %%
# First, a model with the seven positions. The coefficients are log odds ratios of the second class in alphabetical
# order.

model = GroupSparseClassifier(groups=np.repeat([f"Pos.{k}" for k in range(1, 8)], 4)).fit(main, site)
print(model.summary())

# %%
# Does a pair of positions add anything to the two alone? All 21 pairs are groups to select from, and the positions are
# always in: they are neither selected nor shrunk. The more groups there are, the more evidence the extended BIC
# requires.

positions = list(dict.fromkeys(model.groups_.names))
pairs = GroupSparseClassifier(groups=data.groups, always=positions, selection="ebic").fit(data.X, site)
print(pairs.summary())

# %%
# Held-out rows show which of the two predicts better: the whole fit is repeated without each fold.

for name, (estimator, X) in {"positions": (model, main), "with pairs": (pairs, data.X)}.items():
    p = cross_val_predict(estimator, X, site, cv=5, method="predict_proba")
    print(f"{name}: log loss {log_loss(site, p):.3f} held out (0.693 without any group)")

# %%
# Odds ratios of the letters at each position, and the order in which positions woke up.

figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
figure.get_layout_engine().set(wspace=0.15)  # room for the names beside the path
GroupPathDisplay.from_estimator(model, ax=axes[0])
effects = model.coef_[0].reshape(7, 4)
effects = effects - effects.mean(axis=1, keepdims=True)  # the columns of a position add up to one: against their mean
most = np.abs(effects).max()
image = axes[1].imshow(effects.T, cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto")
axes[1].set(xticks=range(7), xticklabels=range(1, 8), yticks=range(4), yticklabels=list("acgt"), xlabel="position")
for position, letter in np.argwhere(effects):
    ratio = np.exp(effects[position, letter])
    ink = "white" if abs(effects[position, letter]) > 0.6 * most else "black"
    axes[1].text(position, letter, f"{ratio:.2g}", ha="center", va="center", fontsize=8, color=ink)
axes[1].set_title("odds ratios of a splice site", loc="left", fontsize=10)
figure.colorbar(image, ax=axes[1], label="coefficient")
