"""
Categories: whole variables, not single levels
==============================================

A category becomes one column for each of its levels. A lasso on those columns picks levels, and which ones depends on
the level that was left out as the reference. As a group, the variable is in or out with all its levels, and the
selection does not depend on the coding. The price is simulated, and three fifths of its variance can be predicted.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LassoCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from covey import GroupSparseRegressor, TermGroups

# %%
# There are 600 contracts and eight categorical variables with two to twelve levels. Two of the variables determine the
# price; a third has an effect in only one of its twelve levels.

rng = np.random.default_rng(0)
n_levels = {"region": 12, "fuel": 4, "colour": 9, "brand": 12, "gearbox": 2, "dealer": 10, "season": 4, "trim": 6}
table = pd.DataFrame({name: [f"{name[0]}{k}" for k in rng.integers(0, n, 600)] for name, n in n_levels.items()})
price = table["region"].map({f"r{k}": value for k, value in enumerate(rng.normal(0, 1.0, 12))})
price = price + table["fuel"].map({"f0": 0.0, "f1": 0.5, "f2": -0.5, "f3": 1.5}) + 1.5 * (table["brand"] == "b7")
price = price + rng.normal(0, 1.0, 600)
print(f"predictable: the true effects explain {1 - 1 / price.var():.0%} of the variance of the price")


def one_hot(**options):
    encoder = OneHotEncoder(sparse_output=False, handle_unknown="ignore", **options)
    return ColumnTransformer([("hot", encoder, list(table))]).set_output(transform="pandas")


def group_sparse(**options):
    return make_pipeline(one_hot(**options), GroupSparseRegressor(groups=TermGroups(table), selection="ebic"))


grouped = group_sparse().fit(table, price)
print(grouped[-1].summary())

# %%
# All levels are kept. The columns of a variable then add up to the intercept column, which the orthonormalisation takes
# into account. The model that EBIC chooses is least squares on the selected variables, so dropping the first level
# gives the same predictions; the lasso's predictions change. (Folds, the default, select the same three variables. They
# may choose a small ridge, which penalises the columns as coded: then the predictions depend slightly on the coding,
# and the selection does not.)

codings = {"all levels": {}, "first left out": {"drop": "first"}, "one of two left out": {"drop": "if_binary"}}
for name, options in codings.items():
    again = group_sparse(**options).fit(table, price)
    difference = np.abs(again.predict(table) - grouped.predict(table)).max()
    lasso = make_pipeline(one_hot(**options), LassoCV()).fit(table, price)
    levels = lasso[0].get_feature_names_out()[lasso[-1].coef_ != 0]
    print(
        f"{name}: the same groups: {set(again[-1].selected_groups_) == set(grouped[-1].selected_groups_)}, predictions "
        f"differ by {difference:.1e}; "
        f"the lasso has {len(levels)} levels of {len(set(TermGroups(table)(levels)))} variables"
    )

# %%
# The strength of each variable: the standard deviation of its contribution to the prediction.

model = grouped[-1]
figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
order = np.argsort(model.group_strengths_)
ax.barh([str(model.groups_.names[l]) for l in order], model.group_strengths_[order], color="#0072B2")
ax.set(xlabel="strength of the variable")
ax.spines[["top", "right"]].set_visible(False)

# %%
# For comparison, the variables that five folds select.

print(make_pipeline(one_hot(), GroupSparseRegressor(groups=TermGroups(table))).fit(table, price)[-1].selected_groups_)
