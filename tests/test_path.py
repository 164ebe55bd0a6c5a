"""Path: predictions of every model on it, whatever kind of table comes."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import storage_kinds
from covey import Groups, Path, limit_path

X = np.array([[1.0, 2.0, 0.0], [0.0, -1.0, 3.0]])
COEFS = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, 0.0, -1.0]])
BY_HAND = np.array([[5.0, 6.0, 7.0], [5.0, 5.0, 2.0]])
PATH = Path(np.array([0, 1, 2]), sp.csr_array(COEFS), np.full(3, 5.0), Groups.from_size(1, 3))

FROM_STORAGE = ("CSR matrix", "memmap", "torch", "Dask", "backed")
KINDS = {
    "array": np.asarray,
    "list": np.ndarray.tolist,
    "whole numbers": lambda X: X.astype(int),
    "DataFrame": lambda X: pd.DataFrame(X, columns=["b", "a", "c"]),
    "nullable": lambda X: pd.DataFrame(X).convert_dtypes(),
    "csr": sp.csr_array,
    "csc matrix": sp.csc_matrix,
}


@pytest.mark.parametrize("kind", KINDS)
def test_predicts_whatever_kind_of_table_comes(kind):
    predicted = PATH.predict(KINDS[kind](X))
    assert type(predicted) is np.ndarray
    np.testing.assert_allclose(predicted, BY_HAND)


@pytest.mark.parametrize("kind", FROM_STORAGE)
def test_predicts_of_any_storage_and_several_outputs(kind, tmp_path):
    stored = storage_kinds.KINDS[kind](X.copy(), tmp_path)
    np.testing.assert_allclose(PATH.predict(stored), BY_HAND)
    coefs = sp.csr_array(np.hstack([COEFS, -2 * COEFS]))
    two = replace(PATH, coefs=coefs, intercepts=np.tile([5.0, 1.0], (3, 1)), n_outputs=2)
    np.testing.assert_allclose(two.predict(stored), np.stack([BY_HAND, 11 - 2 * BY_HAND], axis=-1))


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, sp.csr_array])
def test_another_number_of_columns_is_refused(kind):
    with pytest.raises(ValueError, match="X has 2 columns, but the path was run on 3"):
        PATH.predict(kind(X[:, :2]))


@pytest.mark.parametrize("time", [-1.0, np.nan])
def test_a_time_before_the_path_is_refused(time):
    with pytest.raises(ValueError, match=r"The path starts at time 0; time .* lies before it"):
        PATH.at(time)


def test_text_is_refused_by_name():
    with pytest.raises(ValueError, match="column 'b'"):
        PATH.predict(pd.DataFrame({"a": [1.0], "b": ["x"], "c": [2.0]}))


def test_a_path_ends_in_the_model_that_was_chosen():
    path = replace(PATH, strengths=sp.csr_array(np.abs(COEFS)))
    ended = path.ending_in(np.array([0.0, 3.0, 0.0]), 7.0, np.array([0.0, 3.0, 0.0]), None)
    coef, intercept = ended.model(len(ended) - 1)
    assert coef.tolist() == [0.0, 3.0, 0.0]
    assert intercept == 7.0
    assert ended.times[-1] > PATH.times[-1]
    assert ended.ends_apart


def test_columns_in_another_order_than_that_of_the_path_are_refused():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((40, 3)), columns=["b", "a", "c"])
    path = limit_path(X, X["a"] + 0.1 * rng.standard_normal(40))
    np.testing.assert_allclose(path.predict(X), path.predict(X.to_numpy()))
    with pytest.raises(ValueError, match="Column 0 of X is 'a', and column 0 of the data of the path is 'b'"):
        path.predict(X[["a", "b", "c"]])
