"""What every threshold of the search does, each on a problem where it matters."""

from dataclasses import fields, replace

import numpy as np
import pytest
from covey.limit.posing import pose
from covey.selection.recipe import Cleaned, Reweighted
from covey.selection.search import search

from covey import Groups
from covey.designs import as_design
from covey.losses import Binomial
from covey.selection import Folds, Problem, Thresholds, select
from covey.selection import dense as dense_search
from estimator_problems import noisy_problem

DEFAULT = Thresholds()


def posed_problem(X, y, groups, **options):
    parts = Folds(5).parts(as_design(X), y, np.ones(len(y)))
    settings = {"factors": 0, **options}
    return pose(as_design(X), y, groups, np.ones(len(y)), parts.weights, parts.counts, parts.splits, **settings)


def found(X, y, groups, **changed):
    return search(posed_problem(X, y, groups), thresholds=replace(DEFAULT, **changed))


def cleaned(search_result):
    return [recipe for recipe in search_result.verdict().recipes if isinstance(recipe, Cleaned)]


def dense(search_result):
    return [recipe for recipe in search_result.verdict().recipes if isinstance(recipe, Reweighted)]


def test_every_threshold_has_a_test():
    """A new field needs a test here that fails when it is changed carelessly."""
    tested = {
        "most_columns", "improvement", "patience", "prefixes", "steady_columns", "rounds", "worthwhile", "noisy",
        "dense", "ridges", "low_ridges", "penalties", "reweightings", "within", "evidence",
    }  # fmt: skip
    assert {field.name for field in fields(Thresholds)} == tested


def test_most_columns_ends_a_path_before_it_follows_the_noise():
    """Every group matters, so the judged error goes on falling: only the number of columns ends the path."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 48))
    y = X.sum(axis=1) + 0.1 * rng.standard_normal(60)
    for most in (0.2, 0.5):
        n_events = found(X, y, Groups.from_size(2, 48), most_columns=most, patience=50).n_events
        # 48 rows train a fold; an event must begin with columns to spare, the intercept counted
        assert n_events == int(np.ceil((most * 48 - 1) / 2))


def test_patience_and_improvement_end_a_path_that_no_longer_helps():
    X, y, groups = noisy_problem("weak", n=120, n_groups=40)
    lengths = {patience: found(X, y, groups, patience=patience, rounds=1).n_events for patience in (0, 3, 8)}
    assert lengths[3] == lengths[0] + 3
    assert lengths[8] == lengths[0] + 8
    # an improvement that is never reached is as if nothing had helped
    assert found(X, y, groups, improvement=0.9999, rounds=1).n_events == DEFAULT.patience + 1


def test_prefixes_are_where_elimination_begins():
    X, y, groups = noisy_problem("weak", n=120, n_groups=40)
    result = found(X, y, groups, prefixes=(4, 7), rounds=1)
    assert {recipe.prefix for recipe in cleaned(result)} == {4, 7, result.n_events}
    assert {recipe.prefix for recipe in cleaned(found(X, y, groups, prefixes=(), rounds=1))} == {result.n_events}


def test_elimination_begins_from_fewer_columns_than_a_path_may_have_too():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 48))
    y = X.sum(axis=1) + 0.1 * rng.standard_normal(60)
    groups = Groups.from_size(2, 48)
    result = found(X, y, groups, prefixes=(), rounds=1, patience=50, most_columns=0.8, steady_columns=0.5)
    assert {recipe.prefix for recipe in cleaned(result)} == {int(np.ceil((0.5 * 48 - 1) / 2)), result.n_events}
    assert result.n_events == int(np.ceil((0.8 * 48 - 1) / 2))


def hidden_group(seed=0):
    """Group 20 stands between the true ones 19 and 21 and wakes first; groups wait behind it."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((150, 120))
    for j in range(1, 120):
        X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.81) * X[:, j]
    groups = Groups.from_size(3, 120)
    w = np.zeros(120)
    w[groups.lists()[19]] = w[groups.lists()[21]] = 1.0
    w[groups.lists()[3]] = (0.8, -0.8, 0.8)
    return X, X @ w + 0.5 * rng.standard_normal(150), groups


def test_a_second_round_starts_from_the_groups_that_were_left():
    X, y, groups = hidden_group()
    once, twice = found(X, y, groups, rounds=1), found(X, y, groups, rounds=2)
    assert {recipe.round for recipe in cleaned(once)} == {0}
    assert {recipe.round for recipe in cleaned(twice)} == {0, 1}
    first = once.verdict()
    kept = first.recipes[first.simplest()]
    start = [once.orders[0][once.final][i] for i in once.rounds[0][once.final].sets[kept._replace(ridge=0.0)]]
    assert twice.orders[1][twice.final][: len(start)] == start


def test_a_second_round_from_all_groups_would_repeat_the_first(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 12))
    y = X[:, :3].sum(axis=1) + rng.standard_normal(80)
    groups = Groups.from_size(2, 12)
    once = found(X, y, groups)
    assert {recipe.round for recipe in cleaned(once)} == {0}
    monkeypatch.setattr("covey.selection.search._is_exhaustive", lambda *_: False)
    twice = found(X, y, groups)
    assert {recipe.round for recipe in cleaned(twice)} == {0, 1}
    error = dict(zip(twice.verdict().recipes, twice.verdict().errors, strict=True))
    for recipe in cleaned(once):
        assert error[recipe._replace(round=1)] == pytest.approx(error[recipe], rel=1e-10)


def test_a_round_that_gains_too_little_is_the_last_one():
    X, y, groups = hidden_group()
    many = {gain: found(X, y, groups, rounds=6, worthwhile=gain) for gain in (-1.0, DEFAULT.worthwhile, 1.0)}
    n_rounds = {gain: 1 + max(recipe.round for recipe in cleaned(result)) for gain, result in many.items()}
    assert n_rounds[1.0] == 2  # the first round always gains on nothing; the second one does not gain everything
    assert n_rounds[-1.0] >= n_rounds[DEFAULT.worthwhile] >= 2


def test_ridges_are_tried_where_noise_is_strong_and_only_there():
    for noise, strong in (("weak", False), ("strong", True)):
        result = found(*noisy_problem(noise))
        assert any(recipe.ridge > 0 for recipe in cleaned(result)) == (result.left > DEFAULT.noisy)
        assert bool(dense(result)) == (result.left > DEFAULT.dense) == strong
    result = found(*noisy_problem("weak"), noisy=0.0)
    assert any(recipe.ridge > 0 for recipe in cleaned(result))
    assert not dense(result)
    assert dense(found(*noisy_problem("weak"), dense=0.0))
    result = found(*noisy_problem("strong"), noisy=10.0, dense=10.0)
    assert not any(recipe.ridge > 0 for recipe in cleaned(result))
    assert not dense(result)


def test_classes_are_fitted_with_lower_ridges_whatever_they_leave():
    """Classes that can be told apart leave no deviance at all, and shrinking them matters all the more."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 12))
    y = (X[:, 0] > 0).astype(float)
    X[:, 0] += 2 * np.sign(X[:, 0])
    posed = posed_problem(X, y, Groups.from_sizes([2] * 6), loss=Binomial())
    result = search(posed, thresholds=replace(DEFAULT, low_ridges=(0.02, 0.5)))
    assert result.left < DEFAULT.dense
    assert {recipe.ridge for recipe in cleaned(result)} == {0.0, 0.02, 0.5}
    assert dense(result)


def test_a_second_round_does_not_change_whether_noise_is_strong():
    X, y, groups = hidden_group()
    assert found(X, y, groups, rounds=1).left < DEFAULT.dense
    assert found(X, y, groups, rounds=2).left < DEFAULT.dense


def test_ridges_and_penalties_are_those_of_the_candidates():
    result = found(*noisy_problem("strong"), ridges=(0.2, 5.0), penalties=(0.5, 3.0), reweightings=0)
    assert {recipe.ridge for recipe in cleaned(result)} == {0.0, 0.2, 5.0}
    assert dense(result) == [Reweighted(0.5, 0), Reweighted(3.0, 0)]


def dense_problem():
    """All groups have a little signal: ridges on all columns predict best."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 90))
    return X, X @ rng.standard_normal(90) / np.sqrt(90) + 0.7 * rng.standard_normal(80), Groups.from_size(3, 90)


def test_reweightings_count_how_often_penalties_are_divided():
    X, y, groups = dense_problem()
    rounds = {n: max(recipe.round for recipe in dense(found(X, y, groups, reweightings=n))) for n in (0, 1, 5)}
    assert rounds[0] == 0
    assert rounds[1] == 1
    assert 1 <= rounds[5] <= 5


def test_ridges_far_from_the_least_error_are_not_reweighted():
    X, y, groups = dense_problem()
    assert max(recipe.round for recipe in dense(found(X, y, groups, within=0.0))) == 0
    assert max(recipe.round for recipe in dense(found(X, y, groups))) >= 1


@pytest.mark.parametrize("rule", ["min", "1se"])
def test_evidence_is_what_a_group_needs_against_none(rule):
    X, y, groups = noisy_problem("strong")
    options = {"group_weights": "noise", "standardize": "group", "fit_intercept": True, "factors": 0}
    problem = Problem(as_design(X), y, np.ones(len(y)), groups, [], options)
    evidence = found(X, y, groups).verdict().evidence
    sizes = {
        share: len(select(problem, Folds(5), rule, thresholds=replace(DEFAULT, evidence=share * evidence)).order)
        for share in (0.0, 1.1)
    }
    assert sizes[0.0] > 0
    assert sizes[1.1] == 0


@pytest.mark.parametrize(
    "always",
    [
        [],
        [0],
    ],
    ids=["", "one group always in"],
)
def test_plain_ridges_are_the_same_whether_all_groups_are_near_or_not(always, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 600))
    y = X @ rng.standard_normal(600) / np.sqrt(600) + 4 * X[:, 0] + 0.5 * rng.standard_normal(60)
    errors = []
    for near in (1000, 50):
        monkeypatch.setattr("covey.limit.posed.NEAR_COLUMNS", near)
        posed = posed_problem(X, y, Groups.from_size(3, 600))
        result = search(posed, always, replace(DEFAULT, noisy=0.0, dense=0.0, reweightings=0))
        assert result.near.all == (near == 1000)
        verdict = result.verdict()
        errors.append({r: e for r, e in zip(verdict.recipes, verdict.errors, strict=True) if isinstance(r, Reweighted)})
    assert len(errors[0]) == len(DEFAULT.penalties)
    for recipe, error in errors[0].items():
        assert errors[1][recipe] == pytest.approx(error, rel=1e-5)


def binomial_search(n_effects, **changed):
    """A search with as many groups of equal effect as asked for, of 15 with two columns each."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 30))
    margin = 8 * X[:, : 2 * n_effects].sum(axis=1) / np.sqrt(2 * n_effects)
    y = (rng.random(100) < 1 / (1 + np.exp(-margin))).astype(float)
    parts = Folds(5).parts(as_design(X), y, np.ones(100))
    posed = pose(
        as_design(X), y, Groups.from_size(2, 30), np.ones(100), parts.weights, parts.counts, parts.splits,
        factors=0, loss=Binomial(),
    )  # fmt: skip
    return search(posed, thresholds=replace(DEFAULT, **changed))


@pytest.mark.parametrize("n_effects", [1, 15], ids=["sparse", "dense"])
def test_slow_ridges_on_all_columns_go_on_only_where_two_of_them_come_close(n_effects):
    result = binomial_search(n_effects)
    errors = result.judge.errors()
    first = [Reweighted(DEFAULT.penalties[i], 0) for i in (2, 4)]
    close = min(errors[r] for r in first) <= 1.5 * min(e for r, e in errors.items() if isinstance(r, Cleaned))
    assert close == (n_effects == 15)
    plain = {recipe for recipe in dense(result) if recipe.round == 0}
    assert plain == ({Reweighted(penalty, 0) for penalty in DEFAULT.penalties} if close else set(first))
    # where there are not enough penalties to try some first, all are tried
    assert {recipe.penalty for recipe in dense(binomial_search(1, penalties=(0.1, 1.0)))} == {0.1, 1.0}


def test_ridges_of_squared_loss_are_tried_without_a_look_at_two_of_them(monkeypatch):
    monkeypatch.setattr(dense_search, "HOPELESS", 0.0)
    X, y, groups = noisy_problem("weak", n=120, n_groups=40)
    assert {recipe.penalty for recipe in dense(found(X, y, groups, dense=0.0))} == set(DEFAULT.penalties)
