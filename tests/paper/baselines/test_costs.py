"""The regularisers that weight decay induces: trained networks against the predicted cost."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from covey.datasets import make_group_sparse
from covey.paper.baselines import (
    ConvolutionalNetwork,
    convolve_kernels,
    diagonal_cost,
    group_quasi_norm,
    grouped_cost,
    least_nuclear_norm,
    nuclear_regression,
)
from covey.paper.baselines.weight_decay import spread_kernels
from covey.paper.dynamics import diagonal_descent, plain_descent


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_grouped_cost_is_the_least_over_magnitudes(depth):
    norm = 2.7
    least = minimize_scalar(lambda a: a + norm**2 * a ** (-depth), bounds=(1e-3, 100), method="bounded").fun
    assert grouped_cost([norm, 0, 0], [0, 0, 0], depth) == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_diagonal_cost_is_the_least_over_factors(depth):
    w, v = 1.7, np.linspace(-3, 3, 60_001)
    u = np.cbrt(w + v**3) if depth == 3 else np.sqrt(w + v**2) if depth == 2 else w + v
    assert diagonal_cost([w], depth) == pytest.approx(np.min(u**2 + v**2), rel=1e-4)


def test_group_quasi_norm_of_one_group_and_of_singletons():
    w = np.array([3.0, -4.0])
    assert group_quasi_norm(w, [0, 0], 1) == pytest.approx(5)
    assert group_quasi_norm(w, 1, 0.5) == pytest.approx(np.sqrt(3) + 2)


def test_weight_decay_on_the_grouped_network_reaches_the_quasi_norm():
    data = make_group_sparse(40, 20, 4, active=2, values=1.0, sigma=0.1, random_state=0)
    path = plain_descent(
        data.X, data.y, 4, init_scale=0.5, start="aligned", weight_decay=0.05, n_steps=20_000, record_every=20_000
    )
    trained = np.sum(path.u[-1] ** 2) + np.sum(path.v[-1] ** 2)
    assert trained == pytest.approx(grouped_cost(path.w[-1], 4), rel=1e-6)


def test_weight_decay_on_the_diagonal_network_is_the_lasso_cost():
    data = make_group_sparse(40, 20, 1, active=4, values=1.0, sigma=0.1, random_state=0)
    path = diagonal_descent(
        data.X, data.y, init_scale=0.5, step_size=0.05, weight_decay=0.1, n_steps=20_000, record_every=20_000
    )
    trained = np.sum(path.u[-1] ** 2) + np.sum(path.v[-1] ** 2)
    assert trained == pytest.approx(diagonal_cost(path.w[-1]), rel=1e-6)


def test_spread_is_the_adjoint_of_convolve():
    rng = np.random.default_rng(0)
    Z, q = rng.standard_normal((3, 8)), rng.standard_normal(8)
    assert convolve_kernels(Z) @ q == pytest.approx(np.sum(Z * spread_kernels(q, 3)))
    np.testing.assert_allclose(convolve_kernels(spread_kernels(q, 3)), 3 * q)


def test_nuclear_norm_between_its_two_closed_forms():
    w = np.random.default_rng(1).standard_normal(12)
    ends = {1: np.linalg.norm(w), 12: np.abs(np.fft.fft(w)).sum() / 12}
    for K in (1, 2, 3, 5, 12):
        least = least_nuclear_norm(w, K, tol=1e-8)
        assert least.gap <= 1.01e-8 * least.value
        np.testing.assert_allclose(convolve_kernels(least.Z), w, atol=1e-9)
        if K in ends:
            assert least.value == pytest.approx(ends[K], rel=1e-6)


def test_nuclear_norm_is_a_norm():
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((2, 10))
    norm = {name: least_nuclear_norm(w, 3).value for name, w in {"a": a, "b": b, "sum": a + b, "twice": 2 * a}.items()}
    assert norm["sum"] <= norm["a"] + norm["b"] + 1e-6
    assert norm["twice"] == pytest.approx(2 * norm["a"], rel=1e-6)
    assert least_nuclear_norm(np.zeros(5), 2).value == 0


def test_trained_convolutional_network_solves_the_convex_programme():
    data = make_group_sparse(30, 16, 4, active=1, values=1.0, sigma=0.1, random_state=3)
    trained = ConvolutionalNetwork(3, weight_decay=0.05).fit(data.X, data.y, random_state=0)
    predicted = nuclear_regression(data.X, data.y, 3, 0.05)
    assert predicted.gap <= 1e-8
    assert trained.objective == pytest.approx(predicted.value, rel=1e-6)
    assert trained.cost == pytest.approx(2 * least_nuclear_norm(trained.coef, 3).value, rel=1e-4)
    np.testing.assert_allclose(trained.coef, convolve_kernels(predicted.Z), atol=1e-3)


def test_bad_kernel_sizes():
    with pytest.raises(ValueError, match="at most the 4 columns"):
        least_nuclear_norm(np.ones(4), 5)
    with pytest.raises(ValueError, match="1 dimension"):
        least_nuclear_norm(np.ones((2, 2)), 1)
