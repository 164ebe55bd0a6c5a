"""A sparse matrix whose indices lie outside its shape is refused before compiled code reads it."""

import numpy as np
import pytest
import scipy.sparse as sp

from covey import GroupSparseRegressor
from covey.designs import as_design


def damaged(change, kind=sp.csr_array):
    rng = np.random.default_rng(0)
    X = kind(np.where(rng.random((30, 6)) < 0.5, rng.standard_normal((30, 6)), 0.0))
    change(X)
    return X


def set_index(value):
    def change(X):
        X.indices[3] = value

    return change


def unsorted_ends(X):
    X.indptr[4] = X.indptr[-1] + 5


def short_ends(X):
    X.indptr = X.indptr[:-2]


def short_indices(X):
    X.indices = X.indices[:-4]


CHANGES = [set_index(10**6), set_index(6), set_index(-1), unsorted_ends, short_ends, short_indices]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
def test_compressed_rows(change, kind):
    X, y = damaged(change, kind), np.arange(30.0)
    with pytest.raises(ValueError, match="X is a damaged sparse matrix"):
        GroupSparseRegressor().fit(X, y)
    with pytest.raises(ValueError, match="X is a damaged sparse matrix"):
        as_design(X)


def test_rows_to_predict():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 6))
    model = GroupSparseRegressor(selection="ebic").fit(X, X[:, 0])
    for predict in (model.predict, model.path_.predict):
        with pytest.raises(ValueError, match="X is a damaged sparse matrix"):
            predict(damaged(set_index(10**6)))


@pytest.mark.parametrize("change", [set_index(10**6), set_index(-1)])
def test_compressed_columns(change):
    with pytest.raises(ValueError, match="X is a damaged sparse matrix"):
        GroupSparseRegressor().fit(damaged(change, sp.csc_array), np.arange(30.0))


def test_coordinates():
    X = damaged(lambda X: None, sp.coo_array)
    X.coords[1][2] = 10**6
    with pytest.raises(ValueError, match="X is a damaged sparse matrix"):
        GroupSparseRegressor().fit(X, np.arange(30.0))
