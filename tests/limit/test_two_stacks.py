"""Squared loss has a stack of its own, from Gram rows. The one for every loss must give the same, loss for loss."""

import numpy as np
import pytest
from covey.limit import lockstep, posed
from covey.limit.likelihood import Likelihood
from covey.limit.posing import pose
from covey.limit.rows import Split

from covey import Groups, GroupSparseRegressor
from covey.designs import as_design
from covey.losses import MultiSquared, Squared
from covey.search.paths import Near, Paths
from covey.search.select import Problem, select
from covey.selection import HoldOut, Size, fitting_loss
from estimator_problems import noisy_problem
from limit_reference import mixed_problem
from loss_problems import Quadratic

SPLITS = [Split((1, 2), (0,)), Split((0, 2), (1,)), Split((0, 1), (2,)), Split((0, 1, 2))]


@pytest.fixture(autouse=True)
def every_candidate(monkeypatch):
    """The stack for every loss leaves out some sizes, prefixes and penalties: each would be a fit of its own."""
    monkeypatch.setattr(fitting_loss, "ALL_SIZES", 99)
    monkeypatch.setattr(fitting_loss, "LONGER", 1.0)
    monkeypatch.setattr(fitting_loss.LossFitting, "slow_dense", False)


def few_near(monkeypatch, columns):
    monkeypatch.setattr(posed, "NEAR_COLUMNS", columns)
    monkeypatch.setattr(posed, "ALL_NEAR", 0)
    monkeypatch.setattr(lockstep, "EVENTS_PER_CHECK", 3)
    monkeypatch.setattr(lockstep, "LEAST_GROWTH", 1)
    monkeypatch.setattr(lockstep, "GROWTH", 1)


def paths_of(loss, X, y, groups, weight, start=(), n_events=8, **options):
    masks = [np.where(np.arange(len(y)) % 3 == k, weight, 0.0) for k in range(3)]
    counts = [float(mask.sum()) for mask in masks]
    given = y if not loss.vector else y[:, None]
    problem = pose(as_design(X), given, groups, weight, masks, counts, SPLITS, loss=loss, **options)
    paths = Paths(Near(problem), [list(start)] * 4)
    paths.advance(n_events)
    return paths


@pytest.mark.parametrize("far", [False, True], ids=["all near", "most far"])
@pytest.mark.parametrize("loss", [Quadratic(), MultiSquared()], ids=lambda loss: loss.name)
@pytest.mark.parametrize(
    "options", [{}, {"fit_intercept": False}, {"factors": 2}, {"standardize": "column"}, {"start": [3, 5]}], ids=str
)
def test_events(options, loss, far, monkeypatch):
    if far:
        few_near(monkeypatch, 4)
    X, y, lists = mixed_problem(noise=2.0)
    groups = Groups.from_lists(lists)
    weight = np.random.default_rng(1).uniform(0.0, 2.0, len(y)) * (np.arange(len(y)) % 7 > 0)
    expected = paths_of(Squared(), X, y, groups, weight, **options)
    found = paths_of(loss, X, y, groups, weight, **options)
    unit = 1.0 if loss.vector else expected.posed.problem.y_scale
    for split in range(4):
        assert found.groups(split) == expected.groups(split)
        np.testing.assert_allclose(np.multiply(found.paths[split].times, unit), expected.paths[split].times, rtol=1e-8)
        models = [
            p.posed.to_user(p.groups(split), *p.objective(split).models(0, p.posed.intercept))
            for p in (found, expected)
        ]
        wide = np.zeros((2, len(models[0][1]), X.shape[1]))
        for row, (columns, coef, _) in zip(wide, models, strict=True):
            row[:, columns] = coef[:, 0]
        # a group without full rank has no unique coefficients: what they predict is unique
        np.testing.assert_allclose(X @ wide[0].T, X @ wide[1].T, atol=1e-6)
        np.testing.assert_allclose(models[0][2], models[1][2], atol=1e-6)


def test_groups_that_are_taken_in_leave_the_models_as_they_are(monkeypatch):
    """Each model is fitted once, and once more where a path had to go back before it."""
    few_near(monkeypatch, 4)
    fits, widths = [], set()
    refit, truncate, widen = Likelihood.refit, Likelihood.truncate, Likelihood.widen
    monkeypatch.setattr(Likelihood, "refit", lambda self, group: (fits.append(1), refit(self, group))[1])

    def shorter(self, n_awake):
        fits.extend([-1] * (len(self.joined) - n_awake))
        truncate(self, n_awake)

    def wider(self, rows):
        before = [coef.copy() for coef in self.coefs]
        widths.add(rows.n_columns)
        widen(self, rows)
        assert all(np.array_equal(*pair) for pair in zip(self.coefs, before, strict=True))

    monkeypatch.setattr(Likelihood, "truncate", shorter)
    monkeypatch.setattr(Likelihood, "widen", wider)
    X, y, lists = mixed_problem(noise=2.0)
    paths = paths_of(Quadratic(), X, y, Groups.from_lists(lists), np.ones(len(y)))
    assert len(widths) > 1
    assert sum(fits) == sum(len(paths.groups(split)) for split in range(4))
    # the table that grew is the one that would be made at once
    at_once = paths.posed.rows(paths.near.groups)
    np.testing.assert_array_equal(paths.near.rows.Z, at_once.Z)
    np.testing.assert_array_equal(paths.near.rows.starts, at_once.starts)


def test_rows_of_no_weight_have_no_part_in_a_wide_problem(monkeypatch):
    """The kernel of the rows and the table of the near groups leave out the same ones."""
    few_near(monkeypatch, 30)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 120))
    y = X.sum(axis=1) / 5 + rng.standard_normal(60)
    weight = np.where(np.arange(60) % 4 == 1, 0.0, 1.0)
    models = [
        GroupSparseRegressor(Groups.from_size(2, 120), loss=Quadratic(), selection=selection).fit(
            X[own], y[own], sample_weight=weight[own]
        )
        for selection in (HoldOut(validation=(X + 0.1 * rng.standard_normal(X.shape), y)), 3)
        for own in (np.arange(60), np.flatnonzero(weight))
    ]
    for model in models:
        assert any("all groups" in recipe for recipe in model.candidates_["recipe"])
    assert models[0].recipe_ == models[1].recipe_
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, atol=1e-7)


def overlapping(p):
    return Groups.from_lists([list(range(j, min(j + 4, p))) for j in range(0, p - 1, 3)], overlap=True)


SELECTIONS = {
    "folds": lambda X, y: 5,
    "hold-out": lambda X, y: HoldOut(0.25),
    "validation": lambda X, y: HoldOut(validation=(X[:30] + 0.1, y[:30] - 0.3)),
    "ebic": lambda X, y: "ebic",
    "gcv": lambda X, y: "gcv",
    "size": lambda X, y: Size(3),
}
OPTIONS = {
    "plain": {},
    "always": {"always": [5, 9]},
    "1se": {"rule": "1se"},
    "mean": {"average": True},
    "no intercept": {"fit_intercept": False},
    "factors": {"factors": 1},
    "columns": {"standardize": "column"},
}


def assert_same_model(found, expected, X, unit=1.0, rtol=1e-6):
    assert found.recipe_ == expected.recipe_
    assert found.selected_groups_ == expected.selected_groups_
    largest = np.abs(expected.coef_).max(initial=0)
    np.testing.assert_allclose(np.ravel(found.coef_), expected.coef_, atol=rtol * largest)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=rtol * max(1, largest))
    np.testing.assert_array_equal(found.fold_frequencies_, expected.fold_frequencies_)
    mine, theirs = found.candidates_, expected.candidates_
    both = mine.merge(theirs, on="recipe", suffixes=("", "_expected"))
    assert len(both) >= 0.8 * len(mine) > 0
    errors = next(name for name in ("mse", "rss") if name in theirs)
    np.testing.assert_allclose(both["deviance"] * unit, both[errors], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("far", [False, True], ids=["all near", "most far"])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("noise", ["weak", "strong"])
@pytest.mark.parametrize("selection", SELECTIONS)
def test_models(selection, noise, weighted, far, monkeypatch):
    if far:
        few_near(monkeypatch, 10)
    X, y, groups = noisy_problem(noise)
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float) if weighted else None
    way = same_rows(SELECTIONS[selection](X, y), X, y)
    expected = GroupSparseRegressor(groups, selection=way).fit(X, y, weight)
    found = GroupSparseRegressor(groups, selection=way, loss=Quadratic()).fit(X, y, weight)
    assert_same_model(found, expected, X)


def same_rows(way, X, y):
    """Squared loss may hold rows out where X is kept elsewhere, and draws them otherwise: given folds are the same."""
    if isinstance(way, HoldOut) and way.validation is None:
        held = np.arange(len(y)) % 4 == 0
        return [(np.flatnonzero(~held), np.flatnonzero(held))]
    return way


@pytest.mark.parametrize("layout", ["apart", "overlapping"])
@pytest.mark.parametrize("noise", ["weak", "strong"])
@pytest.mark.parametrize("options", OPTIONS)
def test_settings(options, noise, layout):
    X, y, groups = noisy_problem(noise)
    groups = groups if layout == "apart" else overlapping(X.shape[1])
    expected = GroupSparseRegressor(groups, **OPTIONS[options]).fit(X, y)
    found = GroupSparseRegressor(groups, loss=Quadratic(), **OPTIONS[options]).fit(X, y)
    assert_same_model(found, expected, X)


@pytest.mark.parametrize("noise", ["weak", "strong"])
@pytest.mark.parametrize("selection", ["folds", "validation", "ebic", "size"])
def test_several_responses_of_which_there_is_one(selection, noise):
    """Squared loss for one response, posed as one for several."""
    X, y, groups = noisy_problem(noise)
    way = SELECTIONS[selection](X, y)
    expected = GroupSparseRegressor(groups, selection=way).fit(X, y)
    if selection == "validation":
        way = HoldOut(validation=(way.validation[0], way.validation[1][:, None]))
    model = GroupSparseRegressor(groups, selection=way)
    options = {name: getattr(model, name) for name in ("group_weights", "standardize", "fit_intercept", "factors")}
    problem = Problem(as_design(X), y[:, None], np.ones(len(y)), groups, [], options, MultiSquared())
    found = select(problem, model._read_selection(None))
    assert found.recipe == expected.recipe_
    assert [groups.names[l] for l in found.order] == expected.selected_groups_
    np.testing.assert_allclose(found.coef[0], expected.coef_, atol=1e-6 * np.abs(expected.coef_).max())
    np.testing.assert_allclose(found.strengths, expected.group_strengths_, atol=1e-6)


@pytest.mark.parametrize("noise", ["weak", "strong"])
def test_an_offset_is_taken_from_the_response(noise):
    X, y, groups = noisy_problem(noise)
    offset = np.random.default_rng(0).standard_normal(len(y))
    folds = [(np.flatnonzero(np.arange(80) % 4 != k), np.flatnonzero(np.arange(80) % 4 == k)) for k in range(4)]
    expected = GroupSparseRegressor(groups, selection=folds).fit(X, y)
    for loss in ("squared", Quadratic()):
        found = GroupSparseRegressor(groups, selection=folds, loss=loss).fit(X, y + offset, offset=offset)
        assert found.recipe_ == expected.recipe_
        np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-6 * np.abs(expected.coef_).max())
        np.testing.assert_allclose(found.predict(X, offset), expected.predict(X) + offset, atol=1e-6)
