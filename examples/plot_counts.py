"""
Counts: rates, exposure and terms that are always in
====================================================

How many claims does a policy have? A two-year policy has about twice as many as a one-year policy, so the logarithm of
the years is an offset: it is added to the linear predictor with a coefficient of one. The exponentials of the
coefficients are then ratios of yearly rates. Most of what happens to a single policy is chance: even the true rates
remove only a quarter of the deviance.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import mean_poisson_deviance
from sklearn.preprocessing import SplineTransformer

from covey import GroupSparseRegressor, TermGroups

rng = np.random.default_rng(0)
n = 1500
table = pd.DataFrame({"age": rng.uniform(18, 80, n), "power": rng.uniform(40, 200, n)})
for name, size in {"region": 8, "fuel": 3, "brand": 10, "colour": 6, "job": 9}.items():
    table[name] = [f"{name[0]}{k}" for k in rng.integers(0, size, n)]
years = rng.uniform(0.1, 2.0, n)
by_region = dict(zip([f"r{k}" for k in range(8)], rng.normal(0, 0.6, 8), strict=True))
young = 1.2 * np.exp(-(((table["age"] - 18) / 12) ** 2))
rate = np.exp(-0.3 + young + table["region"].map(by_region))
claims = rng.poisson(years * rate)
null = mean_poisson_deviance(claims, years * claims.sum() / years.sum())
removed = 1 - mean_poisson_deviance(claims, years * rate) / null
print(f"predictable: the true rates remove {removed:.0%} of the deviance of one rate for all")

# %%
# Numbers become splines, categories one column per level; each variable is a group. Every insurer's model includes age,
# so it is ``always`` in: it is fitted without shrinkage, and is not counted as found.

smooth = SplineTransformer(n_knots=4, include_bias=False).set_output(transform="pandas")
X = pd.concat([smooth.fit_transform(table[["age", "power"]]), pd.get_dummies(table.iloc[:, 2:], dtype=float)], axis=1)
train, test = np.arange(n) < 1000, np.arange(n) >= 1000
model = GroupSparseRegressor(TermGroups(table), loss="poisson", always=["age"])
model.fit(X[train], claims[train], offset=np.log(years[train]))
print(model.summary())

# %%
# Without the offset, differences in exposure are noise. The third fit models claims per year with squared loss: a
# one-month policy then counts as much as a two-year policy, and nothing prevents a negative rate.

blind = GroupSparseRegressor(TermGroups(table), loss="poisson", always=["age"]).fit(X[train], claims[train])
squared = GroupSparseRegressor(TermGroups(table), always=["age"]).fit(X[train], claims[train] / years[train])
constant = claims[train].sum() / years[train].sum()
for name, predicted in {
    "rate per year, Poisson": model.predict(X[test], offset=np.log(years[test])),
    "without exposure, Poisson": blind.predict(X[test]),
    "rate per year, squared": np.maximum(squared.predict(X[test]), 1e-3) * years[test],
    "the same rate for all": constant * years[test],
}.items():
    print(f"{name}: deviance {mean_poisson_deviance(claims[test], predicted):.3f}")

# %%
# Estimated and true rate ratios: regions relative to their mean, and age relative to 50.

regions = [name for name in X.columns if name.startswith("region_")]
effect = pd.Series(model.coef_, index=X.columns)
estimated, true = effect[regions].to_numpy(), np.array([by_region[name.removeprefix("region_")] for name in regions])
ages = pd.DataFrame({"age": np.linspace(20, 78, 60), "power": 100.0})
basis = smooth.transform(ages)
curve = (
    basis[[name for name in basis if name.startswith("age")]] @ effect[[name for name in X if name.startswith("age")]]
)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
axes[0].axline((1, 1), slope=1, color="#BBBBBB")
axes[0].plot(np.exp(true - true.mean()), np.exp(estimated - estimated.mean()), "o", color="#0072B2")
axes[0].set(xlabel="true rate ratio of the region", ylabel="estimated")
at_50 = int(np.argmin(np.abs(ages["age"] - 50)))
axes[1].plot(ages["age"], np.exp(curve - curve[at_50]), color="#0072B2", label="estimated")
bump = 1.2 * np.exp(-(((ages["age"] - 18) / 12) ** 2))
axes[1].plot(ages["age"], np.exp(bump - bump[at_50]), "--", color="#444444", label="true")
axes[1].set(xlabel="age", ylabel="rate ratio against 50")
axes[1].legend(frameon=False)
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
