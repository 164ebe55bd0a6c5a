"""A row of weight three is that row three times, through every way of choosing the time."""

import numpy as np
import pytest

from covey import GroupSparseRegressor, GroupSparseRegressorCV
from covey.datasets import make_group_sparse

N = 90


def iid(rng):
    data = make_group_sparse(N, 60, 3, active=4, sigma=0.5, random_state=rng)
    return data.X, data.y


def equicorrelated(rng):
    X = 0.8 * rng.standard_normal((N, 1)) + 0.6 * rng.standard_normal((N, 60))
    return X, X[:, :9] @ np.ones(9) + rng.standard_normal(N)


def genotypes(rng):
    X = rng.integers(0, 3, (N, 60)).astype(float)
    return X, X[:, :9] @ rng.standard_normal(9) + rng.standard_normal(N)


def without_noise(rng):
    X = rng.choice([-1.0, 1.0], (N, 60))
    return X, X[:, :9] @ np.ones(9)


def every_group(rng):
    X = rng.standard_normal((N, 60))
    return X, X @ np.ones(60) + 0.1 * rng.standard_normal(N)


DATA = [iid, equicorrelated, genotypes, without_noise, every_group]


def twins(make, seed):
    """The data with weights from 0 to 3, and the same with repeated rows, shuffled."""
    rng = np.random.default_rng(seed)
    X, y = make(rng)
    counts = rng.integers(0, 4, N)
    rows = rng.permutation(np.repeat(np.arange(N), counts))
    return (X, y, counts), (X[rows], y[rows], None), rows


def check(a, b, same_time=True):
    # a recorded time may fall on either side of a step
    assert not same_time or a.n_iter_ == pytest.approx(b.n_iter_, abs=1)
    close = 1e-8 if same_time else 1e-4
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=0, atol=close * np.abs(b.coef_).max())
    assert a.intercept_ == pytest.approx(b.intercept_, rel=close, abs=close * np.abs(b.coef_).max())
    order = list if same_time else set
    assert order(a.selected_groups_) == order(b.selected_groups_)


@pytest.mark.parametrize("make", DATA)
@pytest.mark.parametrize("stopping", ["holdout", "bic", "ebic", "gcv", "discrepancy", 2000])
def test_weights_are_repetitions(make, stopping):
    weighted, repeated, _ = twins(make, seed=1)
    model = GroupSparseRegressor(3, stopping=stopping, random_state=0)
    # where every group matters the path creeps for ever, and rounding decides when it is given up, and what for
    creeps = make is every_group and stopping == "holdout"
    check(model.fit(*weighted), GroupSparseRegressor(**model.get_params()).fit(*repeated), same_time=not creeps)


@pytest.mark.parametrize("rule", ["min", "1se"])
@pytest.mark.parametrize("make", DATA[:3])
def test_weights_are_repetitions_in_cross_validation(make, rule):
    weighted, repeated, rows = twins(make, seed=2)
    fold = np.arange(N) % 4

    def folds(of):
        return [(np.flatnonzero(of != k), np.flatnonzero(of == k)) for k in range(4)]

    a = GroupSparseRegressorCV(3, cv=folds(fold), rule=rule, max_iter=3_000).fit(*weighted)
    b = GroupSparseRegressorCV(3, cv=folds(fold[rows]), rule=rule, max_iter=3_000).fit(*repeated)
    check(a, b)
    np.testing.assert_allclose(a.mse_path_, b.mse_path_, rtol=1e-8)


@pytest.mark.parametrize("engine", ["exact", "screened"])
@pytest.mark.parametrize("settings", [{"algorithm": "two-stage"}, {"standardize": "column"}, {"standardize": False}])
def test_weights_are_repetitions_under_every_setting(engine, settings):
    weighted, repeated, _ = twins(genotypes, seed=3)
    model = GroupSparseRegressor(3, stopping=1500, engine=engine, **settings)
    check(model.fit(*weighted), GroupSparseRegressor(**model.get_params()).fit(*repeated))
