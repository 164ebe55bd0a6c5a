"""The judge's table against direct computation, what a rule chooses, and the weights of the mean."""

import numpy as np
import pytest
from covey.selection.recipe import Cleaned, Reweighted

from covey import Groups, GroupSparseRegressor
from covey.search.judge import NEAR_MEAN, STRICT, Judge, SquaredScores, mean_weights, prior_weights
from covey.search.splits import balanced_folds
from covey.selection import Thresholds
from estimator_problems import noisy_problem

NULL, SMALL, LARGE, DENSE = Cleaned(0, 9, 0, 0.0), Cleaned(0, 9, 2, 0.0), Cleaned(0, 9, 7, 0.0), Reweighted(1.0, 0)
RECIPES = [LARGE, SMALL, NULL, DENSE]
SIZES = [7.0, 2.0, 0.0, 1e6]


def residuals(seed, n, shifts, weight):
    """Residuals of models that differ from a noise by shifts of their own, times the roots of the weights."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal(n)
    return np.sqrt(weight)[:, None] * (noise[:, None] + np.asarray(shifts) * rng.standard_normal((n, len(shifts))))


@pytest.fixture
def heard():
    weights = [np.random.default_rng(s).uniform(0.5, 2, 40 + 10 * s) for s in range(2)]
    tables = [residuals(s, w.size, [0.05, 0.1, 2.0, 0.3], w) for s, w in enumerate(weights)]
    judge = Judge([SquaredScores(w.sum()) for w in weights], [40.0, 50.0])
    for split, E in enumerate(tables):
        judge.add(split, RECIPES, E, SIZES)
    return judge, tables, weights


def test_errors_are_weighted_means_over_all_judging_rows(heard):
    judge, tables, weights = heard
    verdict = judge.verdict()
    E, w = np.concatenate(tables), np.concatenate(weights)
    assert verdict.recipes == RECIPES
    np.testing.assert_allclose(verdict.errors, (E**2).sum(axis=0) / w.sum())
    for s, (table, weight) in enumerate(zip(tables, weights, strict=True)):
        np.testing.assert_allclose(verdict.by_split[:, s], (table**2).sum(axis=0) / weight.sum())
    assert verdict.recipes[verdict.null] == NULL
    assert verdict.best == np.argmin(verdict.errors)


def test_the_standard_error_is_that_of_twice_the_noise_times_the_distance_of_predictions(heard):
    judge, tables, weights = heard
    verdict = judge.verdict()
    E, w = np.concatenate(tables), np.concatenate(weights)
    noise = verdict.errors[verdict.best]
    distance = ((E - E[:, [verdict.best]]) ** 2).sum(axis=0) / w.sum()
    np.testing.assert_allclose(verdict.doubts, 2 * np.sqrt(noise * distance / 90))
    assert verdict.doubts[verdict.best] == 0


def test_the_standard_error_is_about_that_of_row_wise_differences():
    """With residuals of the best model that are independent of the distance, the two estimate one thing."""
    n = 20_000
    judge = Judge([SquaredScores(float(n))], [float(n)])
    E = residuals(0, n, [0.0, 0.5, 3.0, 0.3], np.ones(n))
    judge.add(0, RECIPES, E, SIZES)
    verdict = judge.verdict()
    difference = E[:, 1] ** 2 - E[:, 0] ** 2
    centred = difference - (E[:, 1] - E[:, 0]) ** 2  # the part that is noise
    assert verdict.doubts[1] == pytest.approx(centred.std() / np.sqrt(n), rel=0.05)


def test_only_recipes_that_every_split_has_are_judged(heard):
    judge, tables, _ = heard
    judge.add(0, [Cleaned(1, 9, 2, 0.0)], tables[0][:, [0]], [2.0])
    assert judge.verdict().recipes == RECIPES
    assert judge.verdict([SMALL, NULL]).recipes == [SMALL, NULL]


def test_a_recipe_is_heard_once(heard):
    judge, tables, _ = heard
    before = judge.verdict()
    for split in range(2):
        judge.add(split, [SMALL], 0 * tables[split][:, [1]], [2.0])
    np.testing.assert_array_equal(judge.verdict().errors, before.errors)


def test_the_simplest_within_a_standard_error(heard):
    verdict = heard[0].verdict()
    assert verdict.recipes[verdict.best] == LARGE
    gap = verdict.errors[1] - verdict.errors[0]
    assert gap <= verdict.doubts[1]
    assert verdict.recipes[verdict.simplest()] == SMALL
    assert verdict.recipes[verdict.choose("1se", Thresholds())] == SMALL


def test_nothing_stands_unless_it_is_beaten_by_enough(heard):
    verdict = heard[0].verdict()
    gained = verdict.errors[verdict.null] - verdict.errors[verdict.best]
    assert verdict.evidence == pytest.approx(gained / verdict.doubts[verdict.null])
    assert verdict.recipes[verdict.choose("min", Thresholds(evidence=0.9 * verdict.evidence))] != NULL
    assert verdict.recipes[verdict.choose("min", Thresholds(evidence=1.1 * verdict.evidence))] == NULL
    # the rule for fewer groups asks for more
    assert STRICT > 1
    assert verdict.recipes[verdict.choose("1se", Thresholds(evidence=0.9 * verdict.evidence / STRICT))] != NULL
    assert verdict.recipes[verdict.choose("1se", Thresholds(evidence=1.1 * verdict.evidence / STRICT))] == NULL


def test_rounding_does_not_decide_between_equal_models(heard):
    judge, tables, _ = heard
    twin = Cleaned(1, 9, 2, 0.0)
    for factor in (1 - 1e-15, 1 + 1e-15):
        judge = Judge(judge.scores, [40.0, 50.0])
        for split, E in enumerate(tables):
            judge.add(split, [*RECIPES, twin], np.column_stack([E, factor * E[:, 1]]), [*SIZES, 2.0])
        verdict = judge.verdict()
        assert verdict.recipes[verdict.simplest()] == SMALL
        assert verdict.recipes[verdict.best] == LARGE
        assert verdict.recipes[verdict.central] != twin


# ------------------------------------------------------------------ the mean


def test_weights_of_the_mean_are_likelihoods():
    errors = np.array([1.0, 1.02, 1.1, 1.5])
    weights = mean_weights(errors, 100.0, 1.0, 0.0)
    assert weights.sum() == pytest.approx(1)
    assert weights[1] / weights[0] == pytest.approx(np.exp(-1.0))
    assert weights[2] / weights[0] == pytest.approx(np.exp(-5.0))
    assert weights[3] == 0  # exp(-25) is left out
    np.testing.assert_allclose(mean_weights(7 * errors, 100.0, 7.0, 0.0), weights)


def test_an_exact_fit_takes_all_the_weight():
    np.testing.assert_allclose(mean_weights(np.array([0.0, 0.0, 1.0]), 50.0, 0.0, 1e-12), [0.5, 0.5, 0.0])


def test_before_any_row_is_held_out_sizes_share_the_weight_and_recipes_share_a_size():
    sparse = [Cleaned(0, 10, size, ridge) for size in (0, 1, 3) for ridge in ((0.0, 0.1, 1.0) if size else (0.0,))]
    weights = dict(zip(sparse, prior_weights(sparse), strict=True))
    of_size = {size: sum(w for r, w in weights.items() if r.size == size) for size in (0, 1, 3)}
    assert sum(of_size.values()) == pytest.approx(1)
    assert of_size[0] / of_size[1] == pytest.approx(2)
    assert of_size[1] / of_size[3] == pytest.approx(2)
    assert weights[Cleaned(0, 10, 3, 0.1)] == pytest.approx(of_size[3] / 3)
    dense = [Reweighted(penalty, 0) for penalty in (0.1, 1.0)] + [Reweighted(1.0, 1)]
    both = prior_weights([*sparse, *dense])
    np.testing.assert_allclose(both[: len(sparse)], 0.75 * np.array(list(weights.values())))
    np.testing.assert_allclose(both[len(sparse) :], [0.0625, 0.0625, 0.125])


def test_the_model_of_rule_min_is_the_simplest_of_those_near_the_mean(heard):
    judge, tables, weights = heard
    verdict = judge.verdict()
    E, w = np.concatenate(tables), np.concatenate(weights)
    np.testing.assert_allclose(
        verdict.weights,
        mean_weights(verdict.errors, 90.0, verdict.errors.min(), 0.0, prior_weights(verdict.recipes)),
        rtol=1e-6,
    )
    distance = ((E - (E @ verdict.weights)[:, None]) ** 2).sum(axis=0) / w.sum()
    near = np.flatnonzero(distance <= NEAR_MEAN * distance.min())
    assert verdict.central == near[np.argmin(verdict.sizes[near])]
    assert verdict.choose("min", Thresholds(evidence=0.0)) == verdict.central
    assert verdict.recipes[verdict.central] == SMALL
    # a simple model that is far from the mean is not taken
    far = [np.column_stack([table[:, [0, 1]] + [0, 0.5], table[:, 2:]]) for table in tables]
    judge = Judge(judge.scores, judge.counts)
    for split, table in enumerate(far):
        judge.add(split, RECIPES, table, SIZES)
    assert judge.verdict().recipes[judge.verdict().central] == LARGE


@pytest.mark.parametrize("noise", ["weak", "strong"])
def test_the_mean_of_an_estimator_is_the_weighted_mean_of_its_candidates(noise):
    """The weights in the table, applied to the errors in the table, are those of the rule."""
    X, y, groups = noisy_problem(noise)
    model = GroupSparseRegressor(groups, average=True).fit(X, y)
    table = model.candidates_
    rounding = 1e-12 * table["mse"].max()
    errors = table["mse"].to_numpy()
    dense = table["recipe"].str.contains("on all groups")
    kind = table["groups"].where(~dense, table["recipe"].str.extract("(reweighted.*|$)")[0])
    prior = (1 / (1 + table["groups"].where(~dense, 0)) / kind.map(kind.value_counts())).to_numpy(copy=True)
    for own, share in ((dense, 0.25 if noise == "strong" else 0), (~dense, 0.75 if noise == "strong" else 1)):
        prior[own] *= share / max(prior[own].sum(), 1e-300)
    expected = mean_weights(errors, len(y), errors.min(), rounding, prior)
    np.testing.assert_allclose(table["weight"], expected, atol=1e-6)


# ------------------------------------------------------------------ in an estimator


@pytest.mark.parametrize("noise", ["weak", "strong"])
@pytest.mark.parametrize("weighted", [False, True])
def test_judged_errors_are_those_of_refits_without_the_fold(noise, weighted):
    """The null model is the mean of the other folds, and all columns by least squares can be refitted directly."""
    X, _, groups = noisy_problem(noise, n_groups=12)
    groups = Groups.from_sizes(groups.sizes[:4])
    X = X[:, : groups.n_columns]
    y = X.sum(axis=1) + {"weak": 0.1, "strong": 9.0}[noise] * np.random.default_rng(5).standard_normal(len(X))
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float) if weighted else np.ones(len(y))
    model = GroupSparseRegressor(groups).fit(X, y, sample_weight=weight)
    fold = balanced_folds(y, weight, k=5)
    recipes = {"no group": [], "least squares on 4 of the first 4 groups": list(range(X.shape[1]))}
    for recipe, columns in recipes.items():
        row = model.candidates_[model.candidates_["recipe"] == recipe].iloc[0]
        total = 0.0
        for k in range(5):
            train, test = fold != k, fold == k
            root = np.sqrt(weight[train])
            A = np.column_stack([np.ones(len(y)), X[:, columns]])
            w = np.linalg.lstsq(root[:, None] * A[train], root * y[train], rcond=None)[0]
            squares = weight[test] @ (y[test] - A[test] @ w) ** 2
            assert row[f"fold_{k}"] == pytest.approx(squares / weight[test].sum())
            total += squares
        assert row["mse"] == pytest.approx(total / weight.sum())


def test_pure_noise_has_no_group():
    rng = np.random.default_rng(0)
    empty = {"min": 0, "1se": 0}
    for rule in empty:
        for _ in range(12):
            X, y = rng.standard_normal((80, 60)), rng.standard_normal(80)
            empty[rule] += not GroupSparseRegressor(3, rule=rule).fit(X, y).selected_groups_
    assert empty["min"] >= 8
    assert empty["1se"] >= 10


@pytest.mark.parametrize("noise", ["weak", "strong"])
def test_one_standard_error_selects_no_more_groups(noise):
    for seed in range(4):
        X, y, groups = noisy_problem(noise, seed=seed)
        least, simple = (GroupSparseRegressor(groups, rule=rule).fit(X, y) for rule in ("min", "1se"))
        assert len(simple.selected_groups_) <= len(least.selected_groups_)


def test_fold_frequencies_count_the_folds_that_have_the_group():
    X, y, groups = noisy_problem("weak")
    model = GroupSparseRegressor(groups).fit(X, y)
    assert model.n_splits_ == 5
    assert (model.fold_frequencies_[[2, 7, 11]] == 5).all()
    assert model.fold_frequencies_.sum() >= 15
    (chosen,) = model.candidates_[model.candidates_["chosen"]].itertuples()
    assert model.fold_frequencies_.sum() == 5 * chosen.groups  # every fold has as many groups as the recipe says
