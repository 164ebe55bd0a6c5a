"""Finite far out; broadcasting; convexity and signs as properties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.losses import Binomial, Gamma, Huber, Multinomial, NegativeBinomial, Poisson, Quantile, Squared, Tweedie
from loss_cases import CASES, OF_MEANS

METHODS = ("value", "residual", "curvature", "deviance")
SCALAR = [name for name in CASES if not CASES[name].loss.vector]
VECTOR = [name for name in CASES if CASES[name].loss.vector]


@pytest.mark.parametrize("size", [1e3, 50.0, 0.0], ids=["1e3", "50", "0"])
@pytest.mark.parametrize("name", CASES)
def test_nothing_overflows_far_out(name, size):
    case = CASES[name]
    loss, y = case.loss, case.y
    eta = size * np.where(np.random.default_rng(0).random(case.shape) < 0.5, -1.0, 1.0)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        results = {method: getattr(loss, method)(y, eta) for method in METHODS}
        results["product"] = loss.curvature_product(y, eta, eta)
        results["mean"] = loss.inverse_link(eta)
        results["link"] = loss.link(y)
        results["score"] = loss.on(y, case.weight()).score(eta)
        assert np.isfinite(loss.on(y, case.weight()).total(eta))
    for method, result in results.items():
        assert np.isfinite(result).all(), method
    assert (results["curvature"] >= 0).all()
    assert (results["deviance"] >= 0).all()


@pytest.mark.parametrize("name", CASES)
def test_predictors_of_any_type_are_computed_with_in_double_precision(name):
    case = CASES[name]
    eta = np.clip(case.predictor(scale=3.0).round(), -5, 5)
    for method in METHODS:
        expected = getattr(case.loss, method)(case.y, eta)
        for other in (eta.astype(np.float32), eta.astype(int), eta.tolist()):
            found = getattr(case.loss, method)(case.y, other)
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == np.float64


@pytest.mark.parametrize("name", CASES)
def test_many_models_at_once(name):
    """A response against the predictors of several models, row by row and summed; also one predictor for all rows."""
    case, weight = CASES[name], CASES[name].weight()
    axis = -2 if case.loss.vector else -1
    predictors = [case.predictor(seed) for seed in range(4)]
    y, together = np.expand_dims(case.y, axis), np.stack(predictors, axis=axis)
    constant = predictors[0][0]
    for method in METHODS:
        function = getattr(case.loss, method)
        for k, eta in enumerate(predictors):
            np.testing.assert_array_equal(function(y, together)[:, k], function(case.y, eta))
        everywhere = function(case.y, np.broadcast_to(constant, case.shape))
        np.testing.assert_array_equal(function(case.y, constant), everywhere)
    many, one = case.loss.on(y, weight), case.loss.on(case.y, weight)
    np.testing.assert_allclose(many.total(together), [one.total(eta) for eta in predictors], rtol=1e-13)
    for k, eta in enumerate(predictors):
        np.testing.assert_array_equal(many.score(together)[:, k], one.score(eta))


@pytest.mark.parametrize("name", CASES)
def test_link_and_inverse_link_undo_each_other(name):
    case = CASES[name]
    eta = case.predictor()
    if case.loss.name == "multinomial":
        eta -= eta.mean(axis=1, keepdims=True)
    if case.loss.name == "multi-quantile":
        eta = np.sort(eta, axis=1)
    np.testing.assert_allclose(case.loss.link(case.loss.inverse_link(eta)), eta, atol=1e-12)


@pytest.mark.parametrize("name", OF_MEANS)
def test_the_residual_is_zero_at_the_mean(name):
    """An exponential family: the response equal to its mean is where the gradient vanishes."""
    case = CASES[name]
    eta = case.predictor()
    np.testing.assert_allclose(case.loss.residual(case.loss.inverse_link(eta), eta), 0, atol=1e-14)


PREDICTORS = st.floats(-1e3, 1e3)
RESPONSES = {
    Squared(): st.floats(-1e6, 1e6),
    Huber(1.5): st.floats(-1e6, 1e6),
    Quantile(0.8, 3.0): st.floats(-1e6, 1e6),
    Poisson(): st.one_of(st.just(0.0), st.integers(0, 10**9).map(float), st.floats(0, 1e12)),
    NegativeBinomial(0.5): st.one_of(st.just(0.0), st.integers(0, 10**9).map(float), st.floats(0, 1e12)),
    Tweedie(1.4): st.one_of(st.just(0.0), st.floats(1e-200, 1e140)),
    Gamma(): st.floats(1e-200, 1e140),
    Binomial(): st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1)),
}


@pytest.mark.parametrize("loss", RESPONSES, ids=lambda loss: loss.name)
@settings(max_examples=100, deadline=None, derandomize=True)
@given(data=st.data())
def test_convex_and_bounded_below(loss, data):
    y, low, high = data.draw(RESPONSES[loss]), data.draw(PREDICTORS), data.draw(PREDICTORS)
    low, high = sorted((low, high))
    assert loss.residual(y, low) >= loss.residual(y, high)  # the gradient rises
    middle = (loss.value(y, low) + loss.value(y, high)) / 2
    size = abs(loss.value(y, low)) + abs(loss.value(y, high)) + 1 + abs(y)
    assert loss.value(y, (low + high) / 2) <= middle + 1e-12 * size
    # the tangent at one point is below the value at the other
    tangent = loss.value(y, low) - loss.residual(y, low) * (high - low)
    size += abs(loss.residual(y, low) * (high - low))
    assert tangent <= loss.value(y, high) + 1e-12 * size
    assert loss.deviance(y, low) >= 0
    assert np.isfinite(loss.deviance(y, high))
    assert loss.curvature(y, low) >= 0


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    eta=st.lists(PREDICTORS, min_size=2, max_size=5),
    shift=PREDICTORS,
    share=st.lists(st.floats(0, 1), min_size=5, max_size=5),
)
def test_multinomial_ignores_a_common_shift(eta, shift, share):
    loss, eta = Multinomial(), np.array(eta)
    y = np.array(share[: len(eta)]) + 1e-3
    y /= y.sum()
    assert loss.value(y, eta + shift) == pytest.approx(loss.value(y, eta), abs=1e-10)
    np.testing.assert_allclose(loss.inverse_link(eta + shift), loss.inverse_link(eta), atol=1e-10)
    assert loss.residual(y, eta).sum() == pytest.approx(0, abs=1e-12)
    assert loss.deviance(y, eta) >= 0
    assert abs(loss.curvature_product(y, eta, np.ones_like(eta))).max() <= 1e-15
    assert 0 <= loss.curvature(y, eta) <= 0.5
