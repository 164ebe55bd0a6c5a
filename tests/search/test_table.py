"""The table of near groups: compressed rows have the second moments of X, and change neither path nor score."""

from itertools import pairwise

import numpy as np
import pytest

from covey import GroupSparseRegressor
from covey.losses import Binomial, MultiSquared, Squared
from covey.search import table as tables
from covey.search.paths import Paths
from covey.search.table import Table
from estimator_problems import noisy_problem
from search.limit_reference import mixed_problem
from search.posing import few_near, in_folds, on_all_rows, searched, verdict_of


def both(monkeypatch, make):
    """What a function gives with the rows of X, and with compressed ones."""
    monkeypatch.setattr(tables, "MOST_ROWS", 0)
    found = []
    for share, compressed in ((np.inf, False), (0.0, True)):
        monkeypatch.setattr(tables, "ROWS_PER_COLUMN", share)
        found.append(make(compressed))
    return found


def compressed_table(posed, expected):
    table = Table(posed)
    assert table.compressed == expected
    return table


def posed_problem(n=90, outputs=1, **options):
    X, y, lists = mixed_problem(n)
    if outputs > 1:
        y = np.column_stack([y, X[:, 3] - 0.2 * y])
    weight = np.random.default_rng(1).integers(0, 3, n).astype(float)
    return in_folds(X, y, lists, weight=weight, loss=Squared() if outputs == 1 else MultiSquared(), **options)


def moments(table, part):
    rows = np.flatnonzero(table.labels == part)
    response = table.response.rows(rows)
    A = np.column_stack([table.Z[rows], table.extras[rows], response.one, response.y])
    return A.T @ (response.weight[:, None] * A)


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("factors", [0, 2])
def test_second_moments_of_every_part(factors, outputs, monkeypatch):
    posed = posed_problem(outputs=outputs, factors=factors)
    plain, small = both(monkeypatch, lambda compressed: compressed_table(posed, compressed))
    assert len(small.labels) < len(plain.labels)
    for part in range(3):
        expected = moments(plain, part)
        np.testing.assert_allclose(moments(small, part), expected, atol=1e-12 * np.abs(expected).max())
    for split in posed.splits:
        assert small.on_split(split)[0].total_weight == pytest.approx(plain.on_split(split)[0].total_weight)


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("options", [{}, {"factors": 2}, {"fit_intercept": False}, {"standardize": "column"}], ids=str)
@pytest.mark.parametrize("far", [False, True], ids=["all near", "most far"])
def test_paths(far, options, outputs, monkeypatch):
    if far:
        few_near(monkeypatch, 4, 3, growth=1)
    posed = posed_problem(outputs=outputs, **options)

    def run(compressed):
        paths = Paths(compressed_table(posed, compressed), [[], [3], [], [5, 2]])
        paths.advance(5)
        return paths

    plain, small = both(monkeypatch, run)
    assert plain.table.all_near != far
    for split in range(4):
        assert small.groups(split) == plain.groups(split)
        np.testing.assert_allclose(small.paths[split].times, plain.paths[split].times, rtol=1e-8)
        one, other = plain.knots(split), small.knots(split)
        np.testing.assert_allclose(other.W, one.W, atol=1e-7)
        np.testing.assert_allclose(other.levels, one.levels, atol=1e-8)


@pytest.mark.parametrize("noise", ["weak", "strong"])
def test_scores(noise, monkeypatch):
    X, y, groups = noisy_problem(noise, n=120, n_groups=12)

    def run(compressed):
        found = searched(in_folds(X, y, groups), [1])
        assert found.table.compressed == compressed
        return verdict_of(found)

    plain, small = both(monkeypatch, run)
    assert small.recipes == plain.recipes
    for name in ("errors", "by_split", "sizes", "weights"):
        np.testing.assert_allclose(getattr(small, name), getattr(plain, name), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(small.standard_errors, plain.standard_errors, atol=1e-6)
    assert small.best == plain.best


def test_groups_that_become_near_stand_behind_the_others(monkeypatch):
    """Whether a table has grown or was read at once, it is the same."""
    X, y, lists = mixed_problem(90)
    few_near(monkeypatch, 4)
    monkeypatch.setattr(tables, "MOST_ROWS", 0)
    for loss, share in ((Squared(), np.inf), (Squared(), 0.0), (Binomial(), 1.5)):
        monkeypatch.setattr(tables, "ROWS_PER_COLUMN", share)
        posed = on_all_rows(X, (y > y.mean()).astype(float), lists, loss=loss)
        grown = Table(posed)
        first, version = grown.groups.copy(), grown.version
        new = np.setdiff1d(np.arange(posed.ranks.size), first)
        assert new.size > 1
        changed = grown.add(np.array([new[1], first[0], new[0], new[1]]))
        assert grown.groups.tolist() == [*first, new[1], new[0]]
        assert changed == grown.compressed == (grown.version > version)
        Z = tables.working_columns(posed, grown.groups)
        for i, (a, b) in enumerate(pairwise(grown.starts)):
            found, expected = grown.block(i).T @ grown.block(i), Z[:, a:b].T @ Z[:, a:b]
            np.testing.assert_allclose(found, expected / (90 if grown.compressed else 1), atol=1e-9)
        assert not grown.add(first)


@pytest.mark.parametrize("loss", [Squared(), MultiSquared()], ids=lambda loss: loss.name)
def test_gradient_norms_and_predictors_are_products_written_out(loss):
    posed = posed_problem(outputs=2 if loss.vector else 1)
    table, rng = Table(posed), np.random.default_rng(0)
    m = posed.response.n_outputs
    scores = rng.standard_normal((len(table.labels), 3, m))
    norms = table.gradient_norms(scores)
    for k in range(3):
        for i in range(table.groups.size):
            assert norms[k, i] == pytest.approx(np.linalg.norm(table.block(i).T @ scores[:, k]))
    columns, which = table.columns([2, 0]), np.array([1, 4, 2])
    W = rng.standard_normal((5, m, columns.size))
    found = table.predictors(which, columns, W)
    for model in range(5):
        np.testing.assert_allclose(found[:, :, model], table.Z[which][:, columns] @ W[model].T, atol=1e-12)


def test_too_many_rows_for_a_loss_that_needs_them_are_refused(monkeypatch):
    X, y, lists = mixed_problem(90)
    monkeypatch.setattr(tables, "HELD", 1000)
    with pytest.raises(ValueError, match=r"binomial loss keeps columns .* 90 rows; at most 20"):
        Table(on_all_rows(X, (y > y.mean()).astype(float), lists, loss=Binomial()))
    assert Table(on_all_rows(X, y, lists)).compressed


def test_groups_that_became_near_stay_near_when_rows_are_dealt_again(monkeypatch):
    few_near(monkeypatch, 12, growth=3)
    before, deal = [], Table.dealt
    monkeypatch.setattr(Table, "dealt", lambda self, parts: before.append(self) or deal(self, parts))
    rng = np.random.default_rng(3)
    X = rng.standard_normal((120, 200))
    GroupSparseRegressor().fit(X, X[:, :14] @ np.full(14, 0.4) + 2 * rng.standard_normal(120))
    assert before[0].groups.size < before[-1].groups.size < 200
    assert all(set(one.groups) <= set(other.groups) for one, other in pairwise(before))
