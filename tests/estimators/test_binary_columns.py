"""On columns of zeros and ones, and on duplicated rows, order and weights change no model, whatever the loss."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from covey import GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor
from covey.groups import Groups
from covey.selection import Folds

N, P = 150, 200


def binary(rng):
    return (rng.random((N, P)) < 0.3).astype(float)


def one_hot(rng):
    return np.concatenate([np.eye(10)[rng.integers(10, size=N)] for _ in range(P // 10)], axis=1)


def duplicated(rng):
    return (rng.random((N // 2, P)) < 0.5).astype(float)[np.arange(N) % (N // 2)]


KINDS = {kind.__name__: kind for kind in (binary, one_hot, duplicated)}
LOSSES = [
    "squared", "huber", "poisson", "negative-binomial", "gamma", "tweedie", "logistic", "multinomial", "ordinal", "cox",
]  # fmt: skip


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
    if loss == "cox":
        return GroupSparseCox(groups, selection=selection)
    if loss in ("logistic", "multinomial"):
        return GroupSparseClassifier(groups, selection=selection)
    if loss == "ordinal":
        return GroupSparseClassifier(groups, loss=loss, selection=selection)
    return GroupSparseRegressor(groups, loss=loss, selection=selection)


# fits of these take seconds, and what rows and columns do to them is the same on every kind of column
SLOW = ("huber", "negative-binomial", "tweedie", "ordinal")
CASES = [(loss, kind) for loss in LOSSES for kind in KINDS if loss not in SLOW or kind == "binary"]


@pytest.fixture(scope="module", params=CASES, ids=" ".join)
def fitted(request):
    loss, kind = request.param
    rng = np.random.default_rng(0)
    X = KINDS[kind](rng)
    y = response(loss, X, rng)
    if kind == "duplicated" and loss != "cox":
        y = y[np.arange(N) % (N // 2)]
    groups = Groups.from_lists(np.arange(P).reshape(-1, 5).tolist())
    return loss, X, y, estimator(loss, groups).fit(X, y)


def assert_same(found, expected, columns=slice(None)):
    wanted = expected.coef_[..., columns]
    np.testing.assert_allclose(found.coef_, wanted, rtol=0, atol=1e-5 * max(1.0, np.abs(wanted).max()))


def test_order_of_the_rows(fitted):
    loss, X, y, expected = fitted
    order = np.random.default_rng(1).permutation(N)
    assert_same(estimator(loss, expected.groups).fit(X[order], y[order]), expected)


def test_order_of_the_columns(fitted):
    loss, X, y, expected = fitted
    expected = estimator(loss, expected.groups).set_params(factors=0).fit(X, y)
    columns = np.random.default_rng(2).permutation(P)
    labels = expected.groups.labels[columns]
    groups = Groups.from_lists([np.flatnonzero(labels == l).tolist() for l in range(P // 5)])
    assert_same(estimator(loss, groups).set_params(factors=0).fit(X[:, columns], y), expected, columns)


def test_weights_are_repetitions(fitted):
    loss, X, y, _ = fitted
    # Efron's ties are not those of repeated rows
    options = {"ties": "breslow"} if loss == "cox" else {}
    times = np.random.default_rng(3).choice([0, 1, 2], N, p=[0.1, 0.6, 0.3])
    groups = Groups.from_lists(np.arange(P).reshape(-1, 5).tolist())
    model = estimator(loss, groups).set_params(**options)
    weighted = clone(model).fit(X, y, sample_weight=times.astype(float))
    repeated = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(y, times, axis=0))
    assert_same(repeated, weighted)


@pytest.mark.parametrize("kind", KINDS)
def test_storage(kind):
    rng = np.random.default_rng(0)
    X = KINDS[kind](rng)
    y = response("logistic", X, rng)
    expected = GroupSparseClassifier(groups=None).fit(X, y)
    assert_same(GroupSparseClassifier(groups=None).fit(sp.csr_array(X), y), expected)
