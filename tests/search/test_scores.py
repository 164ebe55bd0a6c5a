"""Judging rows of any loss: deviances of models, and deviances between them."""

import numpy as np
import pytest
from covey.limit.response import Response
from scipy.special import expit, rel_entr, softmax

from covey.losses import Binomial, Multinomial, MultiSquared, Poisson
from covey.search.judge import LossScores, SquaredScores

N, MODELS = 30, 4


def rows(loss, y, n_outputs=1):
    rng = np.random.default_rng(1)
    return Response(loss, y, rng.uniform(0.5, 2.0, N), 0.3 * rng.standard_normal((N, n_outputs)))


def table(n_outputs=1):
    return np.random.default_rng(2).standard_normal((N, n_outputs, MODELS))


def test_two_classes():
    response = rows(Binomial(), (np.arange(N) % 2).astype(float))
    scores, eta = LossScores(response), table()
    p = expit(eta[:, 0] + response.offset)
    y = response.y[:, None]
    log_loss = -(y * np.log(p) + (1 - y) * np.log(1 - p))
    np.testing.assert_allclose(scores.errors(eta), 2 * response.weight @ log_loss)
    q = p[:, [2]]
    divergence = 2 * (rel_entr(q, p) + rel_entr(1 - q, 1 - p))
    np.testing.assert_allclose(scores.distances(eta, eta[..., 2]), response.weight @ divergence, atol=1e-12)
    assert scores.distances(eta, eta[..., 2])[2] == pytest.approx(0, abs=1e-12)


def test_several_classes_are_counted_in_contrasts():
    response = rows(Multinomial(), np.eye(3)[np.arange(N) % 3], 3)
    scores, eta = LossScores(response), table(2)
    full = np.einsum("nam,ab->nmb", eta, response.contrasts) + response.offset[:, None, :]
    p = softmax(full, axis=-1)
    np.testing.assert_allclose(
        scores.errors(eta), 2 * response.weight @ -np.log((p * response.y[:, None, :]).sum(axis=-1))
    )
    divergence = 2 * rel_entr(p[:, [1]], p).sum(axis=-1)
    np.testing.assert_allclose(scores.distances(eta, eta[..., 1]), response.weight @ divergence, atol=1e-12)


def test_counts():
    response = rows(Poisson(), np.arange(N) % 4.0)
    scores, eta = LossScores(response), table()
    means = np.exp(eta[:, 0] + response.offset)
    divergence = 2 * (rel_entr(means[:, [0]], means) - means[:, [0]] + means)
    np.testing.assert_allclose(scores.distances(eta, eta[..., 0]), response.weight @ divergence, atol=1e-10)


def test_several_responses_are_squared_loss_added_up():
    y = np.random.default_rng(0).standard_normal((N, 2))
    response = rows(MultiSquared(), y, 2)
    scores, eta = LossScores(response), table(2)
    plain = SquaredScores(response.total_weight)
    root = np.sqrt(response.weight)[:, None]
    parts = [root * (y[:, [k]] - eta[:, k] - response.offset[:, [k]]) for k in range(2)]
    np.testing.assert_allclose(scores.errors(eta), sum(plain.errors(E) for E in parts))
    np.testing.assert_allclose(
        scores.distances(eta, eta[..., 3]), sum(plain.distances(E, E[:, 3]) for E in parts), atol=1e-12
    )
