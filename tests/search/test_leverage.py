"""Rows that the training rows can predict, and judging on these alone."""

import numpy as np
import pytest

from covey.losses import Binomial
from covey.search.leverage import predictable
from covey.search.problem import Split
from covey.search.table import Table
from search.posing import in_folds


def table_of(X, weight=None, scale=1.0):
    """A line and, as its child, the other columns; two folds, rows dealt in turn."""
    weight = np.ones(len(X)) if weight is None else weight
    groups = [[0], list(range(1, X.shape[1]))]
    y = np.arange(len(X)) % 4 < 2.0  # classes: rows of a quadratic loss would be compressed
    loss = Binomial()
    return Table(in_folds(X, y.astype(float), groups, 2, weight=scale * weight, loss=loss, parents={1: [0]}, n_mains=2))


@pytest.fixture
def X():
    """The rows 0 and 2 are far out in the last column; both are in fold 0."""
    X = np.random.default_rng(1).standard_normal((40, 3))
    X[:, 2] = 0.01 * X[:, 2]
    X[[0, 2], 2] = [5.0, 6.0]
    return X


def test_a_row_that_no_training_row_is_like_is_not_predictable(X):
    table, rows = table_of(X), np.arange(0, 40, 2)
    known = predictable(table, Split((1,), (0,)), rows, [1])
    assert not known[:2].any()
    assert known[2:].sum() > 15
    # trained on the fold that has them, all are; the parent alone does not notice them
    assert predictable(table, Split((0,), (1,)), np.arange(1, 40, 2), [1]).all()
    assert predictable(table, Split((1,), (0,)), rows[:2], [0]).all()


def test_the_limit_is_the_variance_of_least_squares(X):
    table, train, rows = table_of(X), np.arange(1, 40, 2), np.arange(0, 40, 2)
    A = np.column_stack([np.ones(40), X])
    variance = np.einsum("ij,jk,ik->i", A[rows], np.linalg.inv(A[train].T @ A[train]), A[rows])
    known = predictable(table, Split((1,), (0,)), rows, [1])
    np.testing.assert_array_equal(known, variance <= table.posed.settings.predictable)


def test_the_scale_of_the_weights_does_not_matter(X):
    weight, rows = np.where(np.arange(40) % 3, 1.0, 2.0), np.arange(0, 40, 2)
    one, other = (predictable(table_of(X, weight, c), Split((1,), (0,)), rows, [1]) for c in (1.0, 1e3))
    np.testing.assert_array_equal(one, other)
