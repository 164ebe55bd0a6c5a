"""
Gene expression: which genes predict another one?
=================================================

The Bardet-Biedl data of the paper's last table: 120 rats, the expression of TRIM32, and 20 genes, each expanded in
five B-splines so that its effect may have any smooth shape. A gene is a group: it is in the model with all five
columns or not at all.

The data are not part of covey. Where ``COVEY_DATA`` does not name a folder with them, a simulated table of the same
shape takes their place, so that this page always builds.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.preprocessing import SplineTransformer

from covey import GroupSparseRegressorCV
from covey.datasets import DataNotFoundError, load_bardet
from covey.plots import CVCurveDisplay, GroupPathDisplay


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

# %%
# Five-fold cross-validation chooses the time. `summary` lists the genes in the order in which they woke up. We ask
# for few genes: ``init_scale=1e-6`` keeps the estimator from trying a denser network, in which every gene does a
# little, and ``restarts=0`` shows the path from its beginning.

model = GroupSparseRegressorCV(groups=groups, init_scale=1e-6, restarts=0, max_iter=1000).fit(X, y)
model.summary()

# %%
# The error on rows that had no part in any choice, from an outer loop around the whole procedure.

outer = cross_val_predict(model, X, y, cv=KFold(5, shuffle=True, random_state=0))
print(f"R^2 of the outer cross-validation: {1 - np.mean((y - outer) ** 2) / np.var(y):.2f}")

# %%
# The path, and the curve that chose the time on it. The band is one standard error: with 120 rats the choice is not
# sharp, and ``rule="1se"`` takes the sparsest model within it.

figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
GroupPathDisplay.from_estimator(model, ax=axes[0])
CVCurveDisplay.from_estimator(model, ax=axes[1])
