"""Rough fits of many models at once: near the minima of all of them, or said not to be."""

import numpy as np
import pytest

from covey.search import rough
from covey.search.newton import ROUGH, minimise
from covey.search.rough import ModelSet, in_batches, minimise_together
from search.test_newton import K, draw, posed

SETS = [np.arange(K + 1), np.array([0, 1, 2]), np.array([0, 3])]
RIDGES = [0.0, 0.03, 1.0]


def fitted(name, y, A, start=None, sets=SETS, ridges=RIDGES):
    """All ridges on all sets: the coefficients, whether they are done, and for each model its columns and ridge."""
    response, M = posed(name, y), np.diag([0.0] + [1.0] * (A.shape[1] - 1))
    models = [(columns, ridge) for columns in sets for ridge in ridges]
    starts = np.zeros((A.shape[1], len(models)))
    starts[0] = response.null
    for i, (columns, _) in enumerate(models if start is not None else []):
        starts[columns, i] = start
    alike = [
        ModelSet(columns, np.arange(i * len(ridges), (i + 1) * len(ridges)), M[np.ix_(columns, columns)])
        for i, columns in enumerate(sets)
    ]
    done = np.zeros(len(models), dtype=bool)
    for some in in_batches(alike, len(y)):
        done |= minimise_together(response, A, starts, some, M, np.array([ridge for _, ridge in models]))
    return response, M, starts, done, models


@pytest.mark.parametrize("start", [None, 2.0], ids=["null model", "far away"])
@pytest.mark.parametrize("strength", [0.7, 4.0])
@pytest.mark.parametrize("name", ["huber", "quantile", "poisson", "gamma", "binomial"])
def test_models_that_are_done_are_near_their_minimum(name, strength, start):
    A, y = draw(name, seed=13, strength=strength)
    response, M, coefs, done, models = fitted(name, y, A, start)
    if start is None and strength < 1:
        assert done.mean() > 0.7
    for coef, is_done, (columns, ridge) in zip(coefs.T[:, :, None], done, models, strict=True):
        assert not np.delete(coef, columns).any()
        if is_done:
            P = ridge * M[np.ix_(columns, columns)]
            best = minimise(response, A[:, columns], np.zeros((len(columns), 1)), P)
            least = response.total(best.eta) + 0.5 * float((best.coef * (P @ best.coef)).sum())
            excess = response.total(A @ coef) + 0.5 * float((coef[columns] * (P @ coef[columns])).sum()) - least
            assert -1e-14 * abs(least) - 1e-12 <= excess <= ROUGH * response.scale(response.total(best.eta))


@pytest.mark.parametrize("slope", [0.0, 10.0, 40.0])
def test_a_minimum_at_infinity_is_not_taken_for_one_that_was_reached(slope):
    """Far on the way to it the gradient is small, and one more step promises next to nothing."""
    rng = np.random.default_rng(0)
    A = np.column_stack([np.ones(60), rng.standard_normal((60, 2))])
    y = (A[:, 1] > 0).astype(float)
    A[:, 1] += np.sign(A[:, 1])
    start = np.array([0.0, slope])
    response, _, _, done, _ = fitted("binomial", y, A, start, sets=[np.array([0, 1])])
    assert not done[0]
    for rough_ in (False, True):
        assert minimise(response, A[:, :2], start[:, None], rough=rough_).status == "separated"
    assert fitted("binomial", y, A, sets=[np.array([0, 2])])[3].all()


@pytest.mark.parametrize("name", ["poisson", "binomial"])
def test_batches_make_no_difference(name, monkeypatch):
    A, y = draw(name, seed=3, strength=0.7)
    together = fitted(name, y, A)[2]
    monkeypatch.setattr(rough, "MOST_NUMBERS", 1)
    np.testing.assert_allclose(fitted(name, y, A)[2], together, rtol=0, atol=1e-10)
