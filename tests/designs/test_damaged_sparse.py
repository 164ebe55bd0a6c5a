"""A sparse matrix whose indices lie outside its shape is refused before compiled code reads it."""

import numpy as np
import pytest
import scipy.sparse as sp

from covey import GroupSparseRegressor
from covey.designs import as_design


def damaged(part, value, kind=sp.csr_array):
    rng = np.random.default_rng(0)
    X = kind(np.where(rng.random((30, 30)) < 0.5, rng.standard_normal((30, 30)), 0.0))
    if isinstance(value, slice):
        setattr(X, part, getattr(X, part)[value])
    else:
        getattr(X, part)[4] = value
    return X


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("indices", 10**6),
        ("indices", 30),
        ("indices", -1),
        ("indptr", 10**4),
        ("indptr", slice(-2)),
        ("indices", slice(-4)),
    ],
)
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix, sp.csc_array])
def test_compressed_rows_and_columns(part, value, kind):
    X = damaged(part, value, kind)
    for use in (as_design, lambda X: GroupSparseRegressor().fit(X, np.arange(30.0))):
        with pytest.raises(ValueError, match="X is a damaged sparse matrix"):
            use(X)


def test_coordinates_and_rows_to_predict():
    coordinates = sp.coo_array(np.eye(30, 30))
    coordinates.coords[1][2] = 10**6
    X = np.random.default_rng(0).standard_normal((30, 30))
    model = GroupSparseRegressor(selection="ebic").fit(X, X[:, 0])
    for bad in (coordinates, damaged("indices", 10**6)):
        for use in (as_design, model.predict, model.path_.predict):
            with pytest.raises(ValueError, match="X is a damaged sparse matrix"):
                use(bad)
