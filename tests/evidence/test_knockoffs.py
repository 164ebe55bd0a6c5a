"""Group knockoffs: the copies by their inner products, the sign-flip property by hand, the filter by its definition."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config

from covey import Groups
from covey.datasets import make_group_sparse
from covey.evidence import knockoffs
from covey.evidence.copies import (
    Columns,
    Copier,
    _structured,
    estimated_covariance,
    lost_correlation,
    maximum_entropy,
    read_columns,
)
from covey.evidence.reading import read_problem
from covey.evidence.statistic import e_values, filter_threshold, largest_set, signed_maximum, wake_up_rates


def chain(n, p, rho, seed=0):
    """Columns of an autoregression."""
    X = np.random.default_rng(seed).standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    return X


def weak_and_dense(n, p, seed):
    """Normal rows whose correlations are those of a Wishart matrix: many, and none of them strong."""
    rng = np.random.default_rng(seed)
    wishart = np.cov(rng.standard_normal((p, p + 1)))
    spread = np.sqrt(np.diag(wishart))
    return rng.standard_normal((n, p)) @ np.linalg.cholesky(wishart / np.outer(spread, spread)).T


def columns_of(X, sizes, always=(), weight=None):
    y, groups = np.arange(len(X), dtype=float), Groups.from_sizes(sizes)
    return read_columns(read_problem(X, y, groups, always, "squared", None, weight, fit_intercept=True))[0]


# ---------------------------------------------------------------------- the statistic


def constructed(loss="squared"):
    """Four groups of two columns beside copies; group 1 acts, and so does the copy of group 2."""
    rng = np.random.default_rng(1)
    Z, copies = rng.standard_normal((2, 60, 8))
    eta = Z[:, 2] - Z[:, 3] + 0.8 * copies[:, 4]
    if loss == "poisson":
        return Z, copies, rng.poisson(np.exp(0.5 * eta)).astype(float)
    return Z, copies, eta + 0.3 * rng.standard_normal(60)


def rates_of(Z, copies, y, swapped=(), max_groups=8, loss="squared", factors=0):
    columns = Columns(Z, np.full(4, 2), np.full(60, 1 / 60), np.empty((60, 0)), True)
    problem = read_problem(Z, y, 2, [], loss, None, None, fit_intercept=True, factors=factors)
    return wake_up_rates(problem, columns, copies, np.isin(np.arange(4), swapped), np.ones(4), max_groups)


def statistics(*data, **options):
    return signed_maximum(*rates_of(*data, **options))


@pytest.mark.parametrize("options", [{}, {"loss": "poisson"}, {"factors": 1}], ids=["squared", "poisson", "factors"])
@pytest.mark.parametrize("exchanged", [[1], [2], [0, 3], [0, 1, 2, 3]], ids=str)
def test_exchanging_groups_with_their_copies_flips_their_signs(options, exchanged):
    Z, copies, y = constructed(options.get("loss"))
    W = statistics(Z, copies, y, **options)
    assert W[1] > 0 > W[2]
    swap = np.isin(np.repeat(np.arange(4), 2), exchanged)
    flipped = statistics(np.where(swap, copies, Z), np.where(swap, Z, copies), y, **options)
    np.testing.assert_allclose(flipped, np.where(np.isin(np.arange(4), exchanged), -W, W), rtol=1e-7)


def test_where_things_stand_does_not_matter_but_for_ties():
    Z, copies, y = constructed()
    np.testing.assert_allclose(statistics(Z, copies, y, swapped=[0, 2, 3]), statistics(Z, copies, y), rtol=1e-7)
    same = copies.copy()
    same[:, 2:4] = Z[:, 2:4]
    # a copy that is the group itself: whatever stands first wakes up, so that the coin decides
    assert statistics(Z, same, y)[1] > 0 > statistics(Z, same, y, swapped=[1])[1]


def test_the_rate_is_that_of_the_model_a_group_joins():
    """By hand: the norm of a group's correlation with what the groups before it leave, in orthonormal coordinates."""
    Z, copies, y = constructed()
    group, copy = rates_of(Z, copies, y, max_groups=2)
    assert np.count_nonzero(group) == np.count_nonzero(copy) == 1
    left, first, second = (one - one.mean(axis=0) for one in (y, Z[:, 2:4], copies[:, 4:6]))
    left = left / left.std()
    for columns, rate in ((first, group[1]), (second, copy[2])):
        basis = np.linalg.qr(columns)[0]
        assert rate == pytest.approx(np.linalg.norm(basis.T @ left) / np.sqrt(60), rel=1e-8)
        left = left - basis @ (basis.T @ left)


# ---------------------------------------------------------------------- the copies


def test_fixed_copies_have_their_inner_products():
    X, sizes = chain(90, 14, 0.6), [3, 1, 4, 2, 2, 2]
    columns = columns_of(X, sizes, always=[1], weight=np.random.default_rng(0).uniform(0.5, 2, 90))
    copier = Copier(columns, fixed=True)
    copies = copier.draw(np.random.default_rng(3))
    q, Z = columns.q[:, None], columns.Z
    S = columns.covariance - Z.T @ (q * copies)
    np.testing.assert_allclose(copies.T @ (q * copies), columns.covariance, atol=1e-9)
    blocks = np.repeat(np.arange(5), columns.ranks)
    np.testing.assert_allclose(S[blocks[:, None] != blocks], 0, atol=1e-9)
    assert np.linalg.eigvalsh(S)[0] > 0
    np.testing.assert_allclose(copier.distance, np.diag(S).mean())
    for other in (np.ones((90, 1)), columns.held):
        np.testing.assert_allclose(copies.T @ (q * other), 0, atol=1e-9)


def test_gaussian_copies_have_their_moments():
    columns = columns_of(chain(20_000, 12, 0.7), [4, 4, 4])
    copies = Copier(columns, fixed=False).draw(np.random.default_rng(1))
    between = columns.Z.T @ copies / 20_000
    np.testing.assert_allclose(copies.T @ copies / 20_000, columns.covariance, atol=0.03)
    blocks = np.repeat(np.arange(3), 4)
    apart = blocks[:, None] != blocks
    np.testing.assert_allclose(between[apart], columns.covariance[apart], atol=0.03)


def equicorrelated(Sigma):
    """The largest multiple of the identity that is allowed, for similarities of at most one."""
    return min(1, 2 * np.linalg.eigvalsh(Sigma)[0]) * np.eye(len(Sigma))


def test_entropy_is_stationary_and_allowed():
    ranks = np.array([2, 1, 3, 2])
    Sigma = columns_of(chain(200, 8, 0.8), ranks).covariance
    S = maximum_entropy(Sigma, ranks)
    assert np.linalg.eigvalsh(2 * Sigma - S)[0] > 0
    inverse, starts = np.linalg.inv(2 * Sigma - S), np.r_[0, np.cumsum(ranks)]
    for a, b in pairwise(starts):
        # the derivative of log det(2 Sigma - S) + log det S in a block
        np.testing.assert_allclose(np.linalg.inv(S[a:b, a:b]), inverse[a:b, a:b], rtol=0.02)
    plain = equicorrelated(Sigma)
    value = [np.linalg.slogdet(2 * Sigma - s)[1] + np.linalg.slogdet(s)[1] for s in (S, 0.99 * plain)]
    assert value[0] > value[1]


def test_entropy_survives_covariances_of_heavy_tailed_rows():
    """This failed with a LinAlgError, because an asymmetry of S grew from sweep to sweep."""
    rng = np.random.default_rng(3)
    columns = columns_of(rng.standard_normal((200, 240)) / np.sqrt(rng.chisquare(3, (200, 1)) / 3), [4] * 60)
    covariance = _structured(columns)
    S = maximum_entropy(covariance, columns.ranks)
    np.testing.assert_array_equal(S, S.T)
    assert np.linalg.eigvalsh(S)[0] > 0
    assert np.linalg.eigvalsh(2 * covariance - S)[0] > 0


def test_a_similarity_that_is_too_large_is_scaled_down(monkeypatch):
    """Not clipped: S of twice the limit gives the copies of half of it."""
    columns = columns_of(chain(90, 12, 0.6), [3] * 4)
    limit = equicorrelated(columns.covariance)
    monkeypatch.setattr("covey.evidence.copies.maximum_entropy", lambda covariance, ranks: 2 * limit)
    assert Copier(columns, fixed=True).distance == pytest.approx(np.diag(limit).mean())


@pytest.mark.parametrize("kind", ["chain", "factors"])
def test_the_estimated_covariance_is_nearer_to_the_truth_than_that_of_the_rows(kind):
    """Truth: that of very many rows, in the coordinates of the few."""
    loadings = np.random.default_rng(4).standard_normal((2, 80))

    def draw_rows(n, seed):
        if kind == "chain":
            return chain(n, 80, 0.7, seed)
        rng = np.random.default_rng(seed)
        return rng.standard_normal((n, 2)) @ loadings + rng.standard_normal((n, 80))

    X, many = draw_rows(120, 1), draw_rows(20_000, 2)
    columns = columns_of(X, [4] * 20)
    T = np.linalg.lstsq(X - X.mean(axis=0), columns.Z, rcond=None)[0]
    truth = np.cov(many @ T, rowvar=False)

    def divergence(estimate):
        """Twice that of normal distributions."""
        ratio = np.linalg.solve(estimate, truth)
        return np.trace(ratio) - np.linalg.slogdet(ratio)[1] - len(truth)

    assert divergence(estimated_covariance(columns)) < 0.3 * divergence(columns.covariance)


def test_copies_keep_many_weak_correlations():
    """With fewer rows than columns none of these stands out, and zeroing them would give copies fewer than groups."""
    for seed in range(3):
        columns = columns_of(weak_and_dense(150, 180, seed), [4] * 45)
        copies = Copier(columns, fixed=False).draw(np.random.default_rng(seed))
        assert abs(lost_correlation(columns, copies)) < 0.1
    zeroed = np.random.default_rng(0).standard_normal(columns.Z.shape)
    assert lost_correlation(columns, zeroed) > 0.2


# ---------------------------------------------------------------------- from statistics to groups


def test_the_filter_is_its_definition():
    rng = np.random.default_rng(0)
    for _ in range(50):
        W = np.round(rng.normal(0.7, 1, 30), 1)
        allowed = [t for t in np.abs(W) if t > 0 and (1 + np.sum(-t >= W)) <= 0.3 * np.sum(t <= W)]
        threshold = filter_threshold(W, 0.3)
        assert threshold == (min(allowed) if allowed else np.inf)
        # e-values of one draw at the target are the filter
        e = e_values(W[None], 0.3)
        np.testing.assert_array_equal(e >= largest_set(e, 0.3), threshold <= W)


def test_e_values_of_groups_without_an_effect_add_up_to_at_most_the_number_of_groups():
    rng = np.random.default_rng(0)
    total = []
    for _ in range(400):
        W = rng.exponential(size=40) * rng.choice([-1, 1], 40)
        W[:10] = 1 + rng.exponential(size=10)  # these have an effect
        total.append(e_values(W[None], 0.2)[10:].sum())
    assert np.mean(total) <= 40 + 3 * np.std(total) / 20


def test_signs_of_groups_without_an_effect_are_those_of_a_coin():
    signs = []
    for seed in range(12):
        X = chain(120, 60, 0.7, seed)
        y = X[:, [0, 12, 24, 36]].sum(axis=1) + np.random.default_rng(100 + seed).standard_normal(120)
        W = knockoffs(X, y, 3, kind="gaussian", random_state=seed).draws[0]
        assert (W[[0, 4, 8, 12]] > 0).sum() >= 3
        signs += np.sign(np.delete(W, [0, 4, 8, 12])).tolist()
    heads = np.array(signs)[np.array(signs) != 0] > 0
    assert abs(heads.mean() - 0.5) <= 3 * 0.5 / np.sqrt(heads.size)


@pytest.fixture(scope="module")
def data():
    return make_group_sparse(200, 150, 3, active=12, sigma=0.5, random_state=0)


@pytest.mark.parametrize("n_draws", [1, 3])
def test_the_signal_is_found(data, n_draws):
    found = knockoffs(data.X, data.y, data.groups, fdr=0.2, n_draws=n_draws, random_state=1)
    assert found.kind == "gaussian"
    assert set(data.S.tolist()) <= set(found.selected_groups)
    assert len(found.selected_groups) <= 16
    frame = found.to_frame()
    assert frame["statistic"].is_monotonic_decreasing
    assert set(frame.query("selected").index) == set(found.selected_groups)
    with parallel_config("threading"):
        again = knockoffs(data.X, data.y, data.groups, fdr=0.2, n_draws=n_draws, n_jobs=2, random_state=1)
    np.testing.assert_array_equal(again.draws, found.draws)
    assert repr(found).startswith("KnockoffSelection(1")


@pytest.mark.parametrize("kind", ["gaussian", "fixed"])
def test_neither_units_nor_rows_of_weight_zero_matter(kind):
    data = make_group_sparse(150, 60, 3, active=5, random_state=2)
    scales = np.exp(np.random.default_rng(0).uniform(-20, 20, 60))
    plain = knockoffs(data.X, data.y, data.groups, kind=kind, random_state=0)
    assert plain.kind == kind
    X, y = 3 + data.X * scales, 7 - 1e5 * data.y
    scaled = knockoffs(X, y, data.groups, kind=kind, random_state=0)
    np.testing.assert_allclose(scaled.draws, plain.draws, rtol=1e-5, atol=1e-9)
    sparse = knockoffs(sp.csr_array(data.X), data.y, data.groups, kind=kind, random_state=0)
    np.testing.assert_allclose(sparse.draws, plain.draws, rtol=1e-8)
    more, weight = np.r_[data.X, data.X[:20] ** 2], np.r_[np.ones(150), np.zeros(20)]
    same = knockoffs(more, np.r_[data.y, np.ones(20)], data.groups, kind=kind, sample_weight=weight, random_state=0)
    np.testing.assert_allclose(same.draws, plain.draws, rtol=1e-8)


def test_groups_that_are_always_in(data):
    """What group 49 does to the response, and to others, is not their doing."""
    X = data.X + 0.8 * data.X[:, [147]]
    y = data.y + 10 * data.X[:, 147]
    found = knockoffs(X, y, data.groups, fdr=0.2, always=[49], random_state=0)
    assert found.always_groups == (49,)
    assert np.isnan(found.statistics[49])
    assert 49 not in found.to_frame().index
    assert found.n_groups == 49
    assert len(set(data.S.tolist()) & set(found.selected_groups)) >= 11
    assert len(found.selected_groups) <= 16


def test_groups_that_do_not_vary_are_not_selected():
    data = make_group_sparse(120, 60, 3, active=8, random_state=0)
    X = data.X.copy()
    X[:, 57:] = 2.0
    X[:, 54] = X[:, 55]
    found = knockoffs(X, data.y, data.groups, fdr=0.2, kind="gaussian", random_state=0)
    assert found.statistics[19] == 0
    assert set(data.S.tolist()) <= set(found.selected_groups)


def test_remarks(monkeypatch):
    rng = np.random.default_rng(0)
    X = np.hstack([rng.standard_normal((80, 8)), rng.integers(0, 2, (80, 2))])
    found = knockoffs(X, rng.standard_normal(80), 2, kind="gaussian", random_state=0)
    assert found.selected_groups == []
    assert found.threshold == np.inf
    summary = str(found.summary())
    assert "selects at least 10 groups or none" in summary
    assert "2 of 10 columns have two values" in summary
    assert "None is selected; the table has those with the strongest evidence" in summary
    assert "heavier tails" not in summary
    for shape in ((200, 1), (200, 24)):  # of rows, and of single columns
        X = rng.standard_normal((200, 24)) / np.sqrt(rng.chisquare(3, shape) / 3)
        assert "heavier tails" in str(knockoffs(X, rng.standard_normal(200), 2, kind="gaussian").summary())
    monkeypatch.setattr("covey.evidence.copies._share_of_rows", lambda columns: 0.0)
    X, y = weak_and_dense(150, 180, 0), rng.standard_normal(150)
    assert "lacks some of them" in str(knockoffs(X, y, 4, kind="gaussian", random_state=0).summary())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fdr": 0}, "fdr must be"),
        ({"fdr": 1.5}, "fdr must lie between 0 and 1"),
        ({"kind": "second-order"}, "kind must be"),
        ({"kind": "fixed"}, "need 301 rows, but there are 200"),
        ({"kind": "fixed", "loss": "huber"}, "are for squared loss"),
        ({"n_draws": 0}, "n_draws must be at least 1"),
        ({"always": range(50)}, "No group is left"),
        ({"group_weights": [1.0]}, "group_weights has shape"),
        ({"groups": [[0, 1], [1, 2], list(range(3, 150))]}, "column"),
    ],
)
def test_what_is_refused(data, settings, message):
    with pytest.raises(ValueError, match=message):
        knockoffs(data.X, data.y, **{"groups": data.groups} | settings)
