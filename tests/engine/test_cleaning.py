"""Backward elimination by block inverses against a fit of every set from scratch."""

import numpy as np
import pytest

from covey import Groups
from covey.engine.cleaning import clean, least_squares
from covey.preprocess import prepare

SIZES = [3, 1, 4, 2, 3, 5, 1, 2]
ORDER = [5, 0, 3, 7, 2, 1]


def draw(seed=0, n=80, weighted=False, deficient=False):
    """Columns of unequal scale and mean, correlated between groups; three groups matter."""
    rng = np.random.default_rng(seed)
    p = sum(SIZES)
    X = rng.standard_normal((n, p)) + 0.7 * rng.standard_normal((n, 1))
    X = X * rng.uniform(0.2, 5.0, p) + rng.uniform(-4, 4, p)
    groups = Groups.from_sizes(SIZES)
    if deficient:
        of = groups.lists()
        X[:, of[0][2]] = X[:, of[0][0]] - 2 * X[:, of[0][1]]
        X[:, of[2][1]] = X[:, of[2][0]]
        X[:, of[5][4]] = 7.0
    y = 3.0 + X[:, groups.lists()[0]].sum(axis=1) - X[:, groups.lists()[3]].sum(axis=1) + rng.standard_normal(n)
    weight = rng.integers(0, 4, n).astype(float) if weighted else np.ones(n)
    return X, y, groups, weight


def objective(X, y, weight, columns, ridge):
    """The least of mean squared error plus ridge, the penalty being on columns of unit variance; and the fit there."""
    q = weight / weight.sum()
    Z, r = X[:, columns] - q @ X[:, columns], y - q @ y
    sd = np.sqrt(q @ Z**2)
    Z = Z / np.where(sd > 1e-9, sd, 1.0)
    root = np.sqrt(q)[:, None]
    A = np.concatenate([root * Z, np.sqrt(ridge) * np.eye(Z.shape[1])])
    b = np.linalg.lstsq(A, np.concatenate([root[:, 0] * r, np.zeros(Z.shape[1])]), rcond=1e-10)[0]
    return float(q @ (r - Z @ b) ** 2 + ridge * b @ b), Z @ b + q @ y


def columns_of(groups, which):
    return np.concatenate([np.empty(0, dtype=int), *(groups.lists()[l] for l in which)]).astype(int)


CASES = {
    "plain": ({}, 0.0),
    "weighted": ({"weighted": True}, 0.0),
    "rank-deficient": ({"deficient": True}, 0.0),
    "ridge": ({}, 0.3),
    "weighted ridge": ({"weighted": True}, 1.0),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", range(3))
def test_every_set_is_fitted_and_the_cheapest_group_goes(case, seed):
    how, ridge = CASES[case]
    X, y, groups, weight = draw(seed, **how)
    problem, _ = prepare(X, y, groups, sample_weight=weight)
    (nested,) = clean(problem, ORDER, [len(ORDER)], [ridge])
    assert nested.groups.tolist() == ORDER
    np.testing.assert_array_equal(nested.kept.sum(axis=1), np.arange(len(ORDER), -1, -1))
    coefs, intercepts = nested.coefficients(problem)
    fits = X[:, nested.columns(problem)] @ coefs.T + intercepts
    seen = weight > 0
    for i, kept in enumerate(nested.kept):
        left = nested.groups[kept].tolist()
        here, fit = objective(X, y, weight, columns_of(groups, left), ridge)
        np.testing.assert_allclose(fits[seen, i], fit[seen], rtol=0, atol=1e-5 * y.std())
        if not left:
            break
        without = {l: [m for m in left if m != l] for l in left}
        rise = {
            l: (objective(X, y, weight, columns_of(groups, rest), ridge)[0] - here) / problem.ranks[l]
            for l, rest in without.items()
        }
        (dropped,) = set(left) - set(nested.groups[nested.kept[i + 1]].tolist())
        assert rise[dropped] <= min(rise.values()) + 1e-7 * y.var()


def test_a_prefix_is_cleaned_as_if_it_were_all():
    X, y, groups, weight = draw()
    problem, _ = prepare(X, y, groups, sample_weight=weight)
    several = clean(problem, ORDER, [2, 5], [0.0, 0.3])
    assert [(nested.groups.size, nested.ridge) for nested in several] == [(2, 0.0), (2, 0.3), (5, 0.0), (5, 0.3)]
    for nested in several:
        m = nested.groups.size
        (alone,) = clean(problem, ORDER[:m], [m], [nested.ridge])
        np.testing.assert_array_equal(nested.kept, alone.kept)
        np.testing.assert_allclose(nested.w, alone.w, atol=1e-12)


def test_the_true_groups_are_the_last_to_go():
    X, y, groups, weight = draw()
    problem, _ = prepare(X, y, groups, sample_weight=weight)
    (nested,) = clean(problem, ORDER, [len(ORDER)])
    assert set(nested.groups[nested.kept[-3]].tolist()) == {0, 3}


def test_groups_that_repeat_each_other_are_told_apart():
    X, y, groups, weight = draw()
    X[:, groups.lists()[7]] = X[:, groups.lists()[3]]
    problem, _ = prepare(X, y, groups, sample_weight=weight)
    (nested,) = clean(problem, ORDER, [len(ORDER)])
    # one of the two goes first: it costs nothing
    assert set(ORDER) - set(nested.groups[nested.kept[1]].tolist()) < {3, 7}
    assert np.isfinite(nested.w).all()


@pytest.mark.parametrize("ridge", [0.0, 0.5])
@pytest.mark.parametrize("standardize", ["group", "column"])
def test_least_squares_does_not_depend_on_the_working_coordinates(ridge, standardize):
    X, y, groups, weight = draw(weighted=True)
    problem, _ = prepare(X, y, groups, sample_weight=weight, standardize=standardize)
    w, fitted, at = least_squares(problem, ORDER[:4], ridge), np.full(len(y), problem.y_mean), 0
    for l in ORDER[:4]:
        fitted += problem.working_columns(np.array([l])) @ w[at : at + problem.ranks[l]] * problem.y_scale
        at += problem.ranks[l]
    expected = objective(X, y, weight, columns_of(groups, ORDER[:4]), ridge)[1]
    np.testing.assert_allclose(fitted[weight > 0], expected[weight > 0], atol=1e-6 * y.std())


def test_nothing_to_clean():
    X, y, groups, weight = draw()
    problem, _ = prepare(X, y, groups, sample_weight=weight)
    assert clean(problem, [], []) == []
    assert least_squares(problem, []).size == 0
