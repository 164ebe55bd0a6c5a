"""Working coordinates: orthonormal, exact, reversible, and never a copy of X."""

import numpy as np
import pytest
from scipy import stats

from covey import Groups
from covey.preprocess import prepare
from covey.preprocess.working import read_weights

SIZES = [1, 3, 5, 3, 70]


def problem_of(*data, **settings):
    return prepare(*data, **settings)[0]


def working_matrix(problem):
    return np.concatenate([problem.working_columns(np.array([l])) for l in range(problem.ranks.size)], axis=1)


def to_user(problem, w):
    """The coefficients of the columns of X for coefficients of all working columns."""
    columns, loadings, _ = problem.combination(list(range(problem.ranks.size)))
    coef = np.zeros(columns.size)
    coef[columns] = loadings @ w * problem.y_scale
    return coef


def data(n=90, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, sum(SIZES))) * rng.uniform(0.1, 10, sum(SIZES)) + rng.uniform(-50, 50, sum(SIZES))
    return X, X[:, 1] + rng.standard_normal(n), Groups.from_sizes(SIZES)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("weighted", [False, True])
def test_groups_become_orthonormal(order, weighted):
    X, y, groups = data()
    weights = np.random.default_rng(1).uniform(0, 2, len(y)) if weighted else None
    problem = problem_of(np.asarray(X, order=order), y, groups, sample_weight=weights)
    Z, q = working_matrix(problem), problem.q
    np.testing.assert_allclose(q @ Z, 0, atol=1e-10)
    for l in range(len(SIZES)):
        block = Z[:, problem.starts[l] : problem.starts[l + 1]]
        np.testing.assert_allclose(block.T @ (q[:, None] * block), np.eye(SIZES[l]), atol=1e-9)
    np.testing.assert_allclose(problem.correlation, Z.T @ (q * problem.response), atol=1e-10)


@pytest.mark.parametrize("standardize", ["group", "column", "block", False])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_mapped_back_model_predicts_the_same(standardize, fit_intercept):
    X, y, groups = data()
    problem = problem_of(X, y, groups, standardize=standardize, fit_intercept=fit_intercept)
    w = np.random.default_rng(2).standard_normal(problem.n_columns)
    coef = to_user(problem, w)
    for l in range(len(SIZES)):
        back = problem.from_user(np.array([l]), coef)
        np.testing.assert_allclose(back, w[problem.starts[l] : problem.starts[l + 1]], atol=1e-8)
    intercept = problem.y_mean - coef @ problem.mean
    working = problem.y_mean + problem.y_scale * (working_matrix(problem) @ w)
    np.testing.assert_allclose(X @ coef + intercept, working, atol=1e-10 * np.abs(working).max())


def test_gram_rows_are_products_of_working_columns():
    X, y, _ = data()
    groups = Groups.from_labels(np.random.default_rng(3).integers(0, 9, X.shape[1]).tolist())
    problem = problem_of(X, y, groups)
    Z = working_matrix(problem)
    rows = problem.gram_rows([4, 1])
    at = np.r_[problem.starts[4] : problem.starts[5], problem.starts[1] : problem.starts[2]]
    np.testing.assert_allclose(rows, Z[:, at].T @ (problem.q[:, None] * Z), atol=1e-9)


def rank_cases():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((50, 4))
    near, nearer = (np.column_stack([X[:, :3], X[:, 0] + part * X[:, 3]]) for part in (1e-5, 1e-9))
    dummies = np.eye(4)[rng.integers(0, 4, 50)]
    return {
        "full": (X, 4),
        "zero column": (X * [1, 0, 1, 1], 3),
        "constant column": (X * [1, 0, 1, 1] + [0, 7.3, 0, 0], 3),
        "duplicate": (X[:, [0, 0, 1, 2]], 3),
        "dummies": (dummies, 3),
        "all constant": (np.ones((50, 4)) * [1, 2, 3, 0.1], 0),
        "nearly dependent": (near, 4),
        "dependent up to rounding": (nearer, 3),
        "large mean": (X + 1e7, 4),
        "scales apart": (X * [1e-8, 1, 1e8, 1], 4),
        "constant of 1e150": (X * [1, 0, 1, 1] + [0, 1e150, 0, 0], 3),
    }


@pytest.mark.parametrize("case", rank_cases())
def test_rank_is_revealed(case):
    X, rank = rank_cases()[case]
    y = np.random.default_rng(5).standard_normal(50)
    problem = problem_of(X, y, 4)
    assert problem.ranks.tolist() == [rank]
    Z = working_matrix(problem)
    np.testing.assert_allclose(Z.T @ Z / 50, np.eye(rank), atol=1e-6)


@pytest.mark.parametrize("scale", [1e-150, 1e-80, 1e80, 1e150])
def test_extreme_scales(scale):
    X, y, groups = data()
    plain, scaled = problem_of(X, y, groups), problem_of(X * scale, y, groups)
    assert scaled.ranks.tolist() == plain.ranks.tolist()
    expected = plain.group_norms(plain.correlation)
    np.testing.assert_allclose(scaled.group_norms(scaled.correlation), expected, atol=1e-8)
    mixed = problem_of(X * np.where(np.arange(X.shape[1]) % 2, scale, 1.0), y, groups)
    np.testing.assert_allclose(mixed.group_norms(mixed.correlation), expected, atol=1e-7)


def test_block_scaling_divides_a_group_by_one_number():
    X, y, groups = data()
    X = X * np.geomspace(1e-3, 1e3, X.shape[1])
    X[:, 1] = 7.0
    problem = problem_of(X, y, groups, standardize="block")
    for l, name in enumerate(groups.names):
        columns = X[:, groups[name]]
        live = columns.std(axis=0) > 0
        unit = np.sqrt(np.mean(columns.std(axis=0)[live] ** 2))
        np.testing.assert_allclose(
            problem.working_columns(np.array([l])), ((columns - columns.mean(axis=0)) / unit)[:, live], atol=1e-9
        )


@pytest.mark.parametrize("standardize", ["group", "column", "block", False])
def test_columns_too_small_to_have_a_coefficient_are_refused(standardize):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    y = X[:, 2] - X[:, 3]
    # one over a number below 6e-309 is none
    X[:, :2] *= 1e-310
    with pytest.raises(ValueError, match="X varies by less than 1e-300 in columns 0, 1"):
        prepare(X, y, Groups.from_size(2, 4), standardize=standardize)


def test_coefficients_of_columns_on_very_different_scales_come_back():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6)) * np.array([1e150, 1.0, 1e-150, 1.0, 1e-90, 1e90])
    problem, _ = prepare(X, rng.standard_normal(40), Groups.from_size(3, 6))
    w = rng.standard_normal(problem.n_columns)
    found = problem.from_user(np.array([1, 0]), to_user(problem, w))
    np.testing.assert_allclose(found, np.concatenate([w[3:], w[:3]]), rtol=1e-9)


@pytest.mark.parametrize("first", [1.0, 10.0])
@pytest.mark.parametrize("sizes", [[1, 1, 1], [1, 3, 5, 3, 70], list(range(1, 41))])
def test_weights_by_noise_are_quantiles_of_chi(first, sizes):
    """In every group noise exceeds its weight, up to one number for all, with the same probability first/(L + 1)."""
    weights = read_weights("noise", np.array(sizes), first)
    share = min(first / (len(sizes) + 1), 0.5)
    norms = np.sqrt(stats.chi2.isf(share, sizes))
    np.testing.assert_allclose(weights, norms / norms.mean(), rtol=1e-9)
    np.testing.assert_allclose(read_weights("sqrt", np.array(sizes)), np.sqrt(sizes) / np.sqrt(sizes).mean())
    np.testing.assert_array_equal(read_weights(None, np.array(sizes)), 1.0)


@pytest.mark.parametrize("doubtful", [False, True], ids=["from Gram blocks", "from columns"])
def test_dependent_columns_have_coefficients_of_least_norm(doubtful):
    """On columns of unit variance: no level of a category is arbitrary, and equal columns share their coefficient."""
    rng = np.random.default_rng(4)
    X = np.eye(4)[rng.integers(4, size=80)]
    third = rng.standard_normal((80, 1))
    nearly = third + 1e-5 * rng.standard_normal((80, 1)) if doubtful else rng.standard_normal((80, 1))
    X = np.hstack([X, third, third, nearly])
    groups = Groups.from_lists([[0, 1, 2, 3], [4, 5, 6]])
    problem = problem_of(X, X @ np.arange(7.0), groups)
    coef = to_user(problem, rng.standard_normal(int(problem.ranks.sum())))
    centred = X - X.mean(axis=0)
    unit = centred / centred.std(axis=0)
    for columns in ([0, 1, 2, 3], [4, 5, 6]):
        scaled = (coef * centred.std(axis=0))[columns]
        least = np.linalg.lstsq(unit[:, columns], unit[:, columns] @ scaled, rcond=1e-9)[0]
        np.testing.assert_allclose(scaled, least, rtol=0, atol=1e-6 * np.abs(least).max())
