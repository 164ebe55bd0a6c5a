"""The judge's table against direct computation, what a rule chooses, and the weights of the mean."""

from dataclasses import replace

import numpy as np
import pytest

from covey import GroupSparseRegressor
from covey.losses import Binomial, Squared
from covey.search.cleaned import Cleaned
from covey.search.dense import Reweighted
from covey.search.judge import Judge, Scores, mean_weights, prior_weights
from covey.search.observations import Observations
from covey.search.settings import SETTINGS
from covey.search.splits import Folds
from estimator_problems import noisy_problem


def recipe(n_groups, ridge=0.0, round_=0):
    """Groups of one column each that are left of nine."""
    return Cleaned(round_, n_groups, ridge, 9, n_groups)


NULL, SMALL, LARGE, DENSE = recipe(0), recipe(2), recipe(7), Reweighted(1.0, 0)
RECIPES = [LARGE, SMALL, NULL, DENSE]
SIZES = [7.0, 2.0, 0.0, 1e6]
SHIFTS = [0.05, 0.1, 2.0, 0.3]


def held_out(seed, n, weighted=True):
    """Scores of held-out rows whose response is noise, and predictors of models that differ from zero by shifts."""
    rng = np.random.default_rng(seed)
    y, table = rng.standard_normal(n), np.asarray(SHIFTS) * rng.standard_normal((n, 1, 4))
    weight = rng.uniform(0.5, 2, n) if weighted else np.ones(n)
    response = Observations(Squared(), y, weight, np.zeros((n, 1)), np.ones(n))
    return Scores(response, np.ones(n, dtype=bool)), table


def judge_of(scores, tables, recipes=RECIPES, sizes=SIZES):
    judge = Judge(scores, 90.0, SETTINGS)
    for split, table in enumerate(tables):
        judge.add(split, recipes, table, sizes)
    return judge


@pytest.fixture
def problem():
    """A judge with two splits; the residuals of all models and the weights of all held-out rows; the tables."""
    pairs = [held_out(0, 40), held_out(1, 50)]
    scores, tables = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    residuals = np.concatenate([one.response.y[:, None] - table[:, 0] for one, table in pairs])
    weight = np.concatenate([one.response.weight for one in scores])
    return judge_of(scores, tables), residuals, weight, tables


def test_a_model_that_is_sure_of_itself_and_wrong_is_not_near_the_best():
    """By the best one's means it is far away; that made its standard error large, and the simplest won."""
    y = np.arange(90) % 2.0
    right = np.where(y == 1, 1.0, -1.0)
    wild = 70 * np.where(np.arange(90) == 0, -right, right)  # one row makes it worse than no model
    response = Observations(Binomial(), y, np.ones(90), np.zeros((90, 1)), np.ones(90))
    judge = judge_of(
        [Scores(response, np.ones(90, dtype=bool))],
        [np.stack([right, wild, 0 * right], axis=-1)[:, None, :]],
        [LARGE, SMALL, NULL],
        [7.0, 2.0, 0.0],
    )
    verdict = judge.board(RECIPES).verdict()
    assert verdict.errors[1] > verdict.errors[verdict.null]
    assert verdict.recipes[verdict.chosen] == LARGE


def test_errors_are_weighted_means_over_all_held_out_rows(problem):
    judge, residuals, weight, _ = problem
    verdict = judge.board(RECIPES).verdict()
    assert verdict.recipes == RECIPES
    np.testing.assert_allclose(verdict.errors, weight @ residuals**2 / weight.sum())
    for split, rows in enumerate((slice(0, 40), slice(40, 90))):
        expected = weight[rows] @ residuals[rows] ** 2 / weight[rows].sum()
        np.testing.assert_allclose(verdict.by_split[:, split], expected)
    assert verdict.recipes[verdict.null] == NULL
    assert verdict.best == np.argmin(verdict.errors)
    assert judge.errors() == pytest.approx(dict(zip(RECIPES, verdict.errors, strict=True)))
    assert judge.least_error(0) == pytest.approx((weight[:40] @ residuals[:40] ** 2).min())


def test_the_standard_error_is_that_of_twice_the_noise_times_the_distance_of_predictions(problem):
    judge, residuals, weight, _ = problem
    verdict = judge.board(RECIPES).verdict()
    noise = verdict.errors[verdict.best]
    distance = weight @ (residuals - residuals[:, [verdict.best]]) ** 2 / weight.sum()
    np.testing.assert_allclose(verdict.standard_errors, 2 * np.sqrt(noise * distance / 90))
    assert verdict.standard_errors[verdict.best] == 0


def test_the_standard_error_is_about_that_of_row_wise_differences():
    """With residuals of the best model that are independent of the distance, the two estimate one thing."""
    n = 20_000
    scores, table = held_out(0, n, weighted=False)
    table[:, :, 0] = 0.0
    judge = Judge([scores], float(n), SETTINGS)
    judge.add(0, RECIPES, table, SIZES)
    E = scores.response.y[:, None] - table[:, 0]
    difference = E[:, 1] ** 2 - E[:, 0] ** 2
    centred = difference - (E[:, 1] - E[:, 0]) ** 2  # the part that is noise
    assert judge.board(RECIPES).verdict().standard_errors[1] == pytest.approx(centred.std() / np.sqrt(n), rel=0.05)


def test_candidates_are_the_recipes_of_every_split_and_are_scored_once(problem):
    judge, *_, tables = problem
    other, before = recipe(2, round_=1), judge.board(RECIPES).verdict()
    judge.add(0, [other], tables[0][..., [0]], [2.0])
    assert judge.board([*RECIPES, other]).verdict().recipes == RECIPES
    assert judge.board([SMALL, NULL]).verdict().recipes == [SMALL, NULL]
    for split in range(2):
        judge.add(split, [SMALL], 0 * tables[split][..., [1]], [2.0])
    np.testing.assert_array_equal(judge.board(RECIPES).verdict().errors, before.errors)


def test_the_simplest_within_a_standard_error(problem):
    verdict = problem[0].board(RECIPES).verdict()
    assert verdict.recipes[verdict.best] == LARGE
    gap = verdict.errors[1] - verdict.errors[0]
    assert gap <= verdict.standard_errors[1]
    assert verdict.recipes[verdict.simplest(verdict.near(1.0))] == SMALL
    assert verdict.recipes[verdict.simplest(verdict.near(0.0))] == LARGE
    assert verdict.recipes[verdict.chosen] == SMALL


def test_a_simpler_model_may_cost_a_share_of_the_error_and_no_more(problem):
    verdict = problem[0].board(RECIPES).verdict()
    share = verdict.errors[1] / verdict.errors[0] - 1
    assert verdict.recipes[verdict.best] == LARGE

    def chosen(verdict, cost):
        return verdict.recipes[replace(verdict, settings=replace(SETTINGS, cost=cost)).chosen]

    assert chosen(verdict, 1.01 * share) == SMALL
    assert chosen(verdict, 0.99 * share) == LARGE
    # of survival times, a share of what the best model gains
    gained = (verdict.errors[1] - verdict.errors[0]) / (verdict.errors[verdict.null] - verdict.errors[0])
    survival = replace(verdict, coupled=True)
    assert chosen(survival, 1.01 * gained) == SMALL
    assert chosen(survival, 0.99 * gained) == LARGE


def test_the_null_model_is_kept_unless_it_is_beaten_by_enough(problem):
    verdict = problem[0].board(RECIPES).verdict()
    gained = verdict.errors[verdict.null] - verdict.errors[verdict.best]
    enough = gained / verdict.standard_errors[verdict.null]

    def chosen(strictness):
        return verdict.recipes[replace(verdict, settings=replace(SETTINGS, strictness=strictness)).chosen]

    assert chosen(0.9 * enough) != NULL
    assert chosen(1.1 * enough) == NULL


def test_rounding_does_not_decide_between_equal_models(problem):
    judge, *_, tables = problem
    twin = recipe(2, round_=1)
    for factor in (1 - 1e-15, 1 + 1e-15):
        wider = [np.concatenate([table, factor * table[..., [1]]], axis=-1) for table in tables]
        verdict = judge_of(judge.scores, wider, [*RECIPES, twin], [*SIZES, 2.0]).board([*RECIPES, twin]).verdict()
        assert verdict.recipes[verdict.chosen] == SMALL
        assert verdict.recipes[verdict.best] == LARGE


def test_a_verdict_of_some_splits_is_that_of_a_judge_with_these_alone(problem):
    judge, *_, tables = problem
    for split in range(2):
        share = judge.scores[split].weight / sum(scores.weight for scores in judge.scores)
        alone = Judge([judge.scores[split]], 90.0 * share, SETTINGS)
        alone.add(0, RECIPES, tables[split], SIZES)
        expected, found = alone.board(RECIPES).verdict(), judge.board(RECIPES).verdict([split])
        np.testing.assert_allclose(found.errors, expected.errors)
        np.testing.assert_allclose(found.standard_errors, expected.standard_errors)


def test_how_far_the_mean_moves_is_the_distance_of_predictions(problem):
    judge, residuals, weight, _ = problem
    first, second = np.eye(4)[0], np.full(4, 0.25)
    expected = weight @ (residuals @ (first - second)) ** 2 / weight.sum()
    assert judge.board(RECIPES).moved(first, [first, second]) == pytest.approx(expected)


# ------------------------------------------------------------------ the mean


def test_weights_of_the_mean_are_roots_of_likelihoods_and_an_exact_fit_takes_all_the_weight():
    errors = np.array([1.0, 1.02, 1.1, 1.5])
    weights = mean_weights(errors, 100.0, 1.0, 0.0, 1.0, SETTINGS)
    assert weights.sum() == pytest.approx(1)
    assert weights[1] / weights[0] == pytest.approx(np.exp(-0.5))
    assert weights[2] / weights[0] == pytest.approx(np.exp(-2.5))
    assert weights[3] == 0  # exp(-12.5) is left out
    np.testing.assert_allclose(mean_weights(7 * errors, 100.0, 7.0, 0.0, 1.0, SETTINGS), weights)
    exact = mean_weights(np.array([0.0, 0.0, 1.0]), 50.0, 0.0, 1e-12, 1.0, SETTINGS)
    np.testing.assert_allclose(exact, [0.5, 0.5, 0.0])


def test_before_any_row_is_held_out_sizes_share_the_weight_and_recipes_share_a_size():
    sparse = [recipe(size, ridge) for size in (0, 1, 3) for ridge in ((0.0, 0.1, 1.0) if size else (0.0,))]
    weights = dict(zip(sparse, prior_weights(sparse, 0.25), strict=True))
    of_size = {size: sum(w for r, w in weights.items() if r.n_groups == size) for size in (0, 1, 3)}
    assert sum(of_size.values()) == pytest.approx(1)
    assert of_size[0] / of_size[1] == pytest.approx(2)
    assert of_size[1] / of_size[3] == pytest.approx(2)
    assert weights[recipe(3, 0.1)] == pytest.approx(of_size[3] / 3)
    dense = [Reweighted(penalty, 0) for penalty in (0.1, 1.0)] + [Reweighted(1.0, 1)]
    both = prior_weights([*sparse, *dense], 0.25)
    np.testing.assert_allclose(both[: len(sparse)], 0.75 * np.array(list(weights.values())))
    np.testing.assert_allclose(both[len(sparse) :], [0.0625, 0.0625, 0.125])


@pytest.mark.parametrize("noise", ["weak", "strong"])
def test_the_mean_of_an_estimator_is_the_weighted_mean_of_its_candidates(noise):
    """The weights in the table, applied to the errors in the table, are those of the rule."""
    X, y, groups = noisy_problem(noise)
    model = GroupSparseRegressor(groups, rule="predict", selection=Folds(5, deals=1)).fit(X, y)
    table = model.candidates_
    rounding = 1e-12 * table["mse"].max()
    errors = table["mse"].to_numpy()
    dense = table["recipe"].str.contains("on all groups")
    kind = table["groups"].where(~dense, table["recipe"].str.extract("(reweighted.*|$)")[0])
    prior = (1 / (1 + table["groups"].where(~dense, 0)) / kind.map(kind.value_counts())).to_numpy(copy=True)
    for which, share in ((dense, 0.25 if noise == "strong" else 0), (~dense, 0.75 if noise == "strong" else 1)):
        prior[which] *= share / max(prior[which].sum(), 1e-300)
    expected = mean_weights(errors, len(y), errors.min(), rounding, prior, SETTINGS)
    np.testing.assert_allclose(table["weight"], expected, atol=1e-6)


# ------------------------------------------------------------------ in an estimator


def test_pure_noise_has_no_group():
    rng, empty = np.random.default_rng(0), 0
    for _ in range(20):
        X, y = rng.standard_normal((80, 60)), rng.standard_normal(80)
        empty += not GroupSparseRegressor(3).fit(X, y).selected_groups_
    assert empty >= 17


def dense_problem(X):
    """Every column has a small effect, so models of all groups are in the mean."""
    rng = np.random.default_rng(1)
    return X, X @ rng.standard_normal(X.shape[1]) / 8 + rng.standard_normal(len(X))


def test_fold_frequencies_count_the_folds_that_have_the_group():
    X, y, groups = noisy_problem("weak")
    model = GroupSparseRegressor(groups).fit(X, y)
    assert model.n_splits_ == 5 * model.n_deals_
    assert (model.fold_frequencies_[[2, 7, 11]] == model.n_splits_).all()
    assert model.fold_frequencies_.max() <= model.n_splits_
    assert GroupSparseRegressor(groups, rule="predict").fit(*dense_problem(X)).fold_frequencies_ is None


def test_rows_without_weight_are_as_if_they_were_not_there(problem):
    judge, _, _, tables = problem
    dropped = [np.arange(len(table)) % 5 == 0 for table in tables]
    weighted, left = [], []
    for one, gone in zip(judge.scores, dropped, strict=True):
        everything = np.ones(len(gone), dtype=bool)
        weighted.append(Scores(one.response.weighted(np.where(gone, 0.0, one.response.weight)), everything))
        left.append(Scores(one.response.rows(~gone), everything[~gone]))
    found = judge.scored_by(weighted).board(RECIPES).verdict()
    expected = judge_of(left, [table[~gone] for table, gone in zip(tables, dropped, strict=True)])
    expected.n_rows = 90.0 * expected.weight / judge.weight
    expected = expected.board(RECIPES).verdict()
    np.testing.assert_allclose(found.errors, expected.errors)
    np.testing.assert_allclose(found.standard_errors, expected.standard_errors)
