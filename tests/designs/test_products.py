"""Products of columns that are not stored give what a dense array of them gives."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from covey import GroupSparseRegressor
from covey.designs import DenseDesign, ProductColumns
from covey.designs import columns as columns_module
from covey.designs.columns import Within

N, P = 70, 12
LEFT, RIGHT = np.array(list(combinations(range(P), 2)), dtype=np.intp).T
COLUMNS = np.array([P + 17, 3, P + 3, 0, P + 40, 3])


@pytest.fixture(params=[None, 300], ids=["one tile", "many tiles"])
def designs(request, monkeypatch):
    """All products of two columns, and the dense array of them."""
    if request.param:
        monkeypatch.setattr(columns_module, "TILE", request.param)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P)) * rng.uniform(0.5, 2.0, P) + rng.uniform(-1, 1, P)
    base = DenseDesign(X, columns=[f"v{j}" for j in range(P)])
    return ProductColumns(base, LEFT, RIGHT), DenseDesign(np.column_stack([X, X[:, LEFT] * X[:, RIGHT]]))


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


def test_columns(designs):
    products, dense = designs
    assert (products.shape, products.dtype, products.n_stored) == (dense.shape, dense.dtype, P)
    for columns in (COLUMNS, COLUMNS[[1, 3]], COLUMNS[[0, 2]], COLUMNS[:0], np.arange(dense.shape[1])):
        products.take(columns)[:] = 0.0  # a copy
        np.testing.assert_array_equal(products.take(columns), dense.take(columns))
        np.testing.assert_array_equal(products.device_columns(columns), dense.take(columns))


def test_products_are_appended(designs):
    products, dense = designs
    less = ProductColumns(products.design, LEFT[:5], RIGHT[:5])
    np.testing.assert_array_equal(less.add(LEFT[5:9], RIGHT[5:9]), np.arange(P + 5, P + 9))
    np.testing.assert_array_equal(less.add(LEFT[:0], RIGHT[:0]), np.arange(0))
    less.add(LEFT[9:], RIGHT[9:])
    assert less.shape == dense.shape
    np.testing.assert_array_equal(less.take(np.arange(less.shape[1])), dense.take(np.arange(less.shape[1])))


def test_ranges_bound_the_factors_of_products_only(designs):
    products, dense = designs
    X = dense.take(np.arange(P))
    ranges = np.array([np.full(P, -0.5), np.append(np.full(P - 1, 1.0), np.inf)])
    bounded = ProductColumns(products.design, LEFT, RIGHT, ranges)
    Z = X.clip(*ranges)
    wanted = np.column_stack([X, Z[:, LEFT] * Z[:, RIGHT]])
    np.testing.assert_array_equal(bounded.take(np.arange(wanted.shape[1])), wanted)
    close(bounded.correlate(X.T), X.T @ wanted)


def test_values_are_bounded_within_levels():
    levels = np.array([0, 1, 2, 0, 1, 2, 0])
    x = np.array([0.0, 5.0, -9.0, 1.0, 6.0, 7.0, 9.0])
    X = np.column_stack([x, np.eye(3)[levels][:, 1:] - 0.2])  # a level without a column of its own comes first
    ends = np.array([[0.0, 5.0, -1.0], [1.0, 5.5, 1.0]])
    products = ProductColumns(DenseDesign(X), np.array([0, 3, 2]), np.array([1, 1, 3]), within=[Within(0, 1, 3, ends)])
    bounded = np.array([0.0, 5.0, -1.0, 1.0, 5.5, 1.0, 1.0])
    wanted = np.column_stack([X, x * X[:, 1], bounded * X[:, 1], X[:, 2] * bounded])
    for columns in (np.arange(6), np.array([5, 0]), np.array([4])):
        np.testing.assert_array_equal(products.take(columns), wanted[:, columns])


def test_a_square_and_a_repeated_factor():
    X = np.random.default_rng(0).standard_normal((9, 2))
    products = ProductColumns(DenseDesign(X), np.array([0, 1]), np.array([0, 0]))
    np.testing.assert_array_equal(products.take(np.array([2, 3])), np.column_stack([X[:, 0] ** 2, X[:, 0] * X[:, 1]]))


def test_a_fit_is_that_of_the_dense_array(designs):
    products, dense = designs
    X = dense.take(np.arange(products.shape[1]))
    y = X[:, P + 20] - X[:, 3] + 0.3 * np.random.default_rng(4).standard_normal(N)
    weight = np.random.default_rng(5).integers(1, 3, N)
    found, wanted = (GroupSparseRegressor(1).fit(one, y, sample_weight=weight) for one in (products, X))
    assert found.selected_groups_ == wanted.selected_groups_
    assert found.recipe_ == wanted.recipe_
    close(found.coef_, wanted.coef_)


def test_values_that_are_not_finite_are_refused():
    X = np.random.default_rng(0).standard_normal((20, 3))
    X[4, 1] = np.inf
    products = ProductColumns(DenseDesign(X), np.array([0]), np.array([1]))
    with pytest.raises(ValueError, match="missing or infinite values"):
        products.moments(np.ones(20), np.full(20, 0.05), np.arange(4), np.arange(5), centre=True, scale=np.ones(4))
