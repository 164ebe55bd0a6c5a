"""The diabetes data with every variable expanded into B-splines: an additive model with groups."""

from __future__ import annotations

import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import SplineTransformer

from covey.datasets.grouped import GroupedData
from covey.groups import Groups
from covey.validation import whole

__all__ = ["load_diabetes_splines"]

MOST_KNOTS = 442


def load_diabetes_splines(n_knots: int = 5) -> GroupedData:
    """Disease progression of 442 patients after one year, with ten variables, each expanded into cubic B-splines.

    The data come with scikit-learn. There is one group per variable, with knots at quantiles and without the last basis
    function, which the intercept already spans; sex, which has two values, stays one column.

    Parameters
    ----------
    n_knots : int
        Knots per variable, at least 2; a group then has ``n_knots + 1`` columns.

    Examples
    --------
    >>> from covey.datasets import load_diabetes_splines
    >>> data = load_diabetes_splines()
    >>> data.X.shape, data.groups.names
    ((442, 55), ('age', 'sex', 'bmi', 'bp', 's1', 's2', 's3', 's4', 's5', 's6'))
    """
    n_knots = whole(n_knots, "n_knots", least=2)
    if n_knots > MOST_KNOTS:
        raise ValueError(f"n_knots must be at most {MOST_KNOTS}, as many as there are rows, not {n_knots}.")
    raw = load_diabetes(as_frame=True, scaled=False)
    parts = []
    for _, column in raw.data.items():
        if column.nunique() > 2:
            splines = SplineTransformer(n_knots=n_knots, degree=3, knots="quantile", include_bias=False)
            parts.append(splines.set_output(transform="pandas").fit_transform(column.to_frame()))
        else:
            parts.append((column == column.max()).astype(float).to_frame())
    X = pd.concat(parts, axis=1)
    groups = Groups.from_labels([str(column).partition("_")[0] for column in X.columns], columns=X.columns)
    return GroupedData(X, raw.target.to_numpy(dtype=float), groups)
