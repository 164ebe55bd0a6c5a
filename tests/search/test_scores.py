"""Scores of any loss: deviances of models on held-out rows, and deviances between models.

What held-out rows add to the deviance of survival times is checked in `tests/estimators/test_cox.py`.
"""

import numpy as np
import pytest
from scipy.special import expit, rel_entr, softmax

from covey.losses import Binomial, Multinomial, MultiSquared, Poisson, Squared
from covey.search.judge import Scores
from covey.search.observations import Observations

N, MODELS = 30, 4


def observed(loss, y, n_outputs=1):
    rng = np.random.default_rng(1)
    return Observations(loss, y, rng.uniform(0.5, 2.0, N), 0.3 * rng.standard_normal((N, n_outputs)), np.ones(N))


def scores_of(response):
    """All rows held out."""
    return Scores(response, np.ones(N, dtype=bool))


def table(n_outputs=1):
    return np.random.default_rng(2).standard_normal((N, n_outputs, MODELS))


def test_two_classes():
    response = observed(Binomial(), (np.arange(N) % 2).astype(float))
    scores, eta = scores_of(response), table()
    p = expit(eta[:, 0] + response.offset)
    y = response.y[:, None]
    log_loss = -(y * np.log(p) + (1 - y) * np.log(1 - p))
    np.testing.assert_allclose(scores.errors(eta), 2 * response.weight @ log_loss)
    q = p[:, [2]]
    divergence = 2 * (rel_entr(q, p) + rel_entr(1 - q, 1 - p))
    back = 2 * (rel_entr(p, q) + rel_entr(1 - p, 1 - q))
    expected = [response.weight @ divergence, response.weight @ back]
    np.testing.assert_allclose(scores.distances(eta, eta[..., 2]), expected, atol=1e-12)
    np.testing.assert_allclose(scores.distances(eta, eta[..., 2])[:, 2], 0, atol=1e-12)


def test_several_classes_are_counted_in_contrasts():
    response = observed(Multinomial(), np.eye(3)[np.arange(N) % 3], 3)
    scores, eta = scores_of(response), table(2)
    full = np.einsum("nam,ab->nmb", eta, response.contrasts) + response.offset[:, None, :]
    p = softmax(full, axis=-1)
    np.testing.assert_allclose(
        scores.errors(eta), 2 * response.weight @ -np.log((p * response.y[:, None, :]).sum(axis=-1))
    )
    divergence = [2 * rel_entr(*pair).sum(axis=-1) for pair in ((p[:, [1]], p), (p, p[:, [1]]))]
    np.testing.assert_allclose(scores.distances(eta, eta[..., 1]), response.weight @ divergence, atol=1e-12)


def test_counts():
    response = observed(Poisson(), np.arange(N) % 4.0)
    scores, eta = scores_of(response), table()
    means = np.exp(eta[:, 0] + response.offset)
    first, apart = means[:, [0]], means - means[:, [0]]
    divergence = [2 * (rel_entr(first, means) + apart), 2 * (rel_entr(means, first) - apart)]
    np.testing.assert_allclose(scores.distances(eta, eta[..., 0]), response.weight @ divergence, atol=1e-10)


@pytest.mark.parametrize("outputs", [1, 2])
def test_squared_loss(outputs):
    y = np.random.default_rng(0).standard_normal((N, outputs))
    response = observed(Squared(), y[:, 0]) if outputs == 1 else observed(MultiSquared(), y, outputs)
    scores, eta = scores_of(response), table(outputs)
    residuals = y[:, :, None] - eta - response.offset[:, :, None]
    np.testing.assert_allclose(scores.errors(eta), np.einsum("n,nom->m", response.weight, residuals**2))
    apart = eta - eta[..., [3]]
    np.testing.assert_allclose(
        scores.distances(eta, eta[..., 3]), [np.einsum("n,nom->m", response.weight, apart**2)] * 2, atol=1e-12
    )
    assert scores.weight == pytest.approx(response.weight.sum())
