"""Reweighted ridge regressions against the same written out in full."""

import numpy as np
import pytest

from covey.engine import reweighting
from covey.engine.reweighting import Reweighting
from covey.engine.working_rows import WorkingRows
from covey.preprocess import prepare
from engine_problems import LAYOUTS, make

PENALTIES, ROUNDS = (0.01, 0.3), 3


def problem_of(n, weight=None):
    """Forty groups in 120 columns, one of them constant."""
    X, y = make(LAYOUTS["unequal"], n=n, noise=5.0)
    X[:, :1] = 7.0
    problem, _ = prepare(X, y, LAYOUTS["unequal"], standardize="block", sample_weight=weight)
    return problem, np.random.default_rng(1).uniform(0.1, 1.0, 40)


def written_out(problem, norms, penalty, rounds):
    """``(Z' Q Z + penalty diag(1 / norm)) w = Z' Q y`` on groups that are there, again and again."""
    Z = problem.working_columns(np.arange(40))
    label = np.repeat(np.arange(40), problem.ranks)
    own = norms[label] > 0
    w = np.zeros(label.size)
    for _ in range(rounds):
        A = Z[:, own].T @ (problem.q[:, None] * Z[:, own]) + penalty * np.diag(1.0 / norms[label[own]])
        w[own] = np.linalg.solve(A, Z[:, own].T @ (problem.q * problem.response))
        norms = np.sqrt(np.bincount(label, w * w, 40))
    return w


@pytest.mark.parametrize("left_out", [[], [3, 17, 18]])
@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("n", [50, 300])
def test_the_systems_by_rows_or_by_columns(n, weighted, held, left_out):
    problem, norms = problem_of(n, np.arange(n) % 3.0 if weighted else None)
    norms[left_out] = 0.0
    start = Reweighting(problem, norms, WorkingRows.of(problem) if held else None)
    assert start.rows.wide == (n == 50)
    found = start.fit(PENALTIES, ROUNDS)
    for w, penalty in zip(found, PENALTIES, strict=True):
        expected = written_out(problem, norms, penalty, ROUNDS)
        np.testing.assert_allclose(w, expected, atol=1e-9 * np.abs(expected).max())
        np.testing.assert_array_equal(start.fit([penalty], ROUNDS)[0], w)


def test_only_the_strongest_groups_take_part(monkeypatch):
    problem, norms = problem_of(50)
    monkeypatch.setattr(reweighting, "MOST_COLUMNS", 0.2)
    start = Reweighting(problem, norms)
    assert 0 < start.columns.size <= 10
    assert norms[start.which].min() >= np.delete(norms, [0, *start.which]).max()
    weak = np.setdiff1d(np.arange(problem.n_columns), start.columns)
    assert not start.fit(PENALTIES, ROUNDS)[:, weak].any()


def test_a_model_without_groups_stays_empty():
    problem, norms = problem_of(50)
    assert not Reweighting(problem, np.zeros_like(norms), WorkingRows.of(problem)).fit(PENALTIES, ROUNDS).any()


def test_a_huge_system():
    """Where the penalty is lost in rounding there is an answer still."""
    problem, norms = problem_of(50)
    w = Reweighting(problem, 1e18 * norms).fit([1e-2], 1)
    assert np.isfinite(w).all()
