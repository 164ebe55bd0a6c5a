"""The contract of recipes: what is scored is what a user gets, and equal recipes are one candidate."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

import covey
from covey import Groups
from covey.losses import Binomial, Cox, MultiSquared, Squared
from covey.search import table
from covey.search.cleaned import Cleaned
from covey.search.coordinates import RowCoordinates
from covey.search.dense import Reweighted
from covey.search.recipes import Recipe
from covey.search.settings import Settings
from search.posing import in_folds, searched, verdict_of

LOSSES = {"squared": Squared(), "several": MultiSquared(), "binomial": Binomial(), "cox": Cox()}

# ridges on all columns are scored and reweighted even if they are not promising
SETTINGS = Settings(dense=0.0, noisy=0.0, hopeless=np.inf, reweightings=1)


@cache
def columns(wide):
    rng = np.random.default_rng(3)
    return rng.standard_normal((72, 480 if wide else 30)) + 0.4 * rng.standard_normal((72, 1))


def draw(name, wide):
    """Two groups of three columns have effects."""
    X, rng = columns(wide), np.random.default_rng(4)
    eta = X[:, :6] @ [1.0, -1.0, 1.0, 0.5, 0.5, -1.0]
    if name == "several":
        return X, 3 + np.column_stack([eta, -eta]) + rng.standard_normal((72, 2))
    if name == "binomial":
        return X, (rng.random(72) < expit(eta)).astype(float)
    if name == "cox":
        return X, Cox().check(covey.survival(rng.exponential(np.exp(-eta)), rng.random(72) < 0.8))
    return X, 3 + 2 * eta + 2 * rng.standard_normal(72)


@cache
def found(name, wide):
    X, y = draw(name, wide)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "NEAR_COLUMNS", 60 if wide else 500)
        patch.setattr(table, "ALL_NEAR", 0)
        patch.setattr(table, "ROWS_PER_COLUMN", np.inf)
        result = searched(in_folds(X, y, Groups.from_size(3, X.shape[1]), loss=LOSSES[name], settings=SETTINGS), [5])
    assert result.table.all_near != wide
    return result


def some_recipes(result, kind):
    """Recipes of every kind: without a group, without a penalty, with a ridge; on all columns, and reweighted."""
    recipes = [recipe for recipe in verdict_of(result).recipes if isinstance(recipe, kind)]
    by_round = {recipe.round: [r for r in recipes if r.round == recipe.round] for recipe in recipes}
    return [recipe for some in by_round.values() for recipe in (*some[:3], *some[-3:])]


PROBLEMS = pytest.mark.parametrize(("name", "wide"), [(name, wide) for name in LOSSES for wide in (False, True)])


@pytest.mark.parametrize("kind", [Cleaned, Reweighted])
@PROBLEMS
def test_what_is_scored_is_what_the_model_on_the_columns_predicts(name, wide, kind):
    X, _ = draw(name, wide)
    result = found(name, wide)
    posed, recipes = result.posed, some_recipes(result, kind)
    assert recipes
    for training in result.trainings:
        split = training.split
        held_out = np.isin(posed.labels, (*split.train, *split.test) if name == "cox" else split.test)
        for recipe in recipes:
            model = recipe.fit(training)
            at, coef, intercept = model.on_columns()
            expected = X[held_out][:, at] @ coef.T + intercept
            found_ = posed.level + (model.predictors @ posed.response.contrasts) * posed.scale
            np.testing.assert_allclose(found_, expected, atol=1e-8)
            used = {int(j) // 3 for j in at[coef.any(axis=0)]}
            assert used == set(model.groups)
            assert len(set(model.groups)) == len(model.groups)
            assert 5 in model.groups
            if recipe.n_groups is not None:
                assert len(model.groups) == recipe.n_groups + 1


@pytest.mark.parametrize("kind", [Cleaned, Reweighted])
@PROBLEMS
def test_recipes_scored_together_are_those_scored_one_by_one(name, wide, kind):
    result = found(name, wide)
    for training in result.scored:
        for round_ in {recipe.round for recipe in some_recipes(result, kind)}:
            recipes = [recipe for recipe in some_recipes(result, kind) if recipe.round == round_]
            predictors, sizes = kind.scored(recipes, training)
            one_by_one = Recipe.scored.__func__(kind, recipes, training)
            assert predictors.shape == one_by_one[0].shape == (training.scored.size, predictors.shape[1], len(recipes))
            np.testing.assert_allclose(predictors, one_by_one[0], atol=1e-10)
            assert sizes == one_by_one[1]


@PROBLEMS
def test_the_judge_has_the_errors_of_these_predictions(name, wide):
    result = found(name, wide)
    verdict = verdict_of(result)
    for at, training in enumerate(result.scored):
        scores = result.scores()[at]
        for kind in (Cleaned, Reweighted):
            for recipe in some_recipes(result, kind):
                error = scores.errors(recipe.fit(training).predictors[:, :, None])[0] / scores.weight
                assert verdict.by_split[verdict.recipes.index(recipe), at] == pytest.approx(error, rel=1e-9)


def test_wide_problems_use_coordinates_of_the_rows():
    for name in LOSSES:
        for wide in (False, True):
            assert isinstance(found(name, wide).final.dense.plain, RowCoordinates) == wide


# ------------------------------------------------------------------ recipes of other kinds


@dataclass(frozen=True)
class OneGroup(Recipe):
    """Least squares on one group."""

    group: int
    n_groups: int = 1

    def text(self, unpenalised="least squares"):
        return f"{unpenalised} on group {self.group}"

    def fit(self, training):
        near = training.table.groups.tolist().index(self.group)
        Z = training.table.block(near)
        root = np.sqrt(training.response.weight)
        A = root[:, None] * np.column_stack([training.response.one, Z])
        coef = np.linalg.lstsq(A, root * training.response.y, rcond=None)[0]
        return training.model([self.group], coef[None, 1:], coef[:1], shrunk=False)


def search_with(*recipes):
    X, y = draw("squared", False)
    return X, y, searched(in_folds(X, y, Groups.from_size(3, 30), settings=SETTINGS), recipes=recipes)


def test_a_further_recipe_is_scored_like_the_others():
    X, y, result = search_with(OneGroup(1), OneGroup(7))
    verdict = verdict_of(result)
    for group in (1, 7):
        place = verdict.recipes.index(OneGroup(group))
        for fold in range(3):
            test = np.arange(72) % 3 == fold
            A = np.column_stack([np.ones(72), X[:, 3 * group : 3 * group + 3]])
            w = np.linalg.lstsq(A[~test], y[~test], rcond=None)[0]
            expected = np.mean((y[test] - A[test] @ w) ** 2) / result.posed.scale[0] ** 2
            assert verdict.by_split[place, fold] == pytest.approx(expected)
    at, coef, level = OneGroup(7).fit(result.final).on_columns()
    w = np.linalg.lstsq(np.column_stack([np.ones(72), X[:, 21:24]]), y, rcond=None)[0]
    assert at.tolist() == [21, 22, 23]
    np.testing.assert_allclose(np.append(level, coef), w, atol=1e-9)


def test_equal_recipes_are_one_candidate():
    assert Cleaned(0, 6, 0.1, 9, 3) == Cleaned(0, 6, 0.1, 8, 2)
    assert len({Reweighted(0.5, 1), Reweighted(0.5, 1), Reweighted(0.5, 0)}) == 2
    _, _, alone = search_with()
    _, _, result = search_with(OneGroup(1), OneGroup(1), Reweighted(SETTINGS.penalties[0], 0))
    recipes = verdict_of(result).recipes
    assert len(set(recipes)) == len(recipes)
    assert set(recipes) - set(verdict_of(alone).recipes) == {OneGroup(1)}
    assert sum(verdict_of(result).weights) == pytest.approx(1)


@dataclass(frozen=True)
class Given(Recipe):
    """Returns what `make` makes of the training rows."""

    make: object
    n_groups: None = None

    def text(self, unpenalised="least squares"):
        return "given"

    def fit(self, training):
        return self.make(training)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda training: None,
            TypeError,
            r"Given.fit returned NoneType, and must return training.model\(groups, W, levels\)",
        ),
        (
            lambda training: training.model([7], np.zeros((3, 1)), np.zeros(1)),
            ValueError,
            r"W of shape \(1, 3\) and levels of shape \(1,\) .* not \(3, 1\) and \(1,\)",
        ),
        (
            lambda training: training.model([99], np.zeros((1, 3)), np.zeros(1)),
            ValueError,
            "Group 99 is not in training.table.groups",
        ),
        (
            lambda training: training.model([0], np.zeros((1, 3)), np.zeros(1)),
            ValueError,
            "lacks group 7, which is always in, or a parent",
        ),
        (
            lambda training: training.model([7], np.zeros((1, 3)), np.ones(1)),
            ValueError,
            "levels of zero if fit_intercept=False",
        ),
    ],
    ids=["nothing", "turned", "far", "without always", "with intercept"],
)
def test_a_recipe_that_makes_no_model_is_told_what_to_return(make, error, message):
    X, y = draw("squared", False)
    with pytest.raises(error, match=message):
        covey.GroupSparseRegressor(groups=3, recipes=[Given(make)], always=[7], fit_intercept=False).fit(X, y)


def test_the_price_of_sparsity_is_that_of_ridges_on_all_groups():
    """A recipe that may have any number of groups is no model on all of them."""

    def cheat(training):
        table = training.table
        coef = np.linalg.lstsq(table.Z, training.response.y, rcond=None)[0]
        return training.model(table.groups.tolist(), coef[None], np.zeros(1))

    X, y = draw("squared", False)
    noisy = y + 6 * np.random.default_rng(5).standard_normal(72)
    alone, beside = (covey.GroupSparseRegressor(groups=3, recipes=some).fit(X, noisy) for some in ([], [Given(cheat)]))
    assert beside.candidates_.set_index("recipe")["mse"].idxmin() == "given"
    assert beside.price_[0] == pytest.approx(alone.price_[0])


def test_a_recipe_that_leaves_out_a_parent_is_refused():
    def child(training):
        l = min(training.posed.parents)
        width = training.table.block(training.table.place[l]).shape[1]
        return training.model([l], np.zeros((1, width)), np.zeros(1))

    X, y = draw("squared", False)
    with pytest.raises(ValueError, match="or a parent of one that is in"):
        covey.GroupSparseRegressor(terms="auto", recipes=[Given(child)]).fit(X[:, :3], y)


def test_the_recipe_of_the_documentation_takes_combinations_of_rows():
    """Next to no penalty is least squares, if the steps fit the column of the intercept."""
    page = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
    names = {"__name__": "__main__"}
    exec(next(part for part in page.split("```python\n") if "class GroupLasso" in part).split("```")[0], names)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 12))
    y = X[:, 0] - X[:, 4] + rng.standard_normal(900)
    model = covey.GroupSparseRegressor(3, recipes=[names["GroupLasso"](1e-9)]).fit(X, y)
    errors = model.candidates_.groupby("recipe")["mse"].first()
    expected = errors["least squares on 4 of the first 4 groups"]
    assert errors["group lasso at 1e-09 of the largest penalty"] == pytest.approx(expected, rel=1e-6)
