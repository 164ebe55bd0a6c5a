"""What the settings of the search do, each on a problem where it matters."""

from dataclasses import replace

import numpy as np
import pytest

from covey import Groups
from covey.designs import as_design
from covey.losses import Binomial, Squared
from covey.search.cleaned import Cleaned
from covey.search.dense import Reweighted
from covey.search.settings import SETTINGS
from covey.selection import Folds
from estimator_problems import noisy_problem
from search.posing import few_near, posed_with, searched, verdict_of


def found(X, y, groups, always=(), loss=None, **changed):
    """A search by five folds with some settings changed."""
    loss = Squared() if loss is None else loss
    parts = Folds(5).parts(as_design(X), y, np.ones(len(y)), loss)
    posed = posed_with(parts, X, y, groups, loss=loss, settings=replace(SETTINGS, **changed))
    return searched(posed, always)


def n_events(result):
    """The number of events of the first path."""
    return len(result.knots.times) - 1


def cleaned(result):
    return [recipe for recipe in verdict_of(result).recipes if isinstance(recipe, Cleaned)]


def dense(result):
    return [recipe for recipe in verdict_of(result).recipes if isinstance(recipe, Reweighted)]


def test_most_columns_ends_a_path_before_it_follows_the_noise():
    """Every group matters, so the held-out error goes on falling: only the number of columns ends the path."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 48))
    y = X.sum(axis=1) + 0.1 * rng.standard_normal(60)
    for most in (0.2, 0.5):
        result = found(X, y, Groups.from_size(2, 48), most_columns=most, patience=50)
        # a fold trains on 48 rows, and the intercept counts
        assert n_events(result) == int((most * 48 - 1) / 2)


def test_patience_ends_a_path_that_no_longer_helps():
    X, y, groups = noisy_problem("weak", n=120, n_groups=40)
    lengths = {patience: n_events(found(X, y, groups, patience=patience, rounds=1)) for patience in (0, 3, 8)}
    assert lengths[3] == lengths[0] + 3
    assert lengths[8] == lengths[0] + 8


def test_elimination_begins_from_the_whole_path():
    X, y, groups = noisy_problem("weak", n=120, n_groups=40)
    result = found(X, y, groups, rounds=1)
    assert {recipe.n_first for recipe in cleaned(result)} == {n_events(result)}


def hidden_group(n_columns=120, size=3, seed=0):
    """The group in the middle lies between true ones and wakes before them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((150, n_columns))
    for j in range(1, n_columns):
        X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.81) * X[:, j]
    groups = Groups.from_size(size, n_columns)
    middle = groups.n_groups // 2
    w = np.zeros(n_columns)
    w[groups.lists()[middle - 1]] = w[groups.lists()[middle + 1]] = 1.0
    if size == 3:
        w[groups.lists()[3]] = (0.8, -0.8, 0.8)
    return X, X @ w + 0.5 * rng.standard_normal(150), groups


def test_a_second_round_starts_from_the_groups_that_were_left():
    X, y, groups = hidden_group()
    once, twice = found(X, y, groups, rounds=1), found(X, y, groups, rounds=2)
    assert {recipe.round for recipe in cleaned(once)} == {0}
    assert {recipe.round for recipe in cleaned(twice)} == {0, 1}
    first = verdict_of(once)
    kept = first.recipes[first.simplest(first.near(SETTINGS.start_strictness))]
    start = kept.groups(once.final)
    assert twice.final.rounds[1].groups[: len(start)] == start


def test_a_second_round_from_all_groups_would_repeat_the_first(monkeypatch):
    X, y, groups = hidden_group(12, 2)
    once = found(X, y, groups)
    assert {recipe.round for recipe in cleaned(once)} == {0}
    monkeypatch.setattr("covey.search.search._is_exhaustive", lambda *_: False)
    twice = found(X, y, groups)
    assert {recipe.round for recipe in cleaned(twice)} == {0, 1}
    error = dict(zip(verdict_of(twice).recipes, verdict_of(twice).errors, strict=True))
    for recipe in cleaned(once):
        assert error[replace(recipe, round=1)] == pytest.approx(error[recipe], rel=1e-10)


def test_ridges_are_tried_where_noise_is_strong_and_only_there():
    for noise, strong in (("weak", False), ("strong", True)):
        result = found(*noisy_problem(noise))
        assert any(recipe.ridge > 0 for recipe in cleaned(result)) == (result.left > SETTINGS.noisy)
        assert bool(dense(result)) == (result.left > SETTINGS.dense) == strong
    result = found(*noisy_problem("weak"), noisy=0.0)
    assert any(recipe.ridge > 0 for recipe in cleaned(result))
    assert not dense(result)
    assert dense(found(*noisy_problem("weak"), dense=0.0))
    result = found(*noisy_problem("strong"), noisy=10.0, dense=10.0)
    assert not any(recipe.ridge > 0 for recipe in cleaned(result))
    assert not dense(result)


def test_classes_are_fitted_with_ridges_whatever_they_leave():
    """Separable classes leave no deviance at all, and shrinkage matters all the more."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 12))
    y = (X[:, 0] > 0).astype(float)
    X[:, 0] += 2 * np.sign(X[:, 0])
    result = found(X, y, Groups.from_sizes([2] * 6), loss=Binomial(), ridges=(0.02, 0.5), hopeless=np.inf)
    assert result.left < SETTINGS.dense
    assert {recipe.ridge for recipe in cleaned(result)} == {0.0, 0.02, 0.5}
    assert dense(result)


def test_a_second_round_does_not_change_whether_noise_is_strong():
    X, y, groups = hidden_group()
    assert found(X, y, groups, rounds=1).left < SETTINGS.dense
    assert found(X, y, groups, rounds=2).left < SETTINGS.dense


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


@pytest.mark.parametrize("always", [[], [0]], ids=["", "one group always in"])
def test_plain_ridges_are_the_same_whether_all_groups_are_near_or_not(always, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 600))
    y = X @ rng.standard_normal(600) / np.sqrt(600) + 4 * X[:, 0] + 0.5 * rng.standard_normal(60)
    errors = []
    for columns in (1000, 50):
        few_near(monkeypatch, columns)
        result = found(X, y, Groups.from_size(3, 600), always, noisy=0.0, dense=0.0, reweightings=1)
        assert result.table.all_near == (columns == 1000)
        verdict = verdict_of(result)
        by_recipe = zip(verdict.recipes, verdict.errors, strict=True)
        errors.append({r: e for r, e in by_recipe if isinstance(r, Reweighted) and not r.round})
    assert len(errors[0]) == len(SETTINGS.penalties)
    for recipe, error in errors[0].items():
        assert errors[1][recipe] == pytest.approx(error, rel=1e-5)


def binomial_search(n_effects, **changed):
    """A search with as many groups of equal effect as asked for, of 15 with two columns each."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 30))
    margin = 8 * X[:, : 2 * n_effects].sum(axis=1) / np.sqrt(2 * n_effects)
    y = (rng.random(100) < 1 / (1 + np.exp(-margin))).astype(float)
    return found(X, y, Groups.from_size(2, 30), loss=Binomial(), **changed)


@pytest.mark.parametrize("n_effects", [1, 15], ids=["sparse", "dense"])
def test_slow_ridges_on_all_columns_go_on_only_if_one_of_the_first_comes_close(n_effects):
    """The first penalties are scored on one fold, here against what the other candidates reach on it."""
    result = binomial_search(n_effects)
    everything = verdict_of(binomial_search(n_effects, hopeless=np.inf))
    first_fold = dict(zip(everything.recipes, everything.by_split[:, 0], strict=True))
    least = min(error for recipe, error in first_fold.items() if isinstance(recipe, Cleaned))
    first = [first_fold[Reweighted(SETTINGS.penalties[i], 0)] for i in SETTINGS.first_penalties]
    close = min(first) <= SETTINGS.hopeless * least
    assert close == (n_effects == 15)
    plain = {recipe.penalty for recipe in dense(result) if recipe.round == 0}
    assert plain == (set(SETTINGS.penalties) if close else set())


def test_ridges_of_squared_loss_are_all_scored():
    X, y, groups = noisy_problem("weak", n=120, n_groups=40)
    result = found(X, y, groups, dense=0.0, hopeless=0.0)
    assert {recipe.penalty for recipe in dense(result)} == set(SETTINGS.penalties)


def test_a_round_that_would_start_where_the_path_has_been_is_not_made():
    """Without noise elimination keeps the groups with which the path began."""
    X, y, groups = noisy_problem("weak", n=120, n_groups=40)
    result = found(X, y, groups)
    verdict = verdict_of(result)
    kept = verdict.recipes[verdict.simplest(verdict.near(SETTINGS.start_strictness))]
    for training in result.trainings:
        start = kept.groups(training)
        assert set(training.rounds[0].groups[: len(start)]) == set(start)
    assert len(result.final.rounds) == 1


def test_ridges_are_tried_on_sizes_along_a_geometric_series():
    X, y, groups = noisy_problem("strong")
    for ratio in (1.01, 2.0):
        result = found(X, y, groups, ridge_sizes=ratio, rounds=1)
        recipes = [recipe for recipe in cleaned(result) if recipe.n_first == n_events(result)]
        with_ridges = {recipe.n_groups for recipe in recipes if recipe.ridge}
        every = {recipe.n_groups for recipe in recipes} - {0}
        powers = {1, 2, 4, 8, 16, 32} & every | {max(every)}
        assert with_ridges == (every if ratio == 1.01 else powers)


def test_ridges_of_a_wide_design_are_not_reweighted(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 600))
    y = X[:, :60].sum(axis=1) + 3 * rng.standard_normal(60)
    groups = Groups.from_size(3, 600)
    assert max(recipe.round for recipe in dense(found(X, y, groups, dense=0.0))) >= 1
    few_near(monkeypatch, 50)
    assert {recipe.round for recipe in dense(found(X, y, groups, dense=0.0))} == {0}


def test_models_on_all_rows_have_the_small_ridge_that_they_were_scored_with():
    """One row keeps the classes apart from being separated: without its fold the maximum likelihood is infinite."""
    X = np.random.default_rng(0).standard_normal((60, 4))
    X[0, 0] = 0.5
    y = (X[:, 0] > 0).astype(float)
    y[0] = 0.0
    result = found(X, y, Groups.from_size(1, 4), loss=Binomial())
    unpenalised = [recipe for recipe in cleaned(result) if not recipe.ridge and recipe.n_groups]
    assert result.final.infinite == [groups for one in result.scored for groups in one.infinite] != []
    assert {recipe.fit(result.final).remark for recipe in unpenalised} == {f"ridge {SETTINGS.separated_ridge:g}"}


@pytest.mark.parametrize("seed", [1, 30])
def test_models_on_all_rows_have_the_small_ridge_of_their_recipe(seed):
    """Without a fold's rows a recipe has groups that separate the classes, and on all rows others that nearly do."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 8))
    y = (X[:, :3].sum(axis=1) + 0.5 * rng.standard_normal(60) > 0).astype(float)
    result = found(X, y, Groups.from_size(1, 8), loss=Binomial())
    for recipe in cleaned(result):
        if not recipe.ridge:
            separated = any(training.is_infinite(recipe.groups(training)) for training in result.scored)
            assert bool(recipe.fit(result.final).remark) == separated, recipe.text()
