"""Penalties of ridges: on columns scaled by the standard deviation times a sixth of the range."""

import numpy as np
import pytest

from covey import Groups, GroupSparseClassifier
from covey.designs import as_design
from covey.preprocess import prepare
from covey.search.ridges import Penalties, inverse_roots
from covey.search.settings import SETTINGS
from search.limit_reference import mixed_problem


def penalties(X, groups, weight=None, equal_shares=False):
    problem, _ = prepare(as_design(X), np.arange(len(X)) % 5.0, groups, sample_weight=weight)
    return Penalties(problem, SETTINGS.column_range, equal_shares)


def mixed(n=60):
    """A group of two rare categories, and one of two numbers."""
    rng = np.random.default_rng(0)
    levels = rng.choice(3, n, p=[0.8, 0.15, 0.05])
    return np.column_stack([levels == 1, levels == 2, rng.standard_normal((n, 2))]).astype(float)


def test_a_column_that_varies_in_few_rows_has_a_larger_scale_than_its_standard_deviation():
    X, groups = mixed(), Groups.from_sizes([2, 2])
    gains = penalties(X, groups).gains(np.arange(2))
    np.testing.assert_allclose(gains, 1 / np.sqrt(X.std(axis=0) * np.ptp(X, axis=0) / 6))
    relative = 1 / (gains * X.std(axis=0))
    assert relative[1] > relative[0]  # the rarer category
    normal = np.random.default_rng(0).standard_normal((200, 2))
    gains = penalties(normal, Groups.from_sizes([2])).gains(np.arange(1))
    np.testing.assert_allclose(gains, 1 / normal.std(axis=0), rtol=0.1)


def test_two_valued_columns_may_count_by_the_difference_of_their_values():
    X, groups = mixed(), Groups.from_sizes([2, 2])
    gains = penalties(X, groups, equal_shares=True).gains(np.arange(2))
    np.testing.assert_allclose(gains[:2], 2.0)  # a standard deviation of one half, were both values equally frequent
    np.testing.assert_allclose(gains[2:], 1 / X[:, 2:].std(axis=0))


def test_the_penalty_is_that_of_scaled_columns():
    X, y, lists = mixed_problem()
    problem, _ = prepare(X, y, Groups.from_lists(lists))
    rng = np.random.default_rng(0)
    for l, M in zip((0, 1, 2), Penalties(problem, SETTINGS.column_range).of([0, 1, 2]), strict=True):
        w = rng.standard_normal(int(problem.ranks[l]))
        coef = problem.combination([l])[1] @ w
        B = X[:, lists[l]]
        assert w @ M @ w == pytest.approx(np.sum(coef**2 * B.std(axis=0) * np.ptp(B, axis=0) / 6))


def test_rough_columns_have_larger_penalties():
    X, y, lists = mixed_problem()
    problem, _ = prepare(X, y, Groups.from_lists(lists))
    rough = 1.0 + np.arange(max(lists[0]) + 1)  # columns beyond these have one
    plain, more = (Penalties(problem, SETTINGS.column_range, roughness=one).of([0, 1]) for one in (None, rough))
    w = np.random.default_rng(0).standard_normal(int(problem.ranks[0]))
    coef, B = problem.combination([0])[1] @ w, X[:, lists[0]]
    scale = B.std(axis=0) * np.ptp(B, axis=0) / 6 * rough[lists[0]]
    assert w @ more[0] @ w == pytest.approx(np.sum(coef**2 * scale))
    np.testing.assert_allclose(more[1], plain[1])


def test_penalties_of_columns_that_are_only_scaled_and_do_not_vary_or_repeat_each_other():
    X, y, _ = mixed_problem()
    X[:, 0], X[:, 2] = 3.0, X[:, 1]
    problem, _ = prepare(X, y, Groups.from_size(X.shape[1], X.shape[1]), standardize="column")
    (M,) = Penalties(problem, SETTINGS.column_range).of([0])
    varying = X[:, X.std(axis=0) > 0]
    np.testing.assert_allclose(M, np.diag(np.ptp(varying, axis=0) / varying.std(axis=0) / 6), atol=1e-9)


def test_inverse_roots_of_penalties_of_several_sizes():
    rng = np.random.default_rng(0)
    forms = [B @ B.T + np.eye(len(B)) for B in (rng.standard_normal((k, k)) for k in (2, 3, 2, 1))]
    for M, C in zip(forms, inverse_roots([*forms, np.empty((0, 0))]), strict=False):
        np.testing.assert_allclose(C @ C.T @ M, np.eye(len(M)), atol=1e-10)
    singular = np.ones((2, 2))  # a direction without a penalty gets a small one
    (C,) = inverse_roots([singular])
    assert np.isfinite(C).all()
    np.testing.assert_allclose(np.linalg.inv(C @ C.T), singular, atol=1e-6)


CHANGES = {"shift": lambda X: 7 + X, "units": lambda X: X * [3.0, 1e-3, 1e4, 5.0], "sign": lambda X: -X}


@pytest.mark.parametrize("equal_shares", [False, True])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_units_and_shifts_do_not_matter(change, equal_shares):
    """The quadratic form of a ridge is on predictions, which units and shifts of columns leave as they are."""
    X, groups = mixed(), Groups.from_sizes([2, 2])
    plain, other = (penalties(A, groups, equal_shares=equal_shares) for A in (X, np.asarray(change(X))))
    for l in range(2):
        Z, V = (one.working.working_columns(np.array([l])) for one in (plain, other))
        turn = np.linalg.lstsq(Z, V, rcond=None)[0]  # V = Z turn
        np.testing.assert_allclose(turn.T @ plain.of([l])[0] @ turn, other.of([l])[0], rtol=1e-7)


@pytest.mark.parametrize("equal_shares", [False, True])
def test_rows_of_weight_zero_do_not_count(equal_shares):
    X, groups = mixed(), Groups.from_sizes([2, 2])
    expected = penalties(np.delete(X, 3, axis=0), groups, equal_shares=equal_shares).gains(np.arange(2))
    X[3] = 100.0
    weight = np.where(np.arange(len(X)) == 3, 0.0, 1.0)
    np.testing.assert_allclose(penalties(X, groups, weight, equal_shares).gains(np.arange(2)), expected)


def test_interactions_of_categories_are_not_followed_into_rare_cells():
    """Pairs of four letters, of which some are rare: two true factors among many crossed ones."""
    rng = np.random.default_rng(3)
    letters = rng.integers(4, size=(400, 5))
    blocks = [np.eye(4)[column] for column in letters.T]
    blocks += [np.eye(16)[4 * letters[:, i] + letters[:, j]] for i in range(5) for j in range(i)]
    X, groups = np.hstack(blocks), Groups.from_sizes([block.shape[1] for block in blocks])
    logit = 1.5 * (letters[:, 0] == 1) - 1.5 * (letters[:, 1] == 2)
    y = rng.random(400) < 1 / (1 + np.exp(-logit))
    model = GroupSparseClassifier(groups).fit(X[:300], y[:300])
    p = np.clip(model.predict_proba(X[300:])[:, 1], 1e-12, 1 - 1e-12)
    held = y[300:]
    log_loss = -np.mean(np.where(held, np.log(p), np.log(1 - p)))
    share = held.mean()
    assert log_loss < -(share * np.log(share) + (1 - share) * np.log(1 - share))
