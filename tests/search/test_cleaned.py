"""Candidates of elimination: every model is the minimiser on its groups, with its ridge, for every loss."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from covey import Groups
from covey.losses import Binomial, Poisson
from covey.search.cleaned import Cleaned, clean
from covey.search.paths import Paths
from covey.search.ranking import ranked_groups
from covey.search.search import trainings_of
from covey.search.settings import SETTINGS
from covey.search.table import Table
from search.limit_reference import refit
from search.posing import LOSSES, draw, in_folds, on_all_rows, problem_with


@pytest.fixture(autouse=True)
def all_digits(monkeypatch):
    """Fits on folds with as many digits as those on all rows, on the rows of X."""
    for module in ("newton", "rough"):
        monkeypatch.setattr(f"covey.search.{module}.ROUGH", 0.0)
    monkeypatch.setattr("covey.search.table.ROWS_PER_COLUMN", np.inf)


def cleaned(posed, n_events, ridges=(), always=()):
    """The training rows of every split, with the candidates of one round."""
    table = Table(posed)
    paths = Paths(table, [list(always)] * len(posed.splits))
    paths.advance(n_events)
    trainings = trainings_of(table, list(always))
    clean(trainings, paths, 0, ridges)
    for training in trainings:
        if training.rough:
            training.rounds[0].finish()
    return trainings


@pytest.mark.parametrize("always", [[], [8]], ids=["", "one group always in"])
@pytest.mark.parametrize("name", LOSSES)
def test_every_candidate_minimises_its_objective(name, always):
    """The gradient of the loss on the candidate's columns is that of the ridge; groups always in have none."""
    X, y, lists = draw(name)
    posed = in_folds(X, y, lists, loss=LOSSES[name])
    trainings = cleaned(posed, 5, (0.02, 0.5), always)
    for training in trainings:
        round_ = training.rounds[0]
        response, unit = training.response, training.response.null_curvature(True)
        for recipe in round_.recipes:
            groups = recipe.groups(training)
            if not training.rough:
                assert len(groups) == recipe.n_groups + len(always)
            assert round_.widths[round_.place[recipe]] <= recipe.n_columns  # groups have different sizes
            assert groups[: len(always)] == always
            model = recipe.fit(training)
            assert model.groups == groups
            place = {int(l): i for i, l in enumerate(training.table.groups)}
            columns = training.table.columns([place[l] for l in groups])
            row = round_.place[recipe]
            w = round_.W[row][:, round_.positions(round_.sets[recipe])]
            eta = training.table.predictors(np.arange(len(X)), columns, w[None])[:, :, 0] + round_.levels[row]
            score = response.score(eta)
            assert np.abs(score.sum(axis=0)).max() < 1e-7
            M = training.penalties.matrix(groups, len(always))
            gradient = training.table.Z[:, columns].T @ score
            np.testing.assert_allclose(gradient, recipe.ridge * unit * M @ w.T, atol=1e-7)


def test_a_column_that_was_a_combination_is_back_after_a_group_is_dropped():
    """Group 1 shares a column with group 0, which wakes first and is dropped: least squares on group 1 has both."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    y = 2 * X[:, 1] + X[:, 2] + 0.1 * rng.standard_normal(60)
    groups = Groups.from_lists([[0, 1], [1, 2], [3, 4]], overlap=True)
    posed = on_all_rows(X, y, groups, group_weights=[1, 5, 1])
    (training,) = cleaned(posed, 3, (0.1,))
    round_ = training.rounds[0]
    assert round_.groups[0] == 0
    (alone,) = [recipe for recipe in round_.sets if recipe.n_groups == 1 and not recipe.ridge]
    assert alone.groups(training) == [1]
    assert round_.sizes[round_.place[alone]] == 2
    columns, coef, level = alone.fit(training).on_columns()
    copies = X[:, [0, 1, 1, 2, 3, 4]]
    expected, constant = refit(X, y, [1, 2], np.ones(60) / 60, True)
    np.testing.assert_allclose(copies[:, columns] @ coef[0] + level, X @ expected + constant, atol=1e-9)
    assert np.isfinite(round_.W).all()


def test_dependent_columns_of_a_likelihood_have_the_least_norm():
    """A repeated group halves the coefficients of the other one, and the predictions stay the same."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 6))
    X[:, 4:6] = X[:, 2:4]
    y = (rng.random(90) < expit(X[:, 2] - X[:, 0])).astype(float)
    lists = [[0, 1], [2, 3], [4, 5]]
    posed = on_all_rows(X, y, lists, loss=Binomial())
    table = Table(posed)
    trainings = trainings_of(table, [0, 1, 2])
    clean(trainings, Paths(table, [[0, 1, 2]]), 0, ())
    (recipe,) = trainings[0].rounds[0].recipes
    columns, coef, level = recipe.fit(trainings[0]).on_columns()
    full = np.zeros(6)
    full[columns] = coef[0]
    np.testing.assert_allclose(full[4:6], full[2:4], atol=1e-9)
    single = on_all_rows(X[:, :4], y, lists[:2], loss=Binomial())
    small = trainings_of(Table(single), [0, 1])
    clean(small, Paths(small[0].table, [[0, 1]]), 0, ())
    at, expected, constant = small[0].rounds[0].recipes[0].fit(small[0]).on_columns()
    np.testing.assert_allclose(X @ full + level, X[:, at] @ expected[0] + constant, atol=1e-6)


def test_separated_classes_have_a_small_ridge_and_a_remark():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    y = (X[:, 0] > 0).astype(float)
    (training,) = cleaned(on_all_rows(X, y, Groups.from_size(2, 8), loss=Binomial()), 2)
    models = {recipe.n_groups: recipe.fit(training) for recipe in training.rounds[0].recipes}
    assert models[0].remark == ""
    for size in (1, 2):
        assert models[size].remark == f"ridge {SETTINGS.separated_ridge:g}"
        assert models[size].shrunk
        assert np.isfinite(models[size].on_columns()[1]).all()


def test_the_small_ridge_of_separated_classes_is_on_columns_of_unit_variance():
    """In coordinates of the group, a column that two rows alone move would be free to go anywhere."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    X[:, 1] += 3 * X[:, 0]
    X[:, 2] = np.where(np.arange(60) < 2, 0.1 * X[:, 2], 0.0) + 0.01 * X[:, 0]
    y = (X[:, 0] > 0).astype(float)
    (training,) = cleaned(on_all_rows(X, y, [np.arange(3)], loss=Binomial()), 1)
    columns, coef, level = training.rounds[0].recipes[0].fit(training).on_columns()
    p = 1 / (1 + np.exp(-X[:, columns] @ coef[0] - level))
    scale = X[:, columns].std(axis=0)
    gradient = ((X[:, columns] - X[:, columns].mean(axis=0)) / scale).T @ (y - p) / 60
    np.testing.assert_allclose(gradient, SETTINGS.separated_ridge * y.var() * coef[0] * scale, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("ridges", [(), (0.1,)], ids=["", "ridges"])
def test_groups_that_are_always_in_do_not_go_to_infinity(ridges):
    """A level without an event: one row with an event there would have made every held-out deviance explode."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.arange(80) % 4 == 0, rng.standard_normal((80, 3))])
    y = rng.poisson(np.where(X[:, 0] == 1, 0.0, 2.0)).astype(float)
    for training in cleaned(in_folds(X, y, Groups.from_size(1, 4), loss=Poisson()), 2, ridges, always=[0]):
        for recipe in training.rounds[0].recipes:
            columns, coef, _ = recipe.fit(training).on_columns()
            assert -8 < coef[0, columns == 0] < -1, recipe.text()


def test_models_of_the_same_groups_have_the_same_size():
    """Also if one level has no event, and another one no row but in a fold: shrunk or not, the better one is chosen."""
    rng = np.random.default_rng(0)
    level = np.where(np.arange(90) % 3 == 0, 4, np.arange(90) % 4)
    X = np.hstack([np.eye(5)[level], rng.standard_normal((90, 2))])
    y = rng.poisson(np.where(level == 0, 0.0, 1.0 + level)).astype(float)
    groups = [np.arange(5), np.arange(5, 7)]
    trainings = cleaned(in_folds(X, y, groups, loss=Poisson()), 2, ridges=[0.1])
    assert trainings[0].infinite
    assert trainings[0].rounds[0].active.deficient
    for one in (training.rounds[0] for training in trainings if training.rough):
        sizes = {(tuple(one.sets[recipe]), size) for recipe, size in zip(one.recipes, one.sizes, strict=True)}
        assert len(sizes) == len(set(map(tuple, one.sets.values())))


def test_recipes_describe_themselves():
    assert Cleaned(0, 0, 0.0, 9, 0).text() == "no group"
    assert Cleaned(0, 6, 0.0, 9, 3).text("maximum likelihood") == "maximum likelihood on 3 of the first 9 groups"
    assert Cleaned(1, 6, 0.1, 9, 3).text() == "ridge 0.1 on 3 of the first 9 groups, round 2"


def test_groups_are_ranked_by_how_long_elimination_keeps_them():
    """A group that lies between two true ones wakes first, and is ranked behind them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 20))
    X[:, 4:6] = X[:, 0:2] + X[:, 2:4] + 0.3 * rng.standard_normal((200, 2))
    y = X[:, :4].sum(axis=1) + 0.3 * rng.standard_normal(200)
    problem = problem_with(X, y, Groups.from_size(2, 20))
    assert set(ranked_groups(problem, 2)) == {0, 1}
    assert len(ranked_groups(problem, 6)) == 6
    assert 7 not in ranked_groups(replace(problem, always=[7]), 9)
    assert ranked_groups(replace(problem, y=np.zeros(200)), 3) == []
