"""Folds do not depend on the order of rows and columns, on units, on storage, or on weights against repetition."""

import numpy as np
import pytest
import scipy.sparse as sp

from covey.designs import as_design
from covey.designs.rows import canonical_keys, rank_keys, row_keys
from covey.losses import get_loss
from covey.selection import Folds


def keys_of(X, rank, weight=None):
    weight = np.ones(len(rank)) if weight is None else weight
    return canonical_keys(as_design(X), np.asarray(rank), weight)


def binary(rng):
    return (rng.random((150, 200)) < 0.3).astype(float)


def one_hot(rng):
    return np.concatenate([np.eye(10)[rng.integers(10, size=150)] for _ in range(20)], axis=1)


def rare_levels(rng):
    return np.eye(40)[rng.integers(40, size=60)]


def duplicated(rng):
    return rng.standard_normal((75, 200))[rng.integers(75, size=150)]


KINDS = {kind.__name__: kind for kind in (binary, one_hot, rare_levels, duplicated)}


@pytest.fixture(params=[(name, seed) for name in KINDS for seed in range(3)], ids=str)
def problem(request):
    name, seed = request.param
    rng = np.random.default_rng(seed)
    X = KINDS[name](rng)
    y = (rng.random(len(X)) < 0.4).astype(float)
    if name == "duplicated":
        y = (X[:, 0] > 0).astype(float)
    return X, y, rng


def fold_of(X, y, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    parts = Folds(5).parts(as_design(X), y, weight, get_loss("logistic"))
    return parts.labels


def test_folds_do_not_depend_on_order_or_units(problem):
    X, y, rng = problem
    fold = fold_of(X, y)
    order = rng.permutation(len(y))
    columns = rng.permutation(X.shape[1])
    np.testing.assert_array_equal(fold_of(X[:, columns], y), fold)
    np.testing.assert_array_equal(fold_of(5 * X - 2, y), fold)
    # equal rows with equal responses are interchangeable
    found, expected = fold_of(X[order], y[order]), fold[order]
    rows = np.column_stack([X, y])[order]
    for row in np.unique(rows[found != expected], axis=0):
        equal = (rows == row).all(axis=1)
        np.testing.assert_array_equal(np.sort(found[equal]), np.sort(expected[equal]))


def test_weights_are_repetitions(problem):
    X, y, rng = problem
    times = rng.choice([0, 1, 2], len(y), p=[0.1, 0.6, 0.3])
    fold = fold_of(X, y, times.astype(float))
    repeated = fold_of(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_array_equal(repeated, np.repeat(fold, times))


def test_different_rows_have_different_keys():
    assert np.unique(keys_of(np.eye(10), np.arange(10))[0]).size == 10
    keys, same = keys_of(np.eye(10), np.arange(10) // 2)
    assert np.unique(keys).size == 5
    assert np.unique(same).size == 10


def test_rows_that_nothing_tells_apart_are_dealt_out_if_they_would_fill_a_fold():
    y = np.repeat([0.0, 1.0], [15, 10])
    fold = fold_of(np.eye(25), y)
    assert np.bincount(fold[y == 1]).tolist() == [2] * 5
    assert np.bincount(fold[y == 0]).tolist() == [3] * 5


def test_refinement_tells_columns_apart_by_other_columns():
    """Two columns with the same values at the same responses: only the third column distinguishes their rows."""
    X = np.array([[1.0, 0.0, 5.0], [0.0, 1.0, 7.0], [1.0, 0.0, 6.0], [0.0, 1.0, 6.0]])
    keys, _ = keys_of(X, np.zeros(4, dtype=int))
    assert np.unique(keys).size == 4
    np.testing.assert_array_equal(keys_of(X[:, [2, 1, 0]], np.zeros(4, dtype=int))[0], keys)


def test_rows_of_weight_zero_do_not_matter():
    rng = np.random.default_rng(0)
    X, y = binary(rng), (rng.random(150) < 0.5).astype(int)
    weight = (rng.random(150) < 0.7).astype(float)
    used = weight > 0
    for found, expected in zip(keys_of(X, y, weight), keys_of(X[used], y[used]), strict=True):
        np.testing.assert_array_equal(found[used], expected)


def test_sparse_keys_are_dense_keys():
    rng = np.random.default_rng(1)
    X = np.where(rng.random((40, 30)) < 0.3, rng.integers(-2, 3, (40, 30)), 0).astype(float)
    X[:, 3] = np.abs(X[:, 3]) + 1  # a column without zeros
    X[:, 4] = 0
    marks, weight = rng.integers(2**63, size=40).astype(np.uint64), (rng.random(40) < 0.8).astype(float)
    marks[weight == 0] = 0
    expected = rank_keys(X, marks, weight)
    np.testing.assert_array_equal(rank_keys(sp.csc_array(X), marks, weight), expected)
    halves = [rank_keys(X[:, :11], marks, weight), rank_keys(X[:, 11:], marks, weight)]
    np.testing.assert_array_equal(halves[0] + halves[1], expected)
    columns = np.arange(1, 30, 2)
    np.testing.assert_array_equal(row_keys(as_design(sp.csr_array(X)), columns), row_keys(as_design(X), columns))
