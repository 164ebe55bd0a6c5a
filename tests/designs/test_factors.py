"""Factors and adjusted designs against arrays that are projected explicitly."""

from __future__ import annotations

import numpy as np
import pytest

from covey import Groups, group_path
from covey.designs import AdjustedDesign, DenseDesign, Factors, as_design, count_factors, find_factors
from covey.designs.factors import SCORE_COLUMNS
from covey.preprocess import prepare


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


def explicit(X, factors):
    """``X - F A`` by its definition."""
    F = (X[:, factors.columns].astype(float) - factors.means) @ factors.loadings
    return X - F @ factors.effects, F


@pytest.mark.parametrize("kind", ["equal", "weighted"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", [(80, 120), (200, 30)])
def test_scores_are_orthonormal_and_centred(kind, fit_intercept, shape):
    X, _ = correlated(*shape)
    q = weights(shape[0], kind)
    factors = find_factors(as_design(X), q, 3, fit_intercept=fit_intercept)
    F = factors.scores(as_design(X))
    np.testing.assert_allclose(F.T * q @ F, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(factors.effects, F.T * q @ X, atol=1e-11)
    if fit_intercept:
        np.testing.assert_allclose(q @ F, 0, atol=1e-12)


@pytest.mark.parametrize("n", [80, 150, 400])
def test_they_are_the_principal_components(n):
    X, _ = correlated(n, 160)
    factors = find_factors(as_design(X), weights(n, "equal"), 2)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    U = np.linalg.svd(Z, full_matrices=False)[0][:, :2]
    F = factors.scores(as_design(X)) / np.sqrt(n)
    np.testing.assert_allclose(F @ F.T, U @ U.T, atol=1e-10)


@pytest.mark.parametrize("n", [80, 150, 300])
@pytest.mark.parametrize("k", [2, 4])
def test_weights_are_repetitions(n, k):
    """Also where the data have two factors and more are asked for."""
    X, _ = correlated(n, 300)
    times = np.random.default_rng(2).integers(0, 3, n)
    once = find_factors(as_design(X), times / times.sum(), k)
    repeated = np.repeat(X, times, axis=0)
    many = find_factors(as_design(repeated), np.full(len(repeated), 1 / len(repeated)), k)
    np.testing.assert_allclose(explicit(X, once)[0], explicit(X, many)[0], atol=1e-9)


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
    assert np.isfinite(factors.effects).all()
    F = factors.scores(as_design(X))
    np.testing.assert_allclose(factors.effects[:, 7], F.T * q @ X[:, 7], rtol=1e-10)
    path = group_path(AdjustedDesign.of(as_design(X), factors, q), X[:, 12], Groups.from_size(4, 40), max_iter=200)
    assert np.isfinite(path.coefs.toarray()).all()
    still = find_factors(as_design(np.ones((10, 4))), np.full(10, 0.1), 2)
    assert still.n_factors == 0
    np.testing.assert_array_equal(AdjustedDesign.of(as_design(np.ones((5, 4))), still).take(np.arange(4)), 1.0)


@pytest.mark.parametrize("shape", [(50, 30), (150, 300), (300, 150)])
@pytest.mark.parametrize("rank", [1, 2])
def test_no_more_factors_than_directions(shape, rank):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))
    factors = find_factors(as_design(X), weights(shape[0], "equal"), 5)
    assert factors.n_factors == rank
    assert abs(explicit(X, factors)[0] - X.mean(axis=0)).max() < 1e-10


def test_missing_values_are_named():
    X, _ = correlated(40, 2500)
    q = weights(40, "equal")
    inside, outside = 0, int(np.setdiff1d(np.arange(2500), find_factors(as_design(X), q, 1).columns)[0])
    for column in (inside, outside):
        broken = X.copy()
        broken[3, column] = np.nan
        with pytest.raises(ValueError, match=f"missing or infinite values in column {column}"):
            find_factors(as_design(broken), q, 1)
    with pytest.raises(ValueError, match="at least 1"):
        find_factors(as_design(X), q, 0)


def test_full_coefficients_predict_the_same_on_new_rows():
    X, _ = correlated()
    q = weights(80, "weighted")
    factors = find_factors(as_design(X), q, 2)
    rng = np.random.default_rng(4)
    new = correlated(50, 120, seed=9)[0] + 5.0
    adjusted, F = explicit(new, factors)
    w, gamma = rng.standard_normal((3, 120)) * (rng.random((3, 120)) < 0.2), rng.standard_normal(2)
    coefs, shift = factors.full_coefficients(w, gamma)
    np.testing.assert_allclose(new @ coefs.T + shift, (F @ gamma)[:, None] + adjusted @ w.T, atol=1e-10)
    one, level = factors.full_coefficients(w[1], gamma)
    np.testing.assert_allclose(one, coefs[1], atol=1e-13)
    assert level == pytest.approx(shift[1])


class WithoutColumns(DenseDesign):
    """A design that lives on moments and Gram rows."""

    reads_columns = False

    def gather(self, columns):
        raise AssertionError("columns were gathered")

    def gram_rows(self, q, columns, loadings, offset):
        return ((self.X[:, columns] @ loadings - offset).T * q) @ self.X


LAYOUTS = {
    "equal": Groups.from_size(4, 120),
    "one large": Groups.from_sizes([1, 2, 3, 4, 5, 5, 30, 70]),
    "scattered": Groups.from_labels(np.random.default_rng(5).permutation(np.repeat(np.arange(30), 4)).tolist()),
}


@pytest.mark.parametrize("store", [DenseDesign, lambda X: DenseDesign(np.asfortranarray(X)), WithoutColumns])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["equal", "weighted"])
@pytest.mark.parametrize("found_on", ["these rows", "other rows"])
@pytest.mark.parametrize("centre", [True, False])
def test_every_operation_is_that_of_the_projected_array(store, layout, kind, found_on, centre):
    groups = LAYOUTS[layout]
    X, y = correlated()
    q = weights(80, kind)
    training = X if found_on == "these rows" else correlated(seed=7)[0]
    factors = find_factors(as_design(training), q, 2, fit_intercept=centre)
    dense = DenseDesign(explicit(X, factors)[0])
    design = AdjustedDesign.of(store(X), factors, q if found_on == "these rows" else None)
    some = np.array([3, 50, 119, 7])
    R = np.random.default_rng(0).standard_normal((3, 80))
    np.testing.assert_allclose(design.take(some), dense.take(some), atol=1e-12)
    np.testing.assert_allclose(design.correlate(R), dense.correlate(R), atol=1e-10)
    loadings, offset = R[:, :4].T, R[:, 5]
    np.testing.assert_allclose(
        design.gram_rows(q, some, loadings, offset), dense.gram_rows(q, some, loadings, offset), atol=1e-10
    )
    coefs = R[:2, :4]
    np.testing.assert_allclose(design.predict(some, coefs, 1.0), dense.predict(some, coefs, 1.0), atol=1e-11)
    for weight in (q, weights(80, "weighted")[::-1].copy()):
        assert design.errors(y, weight)(some, coefs, np.zeros(2)) == pytest.approx(
            dense.errors(y, weight)(some, coefs, np.zeros(2)), rel=1e-9
        )
        scale = np.exp2(np.arange(120) % 3)
        made = design.moments(y, weight, groups.members, groups.starts, centre=centre, scale=scale)
        wanted = dense.moments(y, weight, groups.members, groups.starts, centre=centre, scale=scale)
        for field in ("mean", "variance", "correlation", "blocks", "block_starts"):
            np.testing.assert_allclose(getattr(made, field), getattr(wanted, field), rtol=1e-9, atol=1e-9)
    if design.reads_columns:
        gathered = design.gather(some).join(design.gather(np.array([60])))
        np.testing.assert_allclose(gathered.correlate(R), dense.correlate(R)[:, [*some, 60]], atol=1e-10)


@pytest.mark.parametrize("store", [DenseDesign, WithoutColumns])
@pytest.mark.parametrize(
    "options", [{}, {"standardize": "column"}, {"fit_intercept": False}, {"engine": "exact"}, {"sample_weight": 1}]
)
def test_the_path_is_that_of_the_projected_array(store, options):
    X, y = correlated()
    options = dict(options)
    q = weights(80, "weighted" if "sample_weight" in options else "equal")
    options["sample_weight"] = q
    factors = find_factors(as_design(X), q, 2, fit_intercept=options.get("fit_intercept", True))
    dense, F = explicit(X, factors)
    rest = y - F @ (F.T @ (q * y))
    settings = {"groups": LAYOUTS["equal"], "max_iter": 400, "times": np.arange(0, 401, 20), **options}
    expected = group_path(dense, rest, **settings)
    path = group_path(AdjustedDesign.of(store(X), factors, q), rest, **settings)
    largest = abs(expected.coefs).max()
    assert largest > 0.5
    assert [l for l, _ in path.entered] == [l for l, _ in expected.entered]
    assert abs(path.coefs - expected.coefs).max() <= 1e-8 * largest
    np.testing.assert_allclose(path.intercepts, expected.intercepts, rtol=1e-8, atol=1e-8 * largest)


def test_single_precision():
    X, y = correlated(dtype="float32")
    q = weights(80, "equal")
    factors = find_factors(as_design(X), q, 2)
    dense, F = explicit(X, factors)
    rest = y - F @ (F.T @ (q * y))
    settings = {"groups": LAYOUTS["equal"], "max_iter": 400, "times": np.arange(0, 401, 20)}
    expected = group_path(dense, rest, **settings)
    design = AdjustedDesign.of(as_design(X), factors, q)
    assert design.correlate(X.T[:2]).dtype == design.gather(np.arange(3)).dtype == np.float32
    path = group_path(design, rest, **settings)
    assert abs(path.coefs - expected.coefs).max() <= 1e-3 * abs(expected.coefs).max()


@pytest.mark.parametrize(("dtype", "left"), [("float64", 1e-5), ("float32", 1e-2)])
def test_columns_that_the_factors_explain(dtype, left):
    """One column is all factor and must vanish; one is nearly so and must keep its digits; one group loses a rank."""
    X, _ = correlated(p=40)
    q = weights(80, "equal")
    groups = Groups.from_size(4, 40)
    rng = np.random.default_rng(3)
    X = X.astype(dtype)
    # the factors are made of the other columns alone
    others = np.setdiff1d(np.arange(40), [4, 9, 13])
    own = find_factors(as_design(X[:, others]), q, 2)
    scores = own.scores(as_design(X[:, others]))
    X[:, 4] = scores @ [1.0, 2.0] + 0.5
    X[:, 9] = scores @ [2.0, -1.0] + left * rng.standard_normal(80)
    X[:, 13] = scores @ [1.0, 1.0] + X[:, 12]
    factors = Factors(others[own.columns], own.means, own.loadings, scores.T * q @ X)
    design = AdjustedDesign.of(as_design(X), factors, q)
    dense = explicit(X, factors)[0]
    problem, _ = prepare(design, X[:, 20], groups)
    assert problem.ranks[1] == 3
    assert problem.ranks[3] == 3
    assert problem.ranks[[0, 2, 4]].tolist() == [4, 4, 4]
    Z = problem.working_columns(np.array([2]))
    np.testing.assert_allclose(Z.T * q @ Z, np.eye(4), atol=1e-8 if dtype == "float64" else 1e-4)
    y = X[:, 20].astype(float)
    variance = design.moments(y, q, groups.members, groups.starts, centre=True, scale=np.ones(40)).variance
    assert variance[4] == 0
    assert variance[9] == pytest.approx(dense[:, 9].var(), rel=1e-6)


def test_factors_of_other_columns_are_refused():
    X, _ = correlated()
    factors = find_factors(as_design(X), weights(80, "equal"), 1)
    with pytest.raises(ValueError, match="found in 120 columns, and X has 100"):
        AdjustedDesign.of(as_design(X[:, :100]), factors)


# ---------------------------------------------------------------------- how many


def autoregressive(rng, n, labels, rho):
    X = rng.standard_normal((n, labels.size))
    for j in range(1, labels.size):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho * rho) * X[:, j]
    return X


def within_groups(rng, n, labels):
    """Columns of a group nearly equal, groups independent."""
    return rng.standard_normal((n, labels.max() + 1))[:, labels] + 0.3 * rng.standard_normal((n, labels.size))


def sharing(*strengths):
    def make(rng, n, labels):
        loadings = rng.standard_normal((len(strengths), labels.size)) * np.array(strengths)[:, None]
        return rng.standard_normal((n, len(strengths))) @ loadings + rng.standard_normal((n, labels.size))

    return make


def equicorrelated(rho):
    def make(rng, n, labels):
        common = rng.standard_normal((n, 1))
        return np.sqrt(rho) * common + np.sqrt(1 - rho) * rng.standard_normal((n, labels.size))

    return make


COUNTS = {
    "Gaussian": (lambda rng, n, labels: rng.standard_normal((n, labels.size)), 0),
    "Rademacher": (lambda rng, n, labels: rng.choice([-1.0, 1.0], (n, labels.size)), 0),
    "heavy tails": (lambda rng, n, labels: rng.standard_t(3, (n, labels.size)), 0),
    "AR 0.5": (lambda rng, n, labels: autoregressive(rng, n, labels, 0.5), 0),
    "AR 0.9": (lambda rng, n, labels: autoregressive(rng, n, labels, 0.9), 0),
    "within groups": (within_groups, 0),
    "equicorrelated 0.3": (equicorrelated(0.3), 1),
    "equicorrelated 0.5": (equicorrelated(0.5), 1),
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


def test_few_groups_or_rows_tell_nothing():
    rng = np.random.default_rng(0)
    X = equicorrelated(0.8)(rng, 30, np.zeros(30, dtype=int))
    whole = Groups.from_size(10, 30)
    assert count_factors(as_design(X), np.full(30, 1 / 30), whole.members, whole.starts) == 0
    each = Groups.from_size(1, 30)
    assert count_factors(as_design(X), np.full(30, 1 / 30), each.members, each.starts) == 1
    assert count_factors(as_design(X[:6]), np.full(6, 1 / 6), each.members, each.starts) == 0


def test_a_design_of_low_rank_is_all_factors():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 50))
    each = Groups.from_size(1, 50)
    assert count_factors(as_design(X), weights(60, "equal"), each.members, each.starts) == 2
