"""Primal-dual iterative regularisation against its update equations and its limit."""

import numpy as np
import pytest

from covey.datasets import make_group_sparse
from covey.paper.baselines import GroupLasso, PrimalDual, group_quasi_norm


def iterate(X, y, groups, n_steps, ratio):
    """The published update equations, as written."""
    L = np.linalg.norm(X, 2)
    tau, sigma = np.sqrt(0.99 * ratio) / L, np.sqrt(0.99 / ratio) / L
    w, theta, theta_old = np.zeros(X.shape[1]), np.zeros(len(y)), np.zeros(len(y))
    out = [w]
    for _ in range(n_steps):
        z = w - tau * X.T @ (2 * theta - theta_old)
        norms = groups.norms(z)[groups.labels]
        w = np.where(norms > tau, 1 - tau / np.where(norms > 0, norms, 1), 0) * z
        theta, theta_old = theta + sigma * (X @ w - y), theta
        out.append(w)
    return np.array(out)


@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_iterates_are_those_of_the_update_equations(scale):
    data = make_group_sparse(30, 60, 3, random_state=0)
    L = np.linalg.norm(data.X, 2)
    ratio = scale * 0.99 * np.abs(data.X.T @ data.y).max() ** 2 / L**2
    expected = iterate(data.X, data.y, data.groups, 60, ratio)
    path = PrimalDual(groups=3, n_steps=60, ratio_scale=scale, fit_intercept=False).path(data.X, data.y)
    np.testing.assert_allclose(path.coefs.toarray(), expected, atol=1e-10)
    some = PrimalDual(groups=3, n_steps=60, ratio_scale=scale, fit_intercept=False, record_every=25)
    times = [0, 25, 50, 60]
    assert some.path(data.X, data.y).times.tolist() == times
    # the ratio makes the steps commensurate with the data: other units scale the path
    other = some.path(data.X, 1e3 * data.y).coefs.toarray()
    np.testing.assert_allclose(other, 1e3 * expected[times], atol=1e-7)


def test_limit_interpolates_with_the_least_group_norm():
    data = make_group_sparse(20, 60, 3, sigma=1.0, random_state=1)
    w = PrimalDual(groups=3, n_steps=20_000, record_every=20_000, fit_intercept=False).fit(data.X, data.y).coef_
    assert np.abs(data.X @ w - data.y).max() < 1e-6
    # the group lasso reaches the same point as its penalty goes to zero
    lasso = GroupLasso(groups=3, penalty=1e-5, group_weights="unit", fit_intercept=False, tol=1e-13, max_iter=10**6)
    limit = lasso.fit(data.X, data.y).coef_
    assert group_quasi_norm(w, 3, 1) == pytest.approx(group_quasi_norm(limit, 3, 1), rel=1e-4)
    np.testing.assert_allclose(w, limit, atol=1e-2)


def test_zero_response_and_bad_ratio():
    X = np.eye(4)
    assert PrimalDual(groups=2, n_steps=5).path(X, np.zeros(4)).coefs.nnz == 0
    with pytest.raises(ValueError, match="'data' or a number"):
        PrimalDual(groups=2, ratio="auto").fit(X, np.ones(4))
    with pytest.raises(ValueError, match="ratio must be above 0"):
        PrimalDual(groups=2, ratio=0.0).fit(X, np.ones(4))
