"""
When it works, and when it does not
===================================

Six kinds of data, three draws of each: 160 training rows, 40 validation rows and 80 groups of five columns. covey, with
the rule ``"select"`` (the default) and with ``"predict"``, and the group lasso of `covey.paper.baselines` choose their
model on the same validation rows. The error of the predicted signal on new rows is given as a share of the signal's
variance: 1 is no better than predicting the mean. How much of the response is predictable follows from the
signal-to-noise ratio, and is printed first.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from covey import GroupSparseRegressor
from covey.datasets import make_group_sparse
from covey.paper.baselines import GroupLasso
from covey.selection import HoldOut

cases = {
    "few strong groups": {"active": 5, "snr": 5.0},
    "groups in neighbourhoods (AR 0.9)": {"active": 5, "snr": 5.0, "design": "ar", "rho": 0.9},
    "a common factor (correlation 0.5)": {"active": 5, "snr": 5.0, "design": "equicorrelated"},
    "much noise": {"active": 5, "snr": 0.5},
    "every group matters a little": {"active": 80, "snr": 5.0},
    "too few rows for the active groups": {"active": 30, "snr": 5.0},
}
train, validation = slice(0, 160), slice(160, 200)
for case, settings in cases.items():
    share = settings["snr"] / (1 + settings["snr"])
    print(f"predictable: {case}: the true groups explain {share:.0%} of the variance")


def select(X, y, rule="select"):
    rows = HoldOut(validation=(X[validation], y[validation]))
    return GroupSparseRegressor(groups=5, selection=rows, rule=rule).fit(X[train], y[train]).predict


def predict(X, y):
    return select(X, y, rule="predict")


def group_lasso(X, y):
    path = GroupLasso(groups=5, tol=1e-4).path(X[train], y[train], n_penalties=40)
    best = int(np.argmin(np.mean((path.predict(X[validation]) - y[validation, None]) ** 2, axis=0)))
    return lambda rows: path.predict(rows)[:, best]


results = []
for case, settings in cases.items():
    for seed in range(3):
        settings = {"design": "gaussian", **settings}
        data = make_group_sparse(1200, 400, 5, values="normal", random_state=seed, **settings)
        X, y, fresh, signal = data.X[:200], data.y[:200], data.X[200:], data.X[200:] @ data.w_star
        for name, fit in {"covey, select": select, "covey, predict": predict, "group lasso": group_lasso}.items():
            error = np.mean((fit(X, y)(fresh) - signal) ** 2) / np.var(signal)
            results.append({"case": case, "method": name, "error": error})
table = pd.DataFrame(results).pivot_table("error", "case", "method", sort=False)
print(table.round(3).to_string())

# %%
# Short bars are good; at the dotted line a model predicts no better than the mean.

figure, ax = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
height = 0.27
colours = {"covey, select": "#0072B2", "covey, predict": "#56B4E9", "group lasso": "#E69F00"}
for k, (name, colour) in enumerate(colours.items()):
    ax.barh(np.arange(len(table)) + k * height, table[name], height, color=colour, label=name)
ax.set_yticks(np.arange(len(table)) + height, table.index)
ax.axvline(1, color="#444444", ls=":", lw=1)
ax.set(xlabel="error of the prediction, share of the signal")
ax.invert_yaxis()
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
