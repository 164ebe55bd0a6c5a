"""
An additive model: few variables, any smooth shape
==================================================

The progression of diabetes after a year, from ten variables. Each is expanded in cubic B-splines, and its columns form
one group, so selecting groups means selecting variables. The plots then show the shape of each selected effect. How
predictable the progression is at all, a ridge says first: about half of its variance.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from covey import GroupSparseRegressor, TermGroups

frame, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
smooth = [name for name in frame if name != "sex"]
held_out = cross_val_score(RidgeCV(), frame, y, cv=5).mean()
print(f"predictable: a ridge on the ten variables explains {held_out:.0%} of the variance of held-out patients")

# %%
# `TermGroups` determines the groups during the fit, once the names of the spline columns are known: all columns that
# come from ``bmi`` are one group.

columns = ColumnTransformer(
    [("spline", SplineTransformer(5, knots="quantile", include_bias=False), smooth)],
    remainder="passthrough",
    verbose_feature_names_out=False,
).set_output(transform="pandas")
pipeline = make_pipeline(columns, GroupSparseRegressor(groups=TermGroups(frame))).fit(frame, y)
model = pipeline[-1]
print(model.summary())

# %%
# The effect of a variable is its contribution to the prediction: vary it over its range with the others at their
# median.

chosen = [name for name in model.selected_groups_ if name != "sex"][:4]
figure, axes = plt.subplots(
    1, len(chosen), figsize=(3 * len(chosen), 3), sharey=True, layout="constrained", squeeze=False
)
for ax, name in zip(axes[0], chosen, strict=True):
    values = np.linspace(*np.quantile(frame[name], [0.01, 0.99]), 100)
    rows = frame.median().to_frame().T.loc[[0] * len(values)].reset_index(drop=True)
    rows[name] = values
    effect = pipeline.predict(rows)
    ax.plot(values, effect - effect.mean(), color="#0072B2")
    ax.plot(frame[name], np.full(len(frame), 0.02), "|", color="#B8B8B8", ms=5, transform=ax.get_xaxis_transform())
    ax.set_xlabel(name)
    ax.spines[["top", "right"]].set_visible(False)
axes[0, 0].set_ylabel("change of progression")
