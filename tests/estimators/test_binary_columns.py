"""On columns of zeros and ones, and on duplicated rows, order and weights change no model, whatever the loss."""

import numpy as np
import pytest
import scipy.sparse as sp

from covey import GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor
from covey.groups import Groups
from covey.selection import Folds

N, P = 100, 100


def binary(rng):
    return (rng.random((N, P)) < 0.3).astype(float)


def one_hot(rng):
    return np.concatenate([np.eye(10)[rng.integers(10, size=N)] for _ in range(P // 10)], axis=1)


def duplicated(rng):
    return (rng.random((N // 2, P)) < 0.5).astype(float)[np.arange(N) % (N // 2)]


KINDS = {kind.__name__: kind for kind in (binary, one_hot, duplicated)}


def response(loss, X, rng):
    eta = X[:, :5] @ np.array([1.5, -1.5, 1.0, 1.0, -1.0]) + 0.3 * rng.standard_normal(len(X))
    if loss in ("squared", "huber"):
        return np.round(eta)
    if loss in ("poisson", "negative-binomial", "tweedie"):
        return rng.poisson(np.exp(np.clip(eta, -3, 2))).astype(float)
    if loss == "gamma":
        return np.round(np.exp(eta)) + 1.0
    if loss == "logistic":
        return (eta > np.median(eta)).astype(int)
    if loss in ("multinomial", "ordinal"):
        return np.digitize(eta, np.quantile(eta, [1 / 3, 2 / 3]))
    return np.column_stack([rng.exponential(np.exp(-eta)), rng.random(len(X)) < 0.8])


def estimator(loss, groups):
    # how rows are dealt is the same for every loss; estimated parameters take several searches
    selection = Folds(2 if loss in SLOW else 3, deals=1)
    options = {"groups": groups, "selection": selection, "factors": 0}
    if loss == "cox":  # Efron's ties are not those of repeated rows
        return GroupSparseCox(**options, ties="breslow")
    if loss in ("logistic", "multinomial"):
        return GroupSparseClassifier(**options)
    if loss == "ordinal":
        return GroupSparseClassifier(**options, loss=loss)
    return GroupSparseRegressor(**options, loss=loss)


# fits of these take longer; `tools/robustness.py --invariances` has every loss on every kind of column
SLOW = ("huber", "negative-binomial", "tweedie", "ordinal", "multinomial")
CASES = [
    *((loss, kind) for loss in ("squared", "logistic", "cox") for kind in KINDS),
    *((loss, "binary") for loss in SLOW),
    ("poisson", "duplicated"),
    ("gamma", "one_hot"),
]


def assert_same(found, expected, columns=slice(None)):
    wanted = expected.coef_[..., columns]
    np.testing.assert_allclose(found.coef_, wanted, rtol=0, atol=1e-5 * max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize(("loss", "kind"), CASES)
def test_repeated_rows_in_another_order_with_other_columns_first(loss, kind):
    rng = np.random.default_rng(0)
    X = KINDS[kind](rng)
    y = response(loss, X, rng)
    if kind == "duplicated" and loss != "cox":
        y = y[np.arange(N) % (N // 2)]
    times, labels = rng.choice([0, 1, 2], N, p=[0.1, 0.6, 0.3]), np.repeat(np.arange(P // 5), 5)
    expected = estimator(loss, Groups.from_labels(labels)).fit(X, y, sample_weight=times.astype(float))
    assert expected.selected_groups_
    rows, columns = rng.permutation(np.repeat(np.arange(N), times)), rng.permutation(P)
    groups = Groups.from_lists([np.flatnonzero(labels[columns] == l).tolist() for l in range(P // 5)])
    assert_same(estimator(loss, groups).fit(X[rows][:, columns], y[rows]), expected, columns)


@pytest.mark.parametrize("kind", KINDS)
def test_storage(kind):
    rng = np.random.default_rng(0)
    X = KINDS[kind](rng)
    y = response("logistic", X, rng)
    dense, sparse = (estimator("logistic", None).fit(stored, y) for stored in (X, sp.csr_array(X)))
    assert_same(sparse, dense)
