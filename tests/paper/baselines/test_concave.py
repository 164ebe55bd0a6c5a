"""Group MCP and SCAD by their stationarity, closed forms, limits and reductions, and beside adelie."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

from covey import Groups
from covey.datasets import load_diabetes_splines, make_group_sparse
from covey.paper.baselines import GroupLasso

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from suite.concave import GroupMCP, GroupSCAD, OrthonormalProblem

BOTH = pytest.mark.parametrize("model", [GroupMCP, GroupSCAD])


def slope(model, norm, limit, gamma):
    """The derivative of the penalty at a norm."""
    if model is GroupMCP:
        return max(limit - norm / gamma, 0.0)
    return limit if norm <= limit or gamma == np.inf else max(gamma * limit - norm, 0.0) / (gamma - 1)


def stationarity(model, X, y, groups, w, penalty, gamma, weights):
    """The largest violation over groups, relative to ``penalty omega_l``, in the metric of the group's columns.

    With ``Z_l`` orthonormal and ``b_l`` its coefficients: ``Z_l'r/n`` is the slope of the penalty at ``norm(b_l)``
    along ``b_l``, or no longer than ``penalty omega_l`` where ``b_l`` is zero.
    """
    n = len(y)
    r = y - X @ w
    worst = 0.0
    for l in range(groups.n_groups):
        columns = np.flatnonzero(groups.labels == l)
        Q, _ = np.linalg.qr(X[:, columns])
        g, fit = Q.T @ r / np.sqrt(n), Q.T @ (X[:, columns] @ w[columns]) / np.sqrt(n)
        limit, norm = penalty * weights[l], np.linalg.norm(fit)
        if norm == 0:
            off = max(np.linalg.norm(g) - limit, 0.0)
        else:
            off = np.linalg.norm(g - slope(model, norm, limit, gamma) * fit / norm)
        worst = max(worst, off / limit)
    return worst


@pytest.mark.parametrize(
    ("model", "gamma"), [(GroupMCP, 1.5), (GroupMCP, 3.0), (GroupMCP, np.inf), (GroupSCAD, 2.5), (GroupSCAD, np.inf)]
)
@pytest.mark.parametrize("shape", [(60, 120), (100, 40)])
def test_every_solution_of_a_path_is_stationary(shape, model, gamma):
    data = make_group_sparse(*shape, 4, active=3, design="ar", values="normal", random_state=1)
    solver = model(groups=data.groups, gamma=gamma, fit_intercept=False, tol=1e-10)
    path = solver.path(data.X, data.y, n_penalties=30, least=0.05)
    weights = np.full(data.groups.n_groups, 2.0)
    for w, penalty in zip(path.coefs.toarray(), path.penalties, strict=True):
        assert stationarity(model, data.X, data.y, data.groups, w, penalty, gamma, weights) < 1e-6


@BOTH
def test_the_local_linear_approximation_by_adelie_stays_at_every_solution(model):
    """The slopes at a solution as weights of a group lasso, solved by another library, give the solution again."""
    ad = pytest.importorskip("adelie")
    data = load_diabetes_splines()
    solver = model(groups=data.groups, tol=1e-12, max_iter=100_000)
    problem = OrthonormalProblem.of(np.array(data.X), data.y, data.groups, "sqrt", True)
    penalties = problem.penalty_max() * np.geomspace(0.9, 0.1, 9)
    path, centred, labels = solver.path(data.X, data.y, penalties), np.array(data.X), data.groups.labels
    centred -= centred.mean(axis=0)
    signs = set()
    for w, penalty in zip(path.coefs.toarray(), penalties, strict=True):
        fits = [centred[:, labels == l] @ w[labels == l] / len(data.y) for l in range(data.groups.n_groups)]
        edges = list(zip(problem.edges[:-1], problem.edges[1:], fits, strict=True))
        b = np.concatenate([problem.Z[start:end] @ fit for start, end, fit in edges])
        norms = np.sqrt(np.add.reduceat(b * b, problem.edges[:-1]))
        slopes = [slope(model, t, penalty * w, solver.gamma) for t, w in zip(norms, problem.weights, strict=True)]
        signs.update(np.sign(slopes)[norms > 0].tolist())
        state = ad.grpnet(
            X=np.asfortranarray(problem.Z.T), glm=ad.glm.gaussian(problem.y), groups=problem.edges[:-1].astype(int),
            penalty=np.array(slopes) / penalty, lmda_path=[penalty], intercept=False, tol=1e-14, max_iters=10**7,
            early_exit=False, progress_bar=False,
        )  # fmt: skip
        np.testing.assert_allclose(state.betas.toarray()[-1], b, atol=1e-6 * np.abs(b).max(initial=1.0))
    assert signs == {0.0, 1.0}  # some groups are shrunk, others are not


def test_scad_in_closed_form_on_an_orthogonal_design():
    groups = Groups.from_sizes([1, 3, 2, 2])
    data = make_group_sparse(60, 8, groups, design="orthogonal", values="normal", random_state=3)
    c = data.X.T @ data.y / 60
    # a group each that is dropped, shrunk as by the group lasso, shrunk less, and not shrunk
    limits = groups.norms(c) / np.array([0.9, 1.5, 3.0, 4.5])
    factor = np.array([0.0, 1 - 1 / 1.5, (3 - 4 / 3) / 2, 1.0])
    model = GroupSCAD(groups=groups, penalty=1.0, group_weights=limits, fit_intercept=False, tol=1e-12)
    np.testing.assert_allclose(model.fit(data.X, data.y).coef_, factor[groups.labels] * c, atol=1e-9)


@pytest.mark.parametrize("weights", ["unit", "sqrt", [0.5, 2.0, 1.0]])
def test_closed_form_on_an_orthogonal_design(weights):
    groups = Groups.from_sizes([1, 3, 2])
    data = make_group_sparse(40, 6, groups, design="orthogonal", values="normal", random_state=3)
    omega = {"unit": np.ones(3), "sqrt": np.sqrt([1, 3, 2])}.get(weights) if isinstance(weights, str) else weights
    c = data.X.T @ data.y / 40
    norms, limits = groups.norms(c), 0.3 * np.asarray(omega)
    firm = np.where(norms > 3 * limits, 1.0, np.maximum(1 - limits / norms, 0) * 1.5)
    model = GroupMCP(groups=groups, penalty=0.3, group_weights=weights, fit_intercept=False, tol=1e-12)
    np.testing.assert_allclose(model.fit(data.X, data.y).coef_, firm[groups.labels] * c, atol=1e-9)


def test_first_penalty_is_the_least_that_zeroes_everything():
    data = make_group_sparse(40, 60, 3, random_state=5)
    path = GroupMCP(groups=data.groups).path(data.X, data.y, n_penalties=10)
    assert path.coefs[[0]].nnz == 0
    assert path.coefs[[1]].nnz > 0
    assert path.times.tolist() == list(range(10))
    assert (np.diff(path.penalties) < 0).all()
    assert not GroupMCP(groups=data.groups, penalty=1.0001 * path.penalties[0]).fit(data.X, data.y).coef_.any()


def test_infinite_gamma_is_the_group_lasso():
    data = make_group_sparse(80, 60, 3, design="ar", values="normal", random_state=2)
    # orthonormal in each group, as the group MCP makes them, and correlated between groups
    X = np.sqrt(80) * np.hstack([np.linalg.qr(data.X[:, a : a + 3])[0] for a in range(0, 60, 3)])
    penalties = [0.4, 0.2, 0.1]
    lasso = GroupLasso(groups=3, fit_intercept=False, tol=1e-14).path(X, data.y, penalties)
    mcp = GroupMCP(groups=3, gamma=np.inf, fit_intercept=False, tol=1e-12).path(X, data.y, penalties)
    near = GroupMCP(groups=3, gamma=1e8, fit_intercept=False, tol=1e-12).path(X, data.y, penalties)
    np.testing.assert_allclose(mcp.coefs.toarray(), lasso.coefs.toarray(), atol=1e-6)
    np.testing.assert_allclose(near.coefs.toarray(), mcp.coefs.toarray(), atol=1e-6)


def test_infinite_gamma_and_groups_of_one_are_the_standardised_lasso():
    data = make_group_sparse(60, 90, 1, design="ar", values="normal", random_state=2)
    lasso = GroupLasso(standardize=True, tol=1e-14).path(data.X, data.y, [0.5, 0.2])
    mcp = GroupMCP(gamma=np.inf, tol=1e-12).path(data.X, data.y, [0.5, 0.2])
    np.testing.assert_allclose(mcp.coefs.toarray(), lasso.coefs.toarray(), atol=1e-5)


@BOTH
def test_strong_groups_are_least_squares(model):
    data = make_group_sparse(200, 30, 3, active=2, random_state=4)
    model = model(groups=data.groups, penalty=0.1).fit(data.X, data.y)
    on = data.w_star != 0
    X = np.column_stack([data.X[:, on], np.ones(200)])
    np.testing.assert_allclose(model.coef_[on], np.linalg.lstsq(X, data.y, rcond=None)[0][:-1], atol=1e-5)
    assert not model.coef_[~on].any()


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


def test_no_convergence_is_said_aloud():
    data = make_group_sparse(40, 60, 3, random_state=10)
    with pytest.warns(ConvergenceWarning, match=r"max_iter \(1 sweeps\)"):
        GroupMCP(groups=3, penalty=0.01, max_iter=1).fit(data.X, data.y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"penalty": 0.0}, "penalty must be above 0"),
        ({"gamma": 1.0}, "gamma must be above 1"),
        ({"group_weights": "size"}, "'sqrt', 'unit' or an array"),
        ({"tol": -1.0}, "tol must be above 0"),
    ],
)
def test_bad_parameters(change, message):
    data = make_group_sparse(40, 60, 3, random_state=0)
    with pytest.raises(ValueError, match=message):
        GroupMCP(**{"groups": 3, **change}).fit(data.X, data.y)


def test_gamma_of_scad_is_above_two():
    data = make_group_sparse(40, 60, 3, random_state=0)
    with pytest.raises(ValueError, match="gamma must be above 2"):
        GroupSCAD(groups=3, gamma=2.0).fit(data.X, data.y)


@BOTH
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_contract(model):
    check_estimator(model())
