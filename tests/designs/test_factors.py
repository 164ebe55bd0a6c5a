"""Factors and adjusted designs against arrays that are projected explicitly."""

from __future__ import annotations

import numpy as np
import pytest

from covey import Groups, GroupSparseRegressor
from covey.designs import as_design, count_factors, find_factors
from covey.designs.factors import SCORE_COLUMNS
from covey.selection import Size
from storage_kinds import KINDS


def correlated(n=80, p=120, k=2, dtype="float64", seed=0):
    """Columns of unequal mean and scale that share k factors; five groups of four carry the signal."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, k)) @ rng.standard_normal((k, p)) + rng.standard_normal((n, p))
    X = X * rng.uniform(0.5, 2.0, p) + rng.uniform(-3, 3, p)
    y = X[:, :20] @ np.repeat([3.0, -2.5, 2.0, 1.5, 1.0], 4) + 0.3 * rng.standard_normal(n) + 1.0
    return X.astype(dtype), y


def weights(n, kind):
    q = np.ones(n) if kind == "equal" else np.random.default_rng(1).integers(0, 4, n).astype(float)
    return q / q.sum()


def explicit(X, factors, q):
    """What the scores leave of X."""
    F = (X[:, factors.columns].astype(float) - factors.means) @ factors.loadings
    return X - F @ (F.T * q @ X)


@pytest.mark.parametrize("kind", ["equal", "weighted"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", [(80, 120), (200, 30)])
def test_scores_are_orthonormal_and_centred(kind, fit_intercept, shape):
    X, _ = correlated(*shape)
    q = weights(shape[0], kind)
    factors = find_factors(as_design(X), q, 3, fit_intercept=fit_intercept)
    F = factors.scores(as_design(X))
    np.testing.assert_allclose(F.T * q @ F, np.eye(3), atol=1e-12)
    if fit_intercept:
        np.testing.assert_allclose(q @ F, 0, atol=1e-12)


@pytest.mark.parametrize("n", [80, 400])
def test_they_are_the_principal_components(n):
    X, _ = correlated(n, 160)
    factors = find_factors(as_design(X), weights(n, "equal"), 2)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    U = np.linalg.svd(Z, full_matrices=False)[0][:, :2]
    F = factors.scores(as_design(X)) / np.sqrt(n)
    np.testing.assert_allclose(F @ F.T, U @ U.T, atol=1e-10)
    with pytest.raises(ValueError, match="computed from 160 columns, but X has 100"):
        factors.scores(as_design(X[:, :100]))


@pytest.mark.parametrize("k", [2, 4], ids=["as many as there are", "more"])
def test_weights_are_repetitions(k):
    X, _ = correlated(150, 300)
    times = np.random.default_rng(2).integers(0, 3, 150)
    q, repeated = times / times.sum(), np.repeat(X, times, axis=0)
    once, many = find_factors(as_design(X), q, k), find_factors(as_design(repeated), weights(len(repeated), "equal"), k)
    np.testing.assert_allclose(explicit(X, once, q), explicit(X, many, q), atol=1e-9)


def test_wide_designs_are_read_in_part():
    X, _ = correlated(40, 2500)
    factors = find_factors(as_design(X), weights(40, "equal"), 2)
    assert factors.columns.size == SCORE_COLUMNS
    assert (factors.columns[0], factors.columns[-1]) == (0, 2499)
    assert np.diff(factors.columns).max() <= 6


def test_constant_columns_and_extreme_units():
    X, _ = correlated(60, 40)
    X[:, 3], X[:, 5], X[:, 7], X[:, 9] = 0.1, 0.0, X[:, 7] * 1e160, X[:, 9] * 1e-160
    q = weights(60, "equal")
    factors = find_factors(as_design(X), q, 2)
    assert set(range(40)) - set(factors.columns.tolist()) == {3, 5, 7, 9}
    assert np.isfinite(factors.loadings).all()
    still = find_factors(as_design(np.ones((10, 4))), np.full(10, 0.1), 2)
    assert still.n_factors == 0


@pytest.mark.parametrize(("shape", "rank"), [((50, 30), 1), ((150, 300), 2), ((300, 150), 1)])
def test_no_more_factors_than_directions(shape, rank):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))
    q = weights(shape[0], "equal")
    factors = find_factors(as_design(X), q, 5)
    assert factors.n_factors == rank
    assert abs(explicit(X, factors, q) - X.mean(axis=0)).max() < 1e-10


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_missing_values_are_named(value):
    X, _ = correlated(40, 50)
    X[3, 7] = value
    q = weights(40, "equal")
    with pytest.raises(ValueError, match="missing or infinite values in column 7"):
        find_factors(as_design(X), q, 1)
    with pytest.raises(ValueError, match="at least 1"):
        find_factors(as_design(X), q, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_factors_do_not_depend_on_the_storage(kind, tmp_path):
    X, _ = correlated(90, 60)
    X += 1e6  # digits are lost where means are not subtracted
    design, q = as_design(KINDS[kind](X, tmp_path)), weights(90, "weighted")
    groups = Groups.from_size(2, 60)
    assert count_factors(design, q, groups.members, groups.starts) == 2
    found, expected = find_factors(design, q, 2), find_factors(as_design(X), q, 2)
    F, E = found.scores(design), expected.scores(as_design(X))
    np.testing.assert_allclose((F * q[:, None]).T @ E, np.diag(np.sign(np.diag((F * q[:, None]).T @ E))), atol=1e-8)


# ---------------------------------------------------------------------- how many


def gaussian(rng, n, labels):
    return rng.standard_normal((n, labels.size))


def autoregressive(rho):
    def make(rng, n, labels):
        X = gaussian(rng, n, labels)
        for j in range(1, labels.size):
            X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho * rho) * X[:, j]
        return X

    return make


def within_groups(rng, n, labels):
    """Columns of a group nearly equal, groups independent."""
    return rng.standard_normal((n, labels.max() + 1))[:, labels] + 0.3 * gaussian(rng, n, labels)


def sharing(*strengths):
    def make(rng, n, labels):
        loadings = rng.standard_normal((len(strengths), labels.size)) * np.array(strengths)[:, None]
        return rng.standard_normal((n, len(strengths))) @ loadings + gaussian(rng, n, labels)

    return make


def equicorrelated(rho):
    return lambda rng, n, labels: (
        np.sqrt(rho) * rng.standard_normal((n, 1)) + np.sqrt(1 - rho) * gaussian(rng, n, labels)
    )


COUNTS = {
    "Gaussian": (gaussian, 0),
    "Rademacher": (lambda rng, n, labels: rng.choice([-1.0, 1.0], (n, labels.size)), 0),
    "heavy tails": (lambda rng, n, labels: rng.standard_t(3, (n, labels.size)), 0),
    "AR 0.5": (autoregressive(0.5), 0),
    "AR 0.9": (autoregressive(0.9), 0),
    "within groups": (within_groups, 0),
    "equicorrelated 0.3": (equicorrelated(0.3), 1),
    "equicorrelated 0.8": (equicorrelated(0.8), 1),
    "two": (sharing(1.0, 0.8), 2),
    "three": (sharing(1.0, 0.9, 0.8), 3),
}


@pytest.mark.parametrize("sizes", ["equal", "mixed"])
@pytest.mark.parametrize("name", COUNTS)
def test_the_number_of_factors(name, sizes):
    make, expected = COUNTS[name]
    for seed in range(3):
        rng = np.random.default_rng([seed, 11])
        if sizes == "equal":
            groups = Groups.from_size(5, 1000)
        else:
            drawn = rng.integers(1, 31, 1000)
            groups = Groups.from_sizes(drawn[np.cumsum(drawn) <= 1000].tolist())
        X = make(rng, 200, groups.labels)
        q = weights(200, "equal" if seed else "weighted")
        assert count_factors(as_design(X), q, groups.members, groups.starts) == expected


def test_few_groups_or_rows_tell_nothing_and_a_low_rank_is_all_factors():
    rng = np.random.default_rng(0)
    X, each = equicorrelated(0.8)(rng, 30, np.zeros(30)), Groups.from_size(1, 30)
    low_rank = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 30))
    for Z, groups, n_factors in ((X, Groups.from_size(10, 30), 0), (X, each, 1), (X[:6], each, 0), (low_rank, each, 2)):
        assert count_factors(as_design(Z), weights(len(Z), "equal"), groups.members, groups.starts) == n_factors


def test_repeated_eigenvalues():
    # a routine that computes only some eigenvalues fails here
    rng = np.random.default_rng(905)
    X = np.eye(40)[rng.integers(40, size=60)]
    model = GroupSparseRegressor(selection=Size(1)).fit(X, X[:, :5].sum(axis=1) + 0.3 * rng.standard_normal(60))
    assert len(model.selected_groups_) == 1
