"""Ridges on all columns: every fit is certified by its optimality conditions, in both kinds of coordinates."""

import numpy as np
import pytest
from scipy.special import expit

from covey import Groups
from covey.losses import Binomial, MultiSquared, Squared
from covey.search.coordinates import RowCoordinates, ScaledColumns
from covey.search.dense import DenseRidges, Reweighted, can_be_dense, noise_norms
from covey.search.search import trainings_of
from covey.search.settings import SETTINGS, Settings
from covey.search.table import Table
from search.limit_reference import mixed_problem
from search.posing import few_near, in_folds, searched


@pytest.fixture(autouse=True)
def all_digits(monkeypatch):
    """Fits on folds with as many digits as those on all rows."""
    for module in ("newton", "coordinates"):
        monkeypatch.setattr(f"covey.search.{module}.ROUGH", 0.0)


LOSSES = {"squared": Squared(), "several": MultiSquared(), "binomial": Binomial()}


def draw(name, n, full_rank=False):
    X, y, lists = mixed_problem(n)
    if full_rank:
        X[:, [lists[4][4], lists[6][1]]] = np.random.default_rng(9).standard_normal((n, 2))
    y = {"binomial": (y > y.mean()).astype(float), "several": np.column_stack([y, X[:, 5] + 2])}.get(name, y)
    return X, y, lists


class Problem:
    """A posed problem with the training rows of its splits and the dense ridges on them."""

    def __init__(self, name, n, *, full_rank=False, always=(), **options):
        self.X, self.y, self.lists = draw(name, n, full_rank)
        self.weight = np.random.default_rng(1).uniform(0.5, 2, n)
        self.posed = in_folds(self.X, self.y, self.lists, loss=LOSSES[name], weight=self.weight, **options)
        self.table = Table(self.posed)
        self.trainings = trainings_of(self.table, list(always))
        self.dense = DenseRidges(self.table, self.trainings)
        self.name = name

    def score(self, number, columns, coef, intercept):
        """Minus the gradient of the loss of a model on the columns of X, in working units."""
        posed = self.posed
        train = np.isin(posed.labels, posed.splits[number].train)
        q = np.where(train, self.weight, 0.0) / self.weight.sum()
        eta = self.X[:, columns] @ coef.T + intercept
        y = self.y.reshape(len(self.y), -1)
        residual = y - expit(eta) if self.name == "binomial" else (y - eta) / posed.scale
        return q[:, None] * residual


def assert_optimal(problem, number, on_columns, penalty, shares, atol=1e-8):
    """The gradient of the loss equals that of the penalty on every group, and that in the intercept is zero."""
    working = problem.posed.working
    columns, coef, intercept = on_columns
    score = problem.score(number, columns, coef, intercept)
    if problem.posed.intercept:
        assert np.abs(score.sum(axis=0)).max() < atol
    full = np.zeros((coef.shape[0], problem.X.shape[1]))
    np.add.at(full, (slice(None), columns), coef)
    for l, members in enumerate(problem.lists):
        Z = working.working_columns(np.array([l]))
        part = (problem.X[:, members] - working.mean[working.layout.starts[l] :][: len(members)]) @ full[:, members].T
        w = np.linalg.lstsq(Z, part / problem.posed.scale, rcond=None)[0]
        (M,) = problem.dense.penalties.of([l])
        np.testing.assert_allclose(Z.T @ score, penalty * shares[l] * M @ w, atol=atol)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n", [24, 120], ids=["wide", "tall"])
@pytest.mark.parametrize("name", LOSSES)
def test_a_ridge_minimises_its_objective(name, n, intercept):
    problem = Problem(name, n, fit_intercept=intercept)
    shares = np.random.default_rng(2).uniform(0.1, 5, len(problem.lists))
    columns = ScaledColumns(problem.table, problem.table.groups, problem.dense.penalties)
    penalty = 0.3 * columns.unit(problem.trainings[-1])
    for training in problem.trainings:
        (fit,) = columns.fits(training, [penalty], [shares])
        assert_optimal(problem, training.number, columns.on_columns(fit), penalty, shares)


@pytest.mark.parametrize("always", [[], [2]], ids=["", "one group always in"])
@pytest.mark.parametrize("n", [24, 120], ids=["wide", "tall"])
@pytest.mark.parametrize("name", LOSSES)
def test_a_ridge_with_pairs_shrinks_them_by_their_number_of_columns(name, n, always):
    problem = Problem(name, n, always=always, n_mains=4)
    problem.table.add_all()
    posed, final, recipe = problem.posed, problem.trainings[-1], Reweighted(0.5, 0, pairs=True)
    mains = posed.ranks[:4].sum()
    shares = np.where(np.arange(posed.ranks.size) < 4, 1.0, (posed.ranks.sum() - mains) / mains)
    shares[always] = 1e-6
    model = recipe.fit(final)
    assert_optimal(problem, 3, model.on_columns(), 0.5 * problem.dense.with_pairs.unit(final), shares, 1e-8)
    assert sorted(model.groups) == [l for l, rank in enumerate(posed.ranks) if rank]


@pytest.mark.parametrize("reweightings", [0, 5])
def test_ridges_with_pairs_are_for_predictions(reweightings):
    X, y, lists = draw("squared", 120)
    settings = Settings(reweightings=reweightings)
    found = searched(
        in_folds(X, y + np.random.default_rng(0).standard_normal(120), lists, n_mains=4, settings=settings)
    )
    assert any(isinstance(r, Reweighted) and r.pairs for r in found.recipes) == bool(reweightings)


def test_norms_and_the_unit_of_penalties_are_those_of_scaled_columns():
    """The unit is the mean variance per row, and counts rows by their weights."""
    problem = Problem("squared", 120, full_rank=True)
    final = problem.trainings[-1]
    (fit,) = problem.dense.fits([Reweighted(0.5, 0)], final)
    columns, coef, _ = problem.dense.plain.on_columns(fit)
    centred = problem.X - np.average(problem.X, axis=0, weights=problem.weight)
    deviation = np.sqrt(np.average(centred**2, axis=0, weights=problem.weight))
    scale = np.sqrt(deviation * np.ptp(problem.X, axis=0) / SETTINGS.column_range)
    for l, members in enumerate(problem.lists):
        at = np.isin(columns, members)
        expected = np.linalg.norm(coef[0, at] * scale[columns[at]]) / problem.posed.scale[0]
        assert fit.norms[l] == pytest.approx(expected)
    # every column adds its variance in units of its squared scale, and the mean is over 120 rows
    assert problem.table.compressed == (len(problem.table.labels) < 120)
    expected = np.sum((deviation / scale) ** 2) / 120
    assert problem.dense.plain.unit(final) == pytest.approx(expected)
    problem.posed.counts[:] = [2 * count for count in problem.posed.counts]
    assert problem.dense.plain.unit(final) == pytest.approx(expected / 2)
    # pure noise has a larger norm in a larger group
    norms = noise_norms(np.array([1, 4, 9]))
    assert norms.mean() == pytest.approx(1)
    assert (np.diff(norms) > 0).all()


@pytest.mark.parametrize("always", [[], [2]], ids=["", "one group always in"])
@pytest.mark.parametrize("name", LOSSES)
def test_reweighting_divides_penalties_by_the_norms_of_the_fit_before(name, always):
    problem = Problem(name, 120, always=always)
    final = problem.trainings[-1]
    before = np.ones(len(problem.lists))
    before[always] = 1e-6
    for round_ in range(3):
        recipe = Reweighted(0.6, round_)
        model = recipe.fit(final)
        penalty = recipe.penalty * problem.dense.plain.unit(final)
        assert_optimal(problem, 3, model.on_columns(), penalty, before, 1e-8)
        (fit,) = problem.dense.fits([recipe], final)
        share = np.maximum(fit.norms / fit.norms.mean(), SETTINGS.least_share)
        before = noise_norms(np.array([len(members) for members in problem.lists])) / share
        before[always] = 1e-6


@pytest.mark.parametrize("full_rank", [True, False], ids=["", "dependent columns"])
@pytest.mark.parametrize("n", [24, 120], ids=["wide", "tall"])
@pytest.mark.parametrize("name", LOSSES)
def test_coordinates_of_the_rows_give_the_ridges_of_the_columns(name, n, full_rank, monkeypatch):
    monkeypatch.setattr("covey.search.table.ROWS_PER_COLUMN", np.inf)
    monkeypatch.setattr("covey.search.coordinates.TILE", 7 * n)
    problem = Problem(name, n, full_rank=full_rank)
    shares = np.random.default_rng(2).choice([1.0, 1e-2], len(problem.lists))
    columns = ScaledColumns(problem.table, problem.table.groups, problem.dense.penalties)
    rows = RowCoordinates(problem.table, problem.dense.penalties, shares)
    for training in problem.trainings:
        unit = columns.unit(training)
        assert rows.unit(training) == pytest.approx(unit, rel=1e-6)
        expected = columns.fits(training, [0.05 * unit, 2.0 * unit], [shares, shares])
        found = rows.fits(training, [0.05 * unit, 2.0 * unit], [])
        np.testing.assert_allclose(rows.predictors(training, found), columns.predictors(training, expected), atol=1e-6)
        for one, other in zip(found, expected, strict=True):
            here, there = rows.on_columns(one), columns.on_columns(other)
            predictions = [problem.X[:, at] @ coef.T + level for at, coef, level in (here, there)]
            np.testing.assert_allclose(predictions[0], predictions[1], atol=1e-6 * problem.posed.scale.max())


def test_what_is_affordable(monkeypatch):
    problem = Problem("binomial", 60)
    assert can_be_dense(problem.table)
    monkeypatch.setattr("covey.search.dense.MOST_WORK", 60 * int(problem.posed.ranks.sum()) ** 2 - 1)
    assert not can_be_dense(Problem("binomial", 60).table)
    assert can_be_dense(Problem("squared", 60).table)
    few_near(monkeypatch, 4)
    monkeypatch.setattr("covey.search.dense.MOST_ROWS", 59)
    assert not can_be_dense(Problem("squared", 60).table)


@pytest.mark.parametrize("spread", [1.0, 1e-9], ids=["everywhere", "in one fold"])
def test_second_moments_by_subtraction_keep_their_digits(spread):
    """A column that varies in one fold alone leaves no digits for the others: their moments are computed directly."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 12))
    y, groups = X[:, 0] + 2 * rng.standard_normal(90), Groups.from_size(1, 12)
    X[::3, 4] -= X[::3, 4].mean()
    X[np.arange(90) % 3 != 0, 4] *= spread
    found = searched(in_folds(X, y, groups, settings=Settings(dense=0.0)))
    columns = found.dense.plain
    for training in found.trainings:
        K, c = columns._second_moments(training.response, training.table)
        expected, product = columns._moments_of(training.response.weight, training.response)
        unit = np.sqrt(np.outer(expected.diagonal(), expected.diagonal()))
        assert (np.abs(K - expected) <= 1e-11 * unit).all()
        np.testing.assert_allclose(c, product, atol=1e-11)
