"""
Survival: which genes add to clinical variables
===============================================

The response is the time to metastasis of 144 breast cancers. Five clinical columns are in every model; seventy genes
compete to join them. The question is not whether genes predict, but whether they add anything. How predictable the
times are without genes is printed first, as the held-out concordance of the clinical columns alone; 0.5 is chance.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold

from covey import Groups, GroupSparseCox, survival
from covey.datasets import DataNotFoundError, GroupedData, load_nki70
from covey.selection import Size

# %%
# The data come from the R package penalized, if ``COVEY_DATA`` names a folder that has them; otherwise from
# scikit-survival (GSE7390). Without that package, similar data are simulated.


def of_scikit_survival():
    from sksurv.datasets import load_breast_cancer

    table, y = load_breast_cancer()
    parts = {
        name: pd.get_dummies(table[[name]], drop_first=True, dtype=float) for name in ("age", "er", "grade", "size")
    }
    genes = table.drop(columns=list(parts))
    X = pd.concat([*parts.values(), genes], axis=1).astype(float)
    labels = [name for name, own in parts.items() for _ in own] + list(genes)
    return GroupedData(X, survival(y["t.tdm"], y["e.tdm"]), Groups.from_labels(labels, columns=X.columns)), list(parts)


def simulated(n=150):
    rng = np.random.default_rng(0)
    names = ["age", "stage", *(f"gene{j}" for j in range(40))]
    X = pd.DataFrame(rng.standard_normal((n, 42)), columns=names)
    risk = 0.5 * X["stage"] + X["gene3"] - X["gene17"]
    death, end = rng.exponential(np.exp(-risk)), rng.exponential(1.5, n)
    return GroupedData(
        X, survival(np.minimum(death, end), death <= end), Groups.from_labels(names, columns=names)
    ), names[:2]


try:
    data, clinical = load_nki70(), ["Diam", "N", "ER", "Grade", "Age"]
except DataNotFoundError:
    try:
        data, clinical = of_scikit_survival()
    except ImportError:
        data, clinical = simulated()
X, y = data.X, data.y
print(f"{len(X)} rows, {y['event'].sum()} events, {data.groups.n_groups} groups, always in: {', '.join(clinical)}")
outer = StratifiedKFold(5, shuffle=True, random_state=0)
alone = [
    name for name, label in zip(X.columns, data.groups.labels, strict=True) if data.groups.names[label] in clinical
]
clinic = GroupSparseCox(Groups.from_labels(alone, columns=alone), selection=5, always=alone[:-1])
scores = {
    "clinic": [
        clinic.fit(X.iloc[train][alone], y[train]).score(X.iloc[test][alone], y[test])
        for train, test in outer.split(X, y["event"])
    ]
}
print(f"predictable: the clinical columns alone have a held-out concordance of {np.mean(scores['clinic']):.2f}")

# %%
# ``always=`` keeps the clinical columns in every model, without a penalty. Five folds score candidates by the held-out
# rows' contribution to the partial likelihood. The default rule selects genes only if a small set of them is clearly
# better than the clinical columns alone. Where many genes matter a little, it may well select none; the rule
# ``"predict"`` then predicts with all of them.

selected = GroupSparseCox(data.groups, always=clinical).fit(X, y)
print(f"select: {len(selected.selected_groups_)} groups, {selected.recipe_}")
model = GroupSparseCox(data.groups, always=clinical, rule="predict").fit(X, y)
print(f"predict: {len(model.selected_groups_)} groups, {model.recipe_}")

# %%
# If only five genes can be measured, ask for the best five.

short = GroupSparseCox(data.groups, always=clinical, selection=Size(5)).fit(X, y)
print(short.summary())
genes = [name for name in short.selected_groups_ if name not in clinical]
print("hazard ratios per standard deviation:")
for name in genes:
    column = X.columns[data.groups.lists()[data.groups.position(name)][0]]
    print(f"  {name}: {np.exp(short.coef_[X.columns.get_loc(column)] * X[column].std()):.2f}")

# %%
# The held-out concordance, with the model chosen anew within each outer fold: with genes (the rule ``"predict"``), and
# with the clinical columns alone.

scores["clinic and genes"] = []
held_out = np.empty(len(X))
for train, test in outer.split(X, y["event"]):
    fitted = GroupSparseCox(data.groups, always=clinical, rule="predict").fit(X.iloc[train], y[train])
    held_out[test] = fitted.predict(X.iloc[test])
    scores["clinic and genes"].append(fitted.score(X.iloc[test], y[test]))
for name, own in scores.items():
    print(f"{name}: concordance {np.mean(own):.3f} +- {np.std(own, ddof=1) / np.sqrt(len(own)):.3f}")

# %%
# Kaplan-Meier curves for thirds of the rows by held-out risk.


def kaplan_meier(time, event):
    """Event times, and the share without an event after each of them."""
    times = np.unique(time[event])
    at_risk = np.array([(time >= t).sum() for t in times])
    events = np.array([(time[event] == t).sum() for t in times])
    return times, np.cumprod(1 - events / at_risk)


third = np.digitize(held_out, np.quantile(held_out, [1 / 3, 2 / 3]))
figure, axes = plt.subplots(figsize=(6, 4))
for place, name in enumerate(["low", "middle", "high"]):
    own = third == place
    times, left = kaplan_meier(y["time"][own], y["event"][own])
    axes.step([0, *times], [1, *left], where="post", label=f"{name} risk ({own.sum()} rows)")
axes.set(xlabel="time", ylabel="share without the event", ylim=(0, 1.02))
axes.legend()
figure.tight_layout()
plt.show()

# %%
# The model's own curves: survival of the rows at the 10th, 50th and 90th percentile of risk.

risk = model.predict(X)
rows = [int(np.argmin(np.abs(risk - np.quantile(risk, q)))) for q in (0.1, 0.5, 0.9)]
figure, axes = plt.subplots(figsize=(6, 4))
for row, curve in zip(rows, model.predict_survival_function(X.iloc[rows]), strict=True):
    axes.step(curve.x, curve.y, where="post", label=f"log risk {risk[row]:+.1f}")
axes.set(xlabel="time", ylabel="predicted survival", ylim=(0, 1.02))
axes.legend()
figure.tight_layout()
plt.show()
