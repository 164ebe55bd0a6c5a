"""Group MCP and SCAD by their stationarity, closed forms, limits and reductions."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

from covey import Groups
from covey.datasets import make_group_sparse
from covey.paper.baselines import GroupLasso

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from suite.concave import GroupMCP, GroupSCAD


def slope(model, norm, limit, gamma):
    """The derivative of the penalty at a norm."""
    if model is GroupMCP:
        return max(limit - norm / gamma, 0.0)
    return limit if norm <= limit or gamma == np.inf else max(gamma * limit - norm, 0.0) / (gamma - 1)


def stationarity(model, X, y, groups, w, limit, gamma):
    """The largest violation over groups, relative to their limit, in the metric of the group's columns.

    With ``Z_l`` orthonormal and ``b_l`` its coefficients: ``Z_l'r/n`` is the slope of the penalty at ``norm(b_l)``
    along ``b_l``, or no longer than the limit where ``b_l`` is zero.
    """
    n, r, worst = len(y), y - X @ w, 0.0
    for columns in groups.lists():
        Q, _ = np.linalg.qr(X[:, columns])
        g, fit = Q.T @ r / np.sqrt(n), Q.T @ (X[:, columns] @ w[columns]) / np.sqrt(n)
        norm = np.linalg.norm(fit)
        if norm == 0:
            off = max(np.linalg.norm(g) - limit, 0.0)
        else:
            off = np.linalg.norm(g - slope(model, norm, limit, gamma) * fit / norm)
        worst = max(worst, off / limit)
    return worst


@pytest.mark.parametrize(
    ("model", "gamma"), [(GroupMCP, 1.5), (GroupMCP, np.inf), (GroupSCAD, 2.5), (GroupSCAD, np.inf)]
)
@pytest.mark.parametrize("shape", [(60, 120), (100, 40)])
def test_every_solution_of_a_path_is_stationary(shape, model, gamma):
    data = make_group_sparse(*shape, 4, active=3, design="ar", values="normal", random_state=1)
    solver = model(groups=data.groups, gamma=gamma, fit_intercept=False, tol=1e-10)
    path = solver.path(data.X, data.y, n_penalties=30, least=0.05)
    for w, penalty in zip(path.coefs.toarray(), path.penalties, strict=True):
        assert stationarity(model, data.X, data.y, data.groups, w, 2 * penalty, gamma) < 1e-6


@pytest.mark.parametrize(
    ("model", "factor"),
    # groups that are dropped, shrunk as by the group lasso, shrunk less, and not shrunk
    [(GroupMCP, [0.0, 1.5 * (1 - 1 / 1.5), 1.0, 1.0]), (GroupSCAD, [0.0, 1 - 1 / 1.5, (3 - 4 / 3) / 2, 1.0])],
)
def test_closed_form_on_an_orthogonal_design(model, factor):
    groups = Groups.from_sizes([1, 3, 2, 2])
    data = make_group_sparse(60, 8, groups, design="orthogonal", values="normal", random_state=3)
    c = data.X.T @ data.y / 60
    limits = groups.norms(c) / np.array([0.9, 1.5, 3.0, 4.5])
    fitted = model(groups=groups, penalty=1.0, group_weights=limits, fit_intercept=False, tol=1e-12)
    np.testing.assert_allclose(fitted.fit(data.X, data.y).coef_, np.array(factor)[groups.labels] * c, atol=1e-9)


def test_first_penalty_is_the_least_that_zeroes_everything():
    data = make_group_sparse(40, 60, 3, random_state=5)
    path = GroupMCP(groups=data.groups).path(data.X, data.y, n_penalties=10)
    assert path.coefs[[0]].nnz == 0
    assert path.coefs[[1]].nnz > 0
    with pytest.warns(ConvergenceWarning, match=r"max_iter \(1 sweeps\)"):
        GroupMCP(groups=data.groups, penalty=0.01, max_iter=1).fit(data.X, data.y)
    assert not GroupMCP(groups=data.groups, penalty=1.0001 * path.penalties[0]).fit(data.X, data.y).coef_.any()


def test_infinite_gamma_is_the_group_lasso():
    data = make_group_sparse(80, 60, 3, design="ar", values="normal", random_state=2)
    # orthonormal in each group, as the group MCP makes them, and correlated between groups
    X = np.sqrt(80) * np.hstack([np.linalg.qr(data.X[:, a : a + 3])[0] for a in range(0, 60, 3)])
    penalties = [0.4, 0.2, 0.1]
    lasso = GroupLasso(groups=3, fit_intercept=False, tol=1e-14).path(X, data.y, penalties)
    for gamma in (np.inf, 1e8):
        mcp = GroupMCP(groups=3, gamma=gamma, fit_intercept=False, tol=1e-12).path(X, data.y, penalties)
        np.testing.assert_allclose(mcp.coefs.toarray(), lasso.coefs.toarray(), atol=1e-6)


def test_equivariance():
    data = make_group_sparse(50, 60, 3, random_state=6)
    order = np.random.default_rng(0).permutation(60)
    mix = np.random.default_rng(1).normal(size=(3, 3))
    model = GroupMCP(groups=data.groups, tol=1e-11)
    base = model.path(data.X, data.y, n_penalties=20)
    scaled = model.path(data.X + 7, 5 * data.y - 2, n_penalties=20)
    np.testing.assert_allclose(scaled.coefs.toarray(), 5 * base.coefs.toarray(), atol=1e-7)
    permuted = GroupMCP(groups=data.groups.labels[order], tol=1e-11).path(data.X[:, order], data.y, n_penalties=20)
    np.testing.assert_allclose(permuted.coefs.toarray(), base.coefs.toarray()[:, order], atol=1e-6)
    X = data.X.copy()
    X[:, 3:6] = X[:, 3:6] @ mix  # any basis of a group gives the same fit
    mixed = model.path(X, data.y, n_penalties=20)
    np.testing.assert_allclose(X @ mixed.coefs.toarray().T, data.X @ base.coefs.toarray().T, atol=1e-6)


def test_deficient_groups_constant_columns_and_a_zero_response_are_survived():
    data = make_group_sparse(30, 9, 3, random_state=8)
    X = data.X.copy()
    X[:, 3:6] = 0.1  # a group without a direction
    X[:, 8] = X[:, 6] + X[:, 7]
    model = GroupMCP(groups=3, penalty=0.01).fit(X, data.y)
    assert np.isfinite(model.coef_).all()
    assert not model.coef_[3:6].any()
    assert GroupMCP(groups=3).path(X, np.zeros(30), n_penalties=3).coefs.nnz == 0


@pytest.mark.parametrize(
    ("model", "change", "message"),
    [
        (GroupMCP, {"penalty": 0.0}, "penalty must be above 0"),
        (GroupMCP, {"gamma": 1.0}, "gamma must be above 1"),
        (GroupSCAD, {"gamma": 2.0}, "gamma must be above 2"),
        (GroupMCP, {"group_weights": "size"}, "'sqrt', 'unit' or an array"),
        (GroupMCP, {"tol": -1.0}, "tol must be above 0"),
    ],
)
def test_bad_parameters(model, change, message):
    data = make_group_sparse(40, 60, 3, random_state=0)
    with pytest.raises(ValueError, match=message):
        model(**{"groups": 3, **change}).fit(data.X, data.y)


@pytest.mark.parametrize("model", [GroupMCP, GroupSCAD])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_contract(model):
    check_estimator(model())
