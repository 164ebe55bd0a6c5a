"""
Gene expression: which genes predict another one?
=================================================

The Bardet-Biedl data of the paper's last table: 120 rats, the expression of TRIM32, and 20 genes, each expanded in
five B-splines so that its effect may have any smooth shape. A gene is a group: it is in the model with all five
columns or not at all.

The data are not part of covey. If ``COVEY_DATA`` does not name a folder with them, a simulated table of the same shape
is used instead, so this page always builds. How predictable TRIM32 is, a ridge on all columns says first.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, cross_val_score
from sklearn.preprocessing import SplineTransformer

from covey import GroupSparseRegressor, stability_selection
from covey.datasets import DataNotFoundError, load_bardet
from covey.plots import GroupPathDisplay, StabilityDisplay


def simulated():
    """Twenty genes of 120 rats, three of which matter."""
    rng = np.random.default_rng(0)
    genes = [f"gene{k:02d}" for k in range(1, 21)]
    levels = pd.DataFrame(rng.normal(7, 1, (120, 20)), columns=genes)
    y = 8 + np.tanh(levels["gene03"] - 7) - 0.4 * (levels["gene11"] - 7) ** 2 + 0.5 * levels["gene17"]
    X = SplineTransformer(4, include_bias=False).set_output(transform="pandas").fit_transform(levels)
    return X, (y + rng.normal(0, 0.3, 120)).to_numpy(), [name.partition("_")[0] for name in X.columns]


try:
    data = load_bardet()
    X, y, groups = data.X, data.y, data.groups
    print("the Bardet-Biedl data")
except DataNotFoundError:
    X, y, groups = simulated()
    print("simulated: the data are not on this machine")
ridge = cross_val_score(RidgeCV(np.logspace(-3, 3, 13)), X, y, cv=KFold(5, shuffle=True, random_state=0)).mean()
print(f"predictable: a ridge on all columns explains {ridge:.0%} of the variance of held-out rats")

# %%
# Cross-validation chooses the simplest model that the held-out rows cannot tell from the best. `summary` lists its
# genes in the order in which they woke up, with the number of folds in which each is selected without the rows held out
# there. The rows were dealt to folds several times, and the last line says if even so the choice could be another.

model = GroupSparseRegressor(groups=groups).fit(X, y)
print(model.summary())

# %%
# Genes are correlated with one another, and with 120 rats several of them could replace the first. Do not rely on a
# single list: split the rows in half repeatedly, and see which genes are kept in each half. If no line reaches the
# threshold, the genes predict, but the data do not say which ones matter.

found = stability_selection(X, y, groups, max_false=1, n_pairs=20, random_state=0)
print(found.summary())

figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
GroupPathDisplay.from_estimator(model, ax=axes[0])
StabilityDisplay.from_selection(found, ax=axes[1])
