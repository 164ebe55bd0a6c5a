"""The group lasso by its certificates, closed forms and reductions."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso
from sklearn.utils.estimator_checks import check_estimator

from covey import Groups
from covey.datasets import make_group_sparse
from covey.paper.baselines import GroupLasso, PrimalDual, certify


@pytest.mark.parametrize("shape", [(60, 120), (40, 2000)], ids=["all columns", "a working set of them"])
def test_every_solution_of_a_path_is_certified(shape):
    data = make_group_sparse(*shape, 4, active=3, values="normal", random_state=1)
    path = GroupLasso(groups=data.groups, fit_intercept=False).path(data.X, data.y, n_penalties=20, least=0.05)
    assert path.times.tolist() == list(range(20))
    assert (np.diff(path.penalties) < 0).all()
    assert [path.coefs[[k]].nnz > 0 for k in (0, 1)] == [False, True]  # the first penalty just zeroes everything
    goal = 1e-8 * data.y @ data.y / (2 * len(data.y))
    for w, penalty in zip(path.coefs.toarray(), path.penalties, strict=True):
        certificate = certify(data.X, data.y, data.groups, w, penalty)
        assert certificate.gap <= 1.01 * goal
        assert certificate.kkt < 0.05


def test_stationarity_to_rounding_when_asked_for():
    data = make_group_sparse(50, 30, 3, design="ar", random_state=2)
    model = GroupLasso(groups=data.groups, penalty=0.3, fit_intercept=False, tol=1e-14).fit(data.X, data.y)
    assert certify(data.X, data.y, data.groups, model.coef_, 0.3).kkt < 1e-6
    assert model.dual_gap_ <= 1e-14 * data.y @ data.y / 100


@pytest.mark.parametrize("weights", ["unit", "sqrt", [0.5, 2.0, 1.0]])
def test_closed_form_on_an_orthogonal_design(weights):
    groups = Groups.from_sizes([1, 3, 2])
    data = make_group_sparse(40, 6, groups, design="orthogonal", values="normal", random_state=3)
    omega = {"unit": np.ones(3), "sqrt": np.sqrt([1, 3, 2])}.get(weights) if isinstance(weights, str) else weights
    c = data.X.T @ data.y / 40
    shrink = np.maximum(1 - 0.2 * np.asarray(omega) / groups.norms(c), 0)[groups.labels]
    model = GroupLasso(groups=groups, penalty=0.2, group_weights=weights, fit_intercept=False, tol=1e-14)
    np.testing.assert_allclose(model.fit(data.X, data.y).coef_, shrink * c, atol=1e-7)


def test_groups_of_one_are_the_lasso():
    data = make_group_sparse(50, 80, 1, values="normal", random_state=4)
    ours = GroupLasso(penalty=0.1, tol=1e-12).fit(data.X, data.y + 7)
    theirs = Lasso(alpha=0.1, tol=1e-12, max_iter=100_000).fit(data.X, data.y + 7)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-5)


def test_order_of_columns_and_of_penalties_does_not_matter():
    data = make_group_sparse(40, 60, 3, random_state=6)
    order = np.random.default_rng(0).permutation(60)
    labels = data.groups.labels[order]
    penalties = [0.1, 2.0, 0.5]
    one = GroupLasso(groups=data.groups, tol=1e-12).path(data.X, data.y, penalties)
    two = GroupLasso(groups=labels, tol=1e-12).path(data.X[:, order], data.y, penalties[::-1])
    np.testing.assert_allclose(one.coefs.toarray()[:, order], two.coefs.toarray(), atol=1e-5)
    assert one.penalties.tolist() == [2.0, 0.5, 0.1]


def test_standardised_solution_does_not_depend_on_the_units_of_columns():
    data = make_group_sparse(60, 30, 3, random_state=7)
    scale = np.geomspace(1e-3, 1e3, 30)
    one = GroupLasso(groups=3, standardize=True, tol=1e-12).fit(data.X, data.y)
    two = GroupLasso(groups=3, standardize=True, tol=1e-12).fit(data.X * scale, data.y)
    np.testing.assert_allclose(one.coef_, two.coef_ * scale, atol=1e-6)
    np.testing.assert_allclose(one.predict(data.X), two.predict(data.X * scale), atol=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_standardising_is_centring_and_dividing_by_the_root_mean_square(fit_intercept):
    """Over n, not n - 1, which is what the loss is scaled by; after centring, if there is an intercept."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 5)) * [1, 10, 0.1, 3, 5] + 4, rng.standard_normal(30) + 2
    options = {"groups": [0, 1, 0, 1, 0], "penalty": 0.05, "tol": 1e-13}
    centre, level = fit_intercept * X.mean(axis=0), fit_intercept * y.mean()
    scale = np.sqrt(np.mean((X - centre) ** 2, axis=0))
    ours = GroupLasso(standardize=True, fit_intercept=fit_intercept, **options).fit(X, y)
    by_hand = GroupLasso(fit_intercept=False, **options).fit((X - centre) / scale, y - level).coef_ / scale
    np.testing.assert_allclose(ours.coef_, by_hand, atol=1e-6)
    assert ours.intercept_ == pytest.approx(level - centre @ by_hand, abs=1e-6)
    np.testing.assert_allclose(ours.predict(X), X @ ours.coef_ + ours.intercept_)


def test_a_constant_column_and_a_zero_response_are_survived():
    data = make_group_sparse(30, 9, 3, random_state=8)
    X = data.X.copy()
    X[:, 4] = 0.1
    model = GroupLasso(groups=3, standardize=True).fit(X, data.y)
    assert model.coef_[4] == 0
    path = GroupLasso(groups=3).path(X, np.zeros(30), n_penalties=3)
    assert path.coefs.nnz == 0


def test_no_convergence_is_said_aloud():
    data = make_group_sparse(40, 60, 3, random_state=10)
    with pytest.warns(ConvergenceWarning, match=r"gap is .* Raise\s+max_iter \(now 1\)"):
        GroupLasso(groups=3, penalty=0.01, max_iter=1).fit(data.X, data.y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"penalty": 0.0}, "penalty must be above 0"),
        ({"group_weights": "size"}, "'sqrt', 'unit' or an array"),
        ({"group_weights": [1.0]}, "20 numbers above 0"),
        ({"tol": -1.0}, "tol must be above 0"),
        ({"groups": 7}, "do not divide 60"),
    ],
)
def test_bad_parameters(change, message):
    data = make_group_sparse(40, 60, 3, random_state=0)
    with pytest.raises(ValueError, match=message):
        GroupLasso(**{"groups": 3, **change}).fit(data.X, data.y)


def test_bad_penalties():
    data = make_group_sparse(40, 60, 3, random_state=0)
    for penalties in ([], [1.0, -1.0], [np.nan]):
        with pytest.raises(ValueError, match="penalties must be a vector of positive numbers"):
            GroupLasso(groups=3).path(data.X, data.y, penalties)
    with pytest.raises(ValueError, match="between 0 and 1"):
        GroupLasso(groups=3).path(data.X, data.y, least=2.0)


@pytest.mark.parametrize("estimator", [GroupLasso(), PrimalDual(n_steps=50)], ids=lambda e: type(e).__name__)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_contract(estimator):
    check_estimator(estimator)
