"""
A pipeline with a grid search
=============================

The estimator follows scikit-learn's conventions: it can be cloned, used as the last step of a pipeline, and tuned by a
grid search. Here the number of spline knots is searched together with a parameter of the model. Which groups to select,
how many, and the strength of the ridge are not in the grid: the estimator chooses them in every fit. No model can
explain more of the simulated response than the printed share.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import SplineTransformer

from covey import GroupSparseRegressor, TermGroups

rng = np.random.default_rng(0)
frame = pd.DataFrame(rng.uniform(0, 1, (500, 12)), columns=[f"x{k:02d}" for k in range(12)])
signal = np.sin(6 * frame["x00"]) + 4 * (frame["x01"] - 0.5) ** 2 + 1.5 * (frame["x02"] > 0.6)
train, test, y_train, y_test = train_test_split(frame, signal + rng.normal(0, 0.3, 500), random_state=0)

print(f"predictable: the true function explains {signal.var() / (signal.var() + 0.3**2):.0%} of the variance")

splines = ColumnTransformer([("spline", SplineTransformer(include_bias=False), list(frame))])
pipeline = Pipeline(
    [
        ("columns", splines.set_output(transform="pandas")),
        ("model", GroupSparseRegressor(groups=TermGroups(frame))),
    ]
)
grid = {"columns__spline__n_knots": [3, 5, 8, 12], "model__selection": [5, "ebic"]}
search = GridSearchCV(pipeline, grid, cv=4).fit(train, y_train)
print(search.best_params_)
print("selected:", search.best_estimator_["model"].selected_groups_)
print(f"R^2 on the test rows: {search.score(test, y_test):.3f}")

# %%
# The whole grid, with the standard error over the folds.

results = pd.DataFrame(search.cv_results_)
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for selection, part in results.groupby(results["param_model__selection"].astype(str)):
    knots = part["param_columns__spline__n_knots"].astype(int)
    ax.errorbar(
        knots,
        part["mean_test_score"],
        part["std_test_score"] / 2,
        marker="o",
        ms=4,
        capsize=3,
        label={"5": "five folds"}.get(selection, selection),
    )
ax.set(xlabel="knots of every spline", ylabel="R$^2$, mean of 4 folds")
ax.legend(title="selection", frameon=False)
ax.spines[["top", "right"]].set_visible(False)
