"""The search behind the defaults: what restarts and denser networks start from, and when they are tried."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from covey import Groups, group_path
from covey.stopping import HoldOut
from covey.stopping.holdout import split_rows
from covey.stopping.keeping import OVERTAKEN, choose_kept, overtaking, restart_state
from covey.stopping.legs import NOISY, Kept
from covey.stopping.monitor import PATIENCE
from covey.stopping.scorer import PARSIMONY
from covey.stopping.search import LEFT_OVER, LEFT_OVER_MUCH, best_leg, enough_left, explore, left_over
from search_problems import autoregressive, equicorrelated, misleading, split, task_of

TRUE = {3, 19, 21}


def fitted(X, y, columns, weight=None):
    """Least squares with an intercept: coefficients of all columns, and the intercept."""
    root = np.sqrt(np.ones(len(y)) if weight is None else weight)
    A = np.column_stack([np.ones(len(y)), X[:, columns]])
    found = np.linalg.lstsq(root[:, None] * A, root * y, rcond=None)[0]
    coef = np.zeros(X.shape[1])
    coef[columns] = found[1:]
    return coef, found[0]


def columns_of(groups, which):
    return np.concatenate([groups.lists()[l] for l in which])


# ---------------------------------------------------------------------- restarts


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("engine", ["screened", "exact"])
def test_a_restart_begins_with_least_squares(weighted, engine):
    X, y, groups, _ = misleading()
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float) if weighted else None
    task = task_of(X, y, groups, weight, engine=engine)
    kept = Kept((21, 3, 19), 0.0)
    state = restart_state(task, kept, 500, [(3, 40.0), (19, 60.0)])
    path = task.path(start=state, max_iter=600)
    assert path.times[0] == 500
    # groups that had woken before keep their time
    assert path.entered[:3] == [(21, 500.0), (3, 40.0), (19, 60.0)]
    coef, intercept = fitted(X, y, columns_of(groups, kept.groups), weight)
    np.testing.assert_allclose(path.at(500), coef, atol=1e-6)
    assert path.intercepts[0] == pytest.approx(intercept, abs=1e-6)
    # it is at rest: only other groups could still change it
    np.testing.assert_allclose(path.at(510), coef, atol=1e-4)


@pytest.mark.parametrize("seed", range(1, 5))
def test_a_wrong_group_that_woke_first_is_dropped(seed):
    X, y, groups, _ = misleading(seed=seed)
    trial = split(task_of(X, y, groups, restarts=2))
    legs = explore(trial, PATIENCE).legs
    assert legs[0].order[0] == 20
    assert 20 in legs[0].awake
    best = best_leg(trial, legs)
    assert best.start is not None
    assert set(best.awake) == TRUE
    assert best.error < legs[0].error * (1 + PARSIMONY)


def test_a_clean_set_is_not_cleaned_again():
    X, y, groups, _ = misleading(seed=1)
    trial = split(task_of(X, y, groups, restarts=5))
    legs = explore(trial, PATIENCE).legs
    assert len(legs) < 6
    first, second = choose_kept(trial, legs[0]), choose_kept(trial, legs[1])
    assert set(first.kept.groups) == TRUE
    assert first.changes
    assert not second.changes


def crowded(seed, n=150, p=240, active=8):
    """An AR(0.9) design with many true groups of 3: their neighbours wake with them."""
    rng = np.random.default_rng(seed)
    X, groups = autoregressive(rng, n, p), Groups.from_size(3, p)
    true = rng.permutation(p // 3)[:active]
    w = np.zeros(p)
    w[columns_of(groups, true)] = rng.standard_normal(3 * active) * 2
    return X, X @ w + 0.5 * rng.standard_normal(n), groups, set(true.tolist())


@pytest.mark.parametrize("seed", [0, 1])
def test_a_path_is_cut_short_once_its_groups_cleaned_are_better_by_far(seed):
    X, y, groups, true = crowded(seed)
    trial = split(task_of(X, y, groups, restarts=1))
    legs = explore(trial, PATIENCE).legs
    first = legs[0]
    assert first.monitor.overtaken
    # it is: least squares on some of its groups has a much smaller error on the judging rows
    order = np.array(first.order)
    assert overtaking(trial)(columns_of(groups, order), first.error)
    assert first.error == pytest.approx(min(first.monitor.errors), rel=2 * PARSIMONY)
    # what is left to its own devices goes further and finds less
    alone = explore(replace(trial, task=replace(trial.task, restarts=0)), PATIENCE).legs[0]
    assert not alone.monitor.overtaken
    assert alone.path.times[-1] > first.path.times[-1]
    assert best_leg(trial, legs).error < alone.error
    # and it is not counted as a restart: one is left
    assert sum(leg.start is not None for leg in legs) >= 2
    assert set(best_leg(trial, legs).awake) >= true


def test_what_overtakes_a_path_is_the_best_of_the_nested_sets():
    X, y, groups, _ = crowded(0)
    trial = split(task_of(X, y, groups, restarts=1))
    order = [7, 30, 12]
    held = np.arange(len(y)) % 4 == 0
    errors = []
    for which in ([], *itertools.combinations(order, 1), *itertools.combinations(order, 2), order):
        columns = columns_of(groups, which) if which else np.empty(0, dtype=int)
        coef, level = fitted(X[~held], y[~held], columns)
        errors.append(float(np.mean((y[held] - X[held] @ coef - level) ** 2)))
    overtakes, columns = overtaking(trial), columns_of(groups, order)
    bounds = [e / OVERTAKEN for e in errors]
    least = [
        e for e, b in zip(errors, bounds, strict=True) if overtakes(columns, 1.001 * b) > overtakes(columns, 0.999 * b)
    ]
    assert len(least) == 1
    # noise is strong to three groups of many
    assert least[0] > NOISY * trial.null_error
    assert not overtaking(trial, noisy=False)(columns, 1e6)


def test_under_weak_noise_paths_may_always_be_overtaken():
    X, y, groups, true = crowded(0)
    trial = split(task_of(X, y, groups, restarts=1))
    held = np.arange(len(y)) % 4 == 0
    columns = columns_of(groups, sorted(true))
    coef, level = fitted(X[~held], y[~held], columns)
    error = float(np.mean((y[held] - X[held] @ coef - level) ** 2))
    assert error < NOISY * trial.null_error
    for noisy in (False, True):
        assert overtaking(trial, noisy)(columns, 1.001 * error / OVERTAKEN)
        assert not overtaking(trial, noisy)(columns, 0.999 * error / OVERTAKEN)


def test_nothing_is_compared_where_there_are_no_restarts():
    X, y, groups, _ = crowded(0)
    assert overtaking(split(task_of(X, y, groups))) is None


def test_a_restart_that_has_gone_on_is_settled_where_it_began():
    X, y, groups, _ = misleading(seed=1)
    trial = split(task_of(X, y, groups, restarts=1))
    leg = explore(trial, PATIENCE).legs[1]
    again = replace(leg, at_start=True)
    assert again.time == leg.path.times[0]
    assert again.settled
    assert set(again.awake) == set(leg.start.groups)
    assert again.error == leg.monitor.errors[0]


def test_no_restart_after_the_last_iteration():
    X, y, groups, _ = misleading()
    trial = split(task_of(X, y, groups, restarts=2, max_iter=120))
    assert len(explore(trial, PATIENCE).legs) == 1


def test_without_the_search_it_is_the_plain_path():
    X, y, groups, _ = misleading()
    task = task_of(X, y, groups, restarts=0, factors=0, dense_scales=())
    assert len(explore(split(task), PATIENCE).legs) == 1
    choice = HoldOut(random_state=0).choose(task)
    held = split_rows(task, 0.2, 0)
    step = group_path(X, y, groups, sample_weight=(~held).astype(float), max_iter=1).step_size
    plain = group_path(X, y, groups, max_iter=int(choice.time), step_size=step)
    np.testing.assert_array_equal(choice.path.times, plain.times)
    np.testing.assert_array_equal(choice.path.coefs.toarray(), plain.coefs.toarray())
    assert choice.path.entered == plain.entered


def test_the_kept_set_is_fitted_on_all_rows():
    X, y, groups, _ = misleading(seed=2)
    choice = HoldOut(random_state=0).choose(task_of(X, y, groups, restarts=2))
    path = choice.path
    assert path.times[0] == 0
    assert np.all(np.diff(path.times) > 0)
    wanted = fitted(X, y, columns_of(groups, sorted(TRUE)))[0]
    assert np.abs(path.coefs.toarray() - wanted).max(axis=1).min() < 1e-6
    assert set(np.flatnonzero(groups.norms(path.at(choice.time)))) == TRUE


def test_restarts_lower_the_error():
    gains = []
    for seed in range(4):
        X, y, groups, w = misleading(seed=seed)
        plain, cleaned = (
            HoldOut(random_state=0).choose(task_of(X, y, groups, restarts=restarts)) for restarts in (0, 2)
        )
        errors = [np.sum((choice.path.at(choice.time) - w) ** 2) for choice in (plain, cleaned)]
        oracle = np.sum((fitted(X, y, columns_of(groups, sorted(TRUE)))[0] - w) ** 2)
        assert errors[1] < 1.05 * oracle
        gains.append(errors[0] / errors[1])
    assert min(gains) > 1.5


# ---------------------------------------------------------------------- denser networks


def test_what_is_left_over_of_noise_is_about_standard_normal():
    found = []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((100, 60)), rng.standard_normal(100)
        trial = split(task_of(X, y, Groups.from_size(3, 60), max_iter=400))
        (leg,) = explore(trial, PATIENCE).legs
        found.append(left_over(trial, *leg.model))
    # four standard errors on either side, and a little for the model having been chosen on these rows
    assert -0.8 < np.mean(found) < 0.45
    assert 0.65 < np.std(found) < 1.35
    assert np.mean(np.array(found) > LEFT_OVER) < 0.3


def dense_problem(seed, n=300, p=150):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, X @ rng.standard_normal(p) / np.sqrt(p) + rng.standard_normal(n), Groups.from_size(3, p)


@pytest.mark.parametrize("seed", range(2))
def test_a_dense_signal_is_left_over_and_denser_networks_are_tried(seed):
    trial = split(task_of(*dense_problem(seed), dense_scales=(1e-2, 1e-1)))
    legs = explore(trial, PATIENCE).legs
    assert left_over(trial, *legs[0].model) > LEFT_OVER
    assert [leg.options.get("init_scale") for leg in legs] == [None, 1e-1, 1e-2]
    best = best_leg(trial, legs)
    assert best.dense
    assert best.error < 0.9 * legs[0].error
    # refitted on all rows, it is as dense
    choice = HoldOut(random_state=0).choose(task_of(*dense_problem(seed), dense_scales=(1e-2, 1e-1)))
    assert np.count_nonzero(choice.path.at(choice.time)) == 150


def test_more_must_be_left_over_where_denser_networks_are_dear():
    small, large = (task_of(np.zeros((n, 40)), np.zeros(n), Groups.from_size(2, 40)) for n in (100, 100_000))
    assert enough_left(small) == LEFT_OVER
    assert enough_left(large) == LEFT_OVER_MUCH > LEFT_OVER


def test_denser_networks_are_not_tried_where_nothing_is_left():
    X, y, groups, _ = misleading(seed=1)
    trial = split(task_of(X, y, groups, restarts=2, dense_scales=(1e-2, 1e-1)))
    legs = explore(trial, PATIENCE).legs
    assert left_over(trial, *best_leg(trial, legs).model) < LEFT_OVER
    assert not any(leg.dense for leg in legs)


def test_smaller_start_scales_than_the_own_one_are_no_denser_networks():
    trial = split(task_of(*dense_problem(0), dense_scales=(1e-3, 1e-2), init_scale=1e-2))
    assert len(explore(trial, PATIENCE).legs) == 1


# ---------------------------------------------------------------------- who is simplest


def test_the_simplest_model_within_a_standard_error():
    rng = np.random.default_rng(0)
    n = 4000
    X = rng.standard_normal((n, 3))
    y = X[:, 0] + rng.standard_normal(n)
    scorer = task_of(X, y, Groups.from_size(1, 3)).scorer(X, y, np.ones(n))
    # the best; one that differs by noise; one that is truly worse; and nothing
    best, level = np.linalg.lstsq(X, y, rcond=None)[0], np.zeros(4)
    models = np.array([best, [best[0], 0, 0], [best[0] - 0.2, 0, 0], [0, 0, 0]])
    i, errors = scorer.simplest(np.arange(3), models, level, [3, 1, 1, 0])
    np.testing.assert_allclose(errors, ((y[:, None] - X @ models.T) ** 2).mean(axis=0))
    assert i == 1
    # of equal sizes the better one
    assert scorer.simplest(np.arange(3), models[[1, 0]], level[:2], [1, 1])[0] == 1
    # and the standard error is that of the mean difference of squared residuals
    gap = (y - X @ models[2]) ** 2 - (y - X @ models[0]) ** 2
    assert gap.mean() > 2 * gap.std() / np.sqrt(n)


def test_rows_of_weight_two_count_twice():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((60, 4)), rng.standard_normal(60)
    weight = rng.integers(1, 4, 60)
    task = task_of(X, y, Groups.from_size(1, 4))
    models = np.vstack([np.linalg.lstsq(X, y, rcond=None)[0] * s for s in np.linspace(0, 1, 30)])
    sizes = np.arange(30)
    weighted = task.scorer(X, y, weight.astype(float))
    repeated = task.scorer(np.repeat(X, weight, axis=0), np.repeat(y, weight), np.ones(weight.sum()))
    found = [s.simplest(np.arange(4), models, np.zeros(30), sizes) for s in (weighted, repeated)]
    assert found[0][0] == found[1][0]
    np.testing.assert_allclose(found[0][1], found[1][1])


# ---------------------------------------------------------------------- factors


def test_factors_are_out_of_the_groups_way():
    rng = np.random.default_rng(0)
    X, groups = equicorrelated(rng, 150, 120), Groups.from_size(3, 120)
    y = X[:, :9].sum(axis=1) + rng.standard_normal(150)
    task = task_of(X, y, groups, factors="auto")
    assert task.n_factors == 1
    scores = task.adjustment.design.scores
    # nothing of the factor is left in the adjusted columns, nor in the response
    assert abs(scores.T @ task.response).max() < 1e-8 * np.abs(y).sum()
    assert abs(scores.T @ task.adjustment.design.take(np.arange(120))).max() < 1e-8 * np.abs(X).sum()
    # judging rows lose the same factor
    path = task.path(max_iter=200)
    sums = task.residual_sums(path)
    np.testing.assert_allclose(sums, ((y[:, None] - path.predict(X)) ** 2).sum(axis=0), rtol=1e-8)
