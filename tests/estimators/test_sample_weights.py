"""A row of weight three is that row three times, through every way to choose the model."""

import numpy as np
import pytest
from sklearn.base import clone

from covey import GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor, survival
from covey.datasets import make_group_sparse
from covey.designs.rows import count_rows
from covey.selection import HoldOut

N = 90


def iid(rng):
    data = make_group_sparse(N, 60, 3, active=4, sigma=0.5, random_state=rng)
    return data.X, data.y


def without_noise(rng):
    X = rng.choice([-1.0, 1.0], (N, 60))
    return X, X[:, :9] @ np.ones(9)


def every_group(rng):
    X = rng.standard_normal((N, 60))
    return X, X @ np.ones(60) + 0.1 * rng.standard_normal(N)


DATA = [iid, without_noise, every_group]


def twins(make, seed, selection=None):
    """The data with weights from 0 to 3, and the same with repeated rows, shuffled unless their places decide."""
    rng = np.random.default_rng(seed)
    X, y = make(rng)
    counts = rng.integers(0, 4, N)
    rows = np.repeat(np.arange(N), counts)
    # which rows are held out follows from where they stand
    rows = rows if selection == "holdout" else rng.permutation(rows)
    return (X, y, counts), (X[rows], y[rows], None), rows


def check(a, b, close=1e-8, order=list):
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=0, atol=close * np.abs(b.coef_).max())
    assert a.intercept_ == pytest.approx(b.intercept_, rel=close, abs=close * np.abs(b.coef_).max())
    assert order(a.selected_groups_) == order(b.selected_groups_)


@pytest.mark.parametrize("make", DATA)
@pytest.mark.parametrize("rule", ["select", "predict"])
@pytest.mark.parametrize("selection", [4, "holdout", "bic", "ebic", "gcv", "discrepancy"])
def test_weights_are_repetitions(make, selection, rule):
    if rule == "predict" and make is without_noise:
        pytest.skip("which of the models without any error are in the mean is decided by rounding")
    weighted, repeated, _ = twins(make, 1, selection)
    model = GroupSparseRegressor(3, selection=selection, rule=rule)
    found = model.fit(*weighted)
    expected = GroupSparseRegressor(**model.get_params()).fit(*repeated)
    assert found.recipe_ == expected.recipe_
    check(found, expected)


@pytest.mark.parametrize("rule", ["select", "predict"])
@pytest.mark.parametrize("given", ["folds", "labels"])
def test_weights_are_repetitions_in_folds_that_are_given(given, rule):
    weighted, repeated, rows = twins(iid, seed=2)
    label = np.arange(N) % (4 if given == "folds" else 11)

    def fit(label, X, y, weight):
        folds = [(np.flatnonzero(label != k), np.flatnonzero(label == k)) for k in range(4)]
        selection, labels = (folds, None) if given == "folds" else (4, label)
        return GroupSparseRegressor(3, selection=selection, rule=rule).fit(X, y, weight, split_groups=labels)

    a, b = fit(label, *weighted), fit(label[rows], *repeated)
    check(a, b)
    np.testing.assert_allclose(a.candidates_["mse"], b.candidates_["mse"], rtol=1e-7)


@pytest.mark.parametrize(
    ("model", "respond"),
    [
        (GroupSparseCox(3), lambda eta, rng: survival(rng.exponential(np.exp(-eta)))),
        (GroupSparseClassifier(3, loss="ordinal"), lambda eta, rng: np.digitize(eta + rng.logistic(size=60), [-1, 1])),
    ],
    ids=["cox", "ordinal"],
)
def test_only_ratios_of_weights_count_beside_validation_rows(model, respond):
    """The loss of a row depends on the others, so that the validation rows must not outweigh them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 12))
    y, weight = respond(X[:, :3].sum(axis=1), rng), rng.integers(1, 4, 40)
    model.set_params(selection=HoldOut(validation=(X[40:], y[40:])))
    found, expected = (clone(model).fit(X[:40], y[:40], weight * unit) for unit in (1 / 700, 1.0))
    assert found.recipe_ == expected.recipe_
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-6)


@pytest.mark.parametrize("least", [1e-3, 1e-12])
def test_a_row_of_little_weight_does_not_multiply_the_others(least):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 30))
    y = 0.5 * X[:, 0] + rng.standard_normal(80)
    weight = np.r_[np.full(79, 1.0), least]
    for selection in ("ebic", 5):
        found = GroupSparseRegressor(3, selection=selection).fit(X, y, sample_weight=weight)
        assert found.selected_groups_ == [0]


@pytest.mark.parametrize(
    ("weight", "rows"),
    [([1, 2, 2], 5), ([2, 3], 5), ([7, 7, 14], 4), ([1, 5000], 5001), ([0.1, 0.2, 0], 3), ([1, 1e-9, 1], 2)],
)
def test_weights_are_counted_as_rows(weight, rows):
    assert count_rows(np.array(weight, dtype=float)) == pytest.approx(rows, abs=1e-6)
