"""Whether a selection depends on the split, in summaries and sentences."""

import numpy as np
import pytest

from covey import GroupSparseRegressor
from covey.search.agreement import fold_counts, split_warning, unsettled
from covey.selection import Size


@pytest.mark.parametrize(
    ("counts", "n_folds", "expected"),
    [
        ({"a": 5, "b": 3}, 5, ({}, {})),
        ({"a": 5, "b": 2}, 5, ({"b": 2}, {})),
        ({"a": 5}, 5, ({"b": 0}, {})),
        ({"a": 3, "b": 3, "c": 3, "d": 2}, 5, ({}, {"c": 3})),
        ({"a": 2, "b": 3, "c": 2}, 4, ({"a": 2}, {})),
    ],
    ids=["agree", "minority", "never", "left out", "half is no majority"],
)
def test_a_majority_decides(counts, n_folds, expected):
    assert unsettled(["a", "b"], counts, n_folds) == expected


def test_many_names_are_cut():
    names = [f"g{k}" for k in range(9)]
    text = split_warning(names, {}, 5)
    assert text.startswith("The selection depends on the split: g0 is in none of 5 folds, g1 is in none")
    assert "g5" not in text
    assert "and 4 more likewise" in text


def test_the_summary_says_so():
    """Two groups with nearly the same columns: which of them is selected depends on the split."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    X[:, 2] = X[:, 0] + 0.05 * rng.standard_normal(60)
    y = X[:, 0] + X[:, 2] + 2 * rng.standard_normal(60)
    model = GroupSparseRegressor(selection=5).fit(X, y)
    model.fold_frequencies_ = np.where(np.isin(np.arange(8), model.selected_groups_), 2, 0)
    assert "depends on the split" in str(model.summary())
    model.fold_frequencies_ = np.where(np.isin(np.arange(8), model.selected_groups_), 5, 0)
    said = str(model.summary())
    assert "depends on the split" not in said
    assert "5 of 5" in said


def test_nothing_is_counted_without_folds():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4))
    model = GroupSparseRegressor(selection=Size(1)).fit(X, X[:, 0])
    assert fold_counts(model) == {}
    folds = GroupSparseRegressor(selection=3, always=[3]).fit(X, X[:, 0] + 0.1 * rng.standard_normal(40))
    assert fold_counts(folds).keys() == {0, 1, 2}
