"""Fits in threads and in processes are those of one fit after another, bit for bit.

A matrix product rounds differently on one thread of BLAS and on two, so the comparison fixes their number.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from covey import GroupSparseRegressor
from covey.datasets import make_group_sparse


def work(seed):
    """A model and its data, of different shapes."""
    n, size = 60 + 20 * (seed % 3), 1 + seed % 4
    data = make_group_sparse(n, 2400, size, active=3, sigma=1.0, random_state=seed)
    return GroupSparseRegressor(size, random_state=seed, selection=[4, "holdout", "ebic"][seed % 3]), data.X, data.y


def fit(seed):
    return GroupSparseRegressor.fit(*work(seed))


@pytest.fixture(scope="module")
def one_after_another():
    with threadpool_limits(1):
        return [fit(seed) for seed in range(6)]


def assert_same(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.recipe_ == theirs.recipe_
        assert ours.intercept_ == theirs.intercept_
        np.testing.assert_array_equal(ours.coef_, theirs.coef_)
        np.testing.assert_array_equal(ours.path_.coefs.toarray(), theirs.path_.coefs.toarray())


def test_threads(one_after_another):
    with threadpool_limits(1), ThreadPoolExecutor(4) as pool:
        assert_same(pool.map(fit, range(6)), one_after_another)


def test_processes(one_after_another):
    with parallel_config("loky", n_jobs=2, inner_max_num_threads=1):
        assert_same(Parallel()(delayed(GroupSparseRegressor.fit)(*work(seed)) for seed in range(6)), one_after_another)
