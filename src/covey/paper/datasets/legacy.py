"""The data of the paper's published runs, draw for draw.

The authors' notebooks seed numpy's legacy generator and draw, in this order: the design, the noise, a validation
design with a third of the rows, and its noise. Modern generators give other numbers for the same seed, so comparisons
with published runs need this procedure.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from covey.datasets.simulate import GroupSparseData, check_table_size
from covey.groups import Groups
from covey.validation import FloatArray, as_numbers, one_of, positive, whole


def legacy_paper_data(
    n_rows: int = 150, n_columns: int = 300, group_size: int = 3, *, support: ArrayLike = (10.0,) * 9,
    sigma: float = 0.5, seed: int = 6, design: Literal["rademacher", "gaussian"] = "rademacher",
) -> GroupSparseData:  # fmt: skip
    """Draw the data of the authors' notebooks: ``support`` then zeros, and a validation set of ``n_rows // 3`` rows.

    The defaults are the data of the paper's figures 2 and 6.

    >>> data = legacy_paper_data(support=range(5, 14))  # figure 3
    >>> data.X.shape, data.X_val.shape, data.w_star[:9].tolist()
    ((150, 300), (50, 300), [5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0])
    """
    n, p = whole(n_rows, "n_rows"), whole(n_columns, "n_columns")
    sigma = positive(sigma, "sigma", zero=True)
    entries = as_numbers(list(support) if isinstance(support, range) else support, "support")
    if entries.ndim != 1 or entries.size > p:
        raise ValueError(f"support must be at most {p} numbers in one row, not shape {entries.shape}.")
    # RandomState(seed) gives the stream of np.random.seed(seed) without touching the global generator
    if whole(seed, "seed", least=0) >= 2**32:
        raise ValueError(f"seed must be below 2**32, not {seed}.")
    rng = np.random.RandomState(seed)
    one_of(design, ("rademacher", "gaussian"), "design")
    check_table_size(n, p)

    def draw_design(rows: int) -> FloatArray:
        if design == "rademacher":
            return rng.binomial(1, 0.5, size=(rows, p)) * 2.0 - 1.0
        return rng.normal(size=(rows, p))

    w_star = np.zeros(p)
    w_star[: entries.size] = entries
    X = draw_design(n)
    noise = rng.normal(scale=sigma, size=n)
    X_val = draw_design(n // 3)
    y_val = X_val @ w_star + rng.normal(scale=sigma, size=n // 3)
    groups = Groups.from_size(group_size, p)
    return GroupSparseData(X, X @ w_star + noise, w_star, groups, noise, sigma, X_val, y_val)
