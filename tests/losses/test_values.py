"""Values, deviances and means beside those of statsmodels, and losses beside each other."""

import numpy as np
import pytest

from covey.losses import Huber, Loss, MultiQuantile, NegativeBinomial, Quantile, Tweedie
from covey.losses.tweedie import log_density
from loss_cases import CASES, OF_MEANS


def case_of(name, seed=0):
    case = CASES[name]
    return case.loss, case.y, case.predictor(seed), case.weight()


def test_the_deviance_of_huber_does_not_grow_beyond_its_limit():
    plain, limited, y = Huber(1.0), Huber(1.0, 5.0), np.array([0.5, -3.0, 5.0, -6.0, 1e12])
    expected = plain.deviance(np.clip(y, -5, 5), np.zeros(5))
    np.testing.assert_allclose(limited.deviance(y, np.zeros(5)), expected)
    np.testing.assert_array_equal(limited.value(y, np.zeros(5)), plain.value(y, np.zeros(5)))  # stays convex


@pytest.mark.parametrize("name", OF_MEANS)
def test_deviance_is_twice_the_value_above_the_saturated_model(name):
    loss, y, eta, _ = case_of(name)
    # the link is finite at the edges of the domain, where the saturated model is not
    saturated = loss.value(y, loss.link(y))
    np.testing.assert_allclose(loss.deviance(y, eta), 2 * (loss.value(y, eta) - saturated), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(Loss.deviance(loss, y, eta), loss.deviance(y, eta), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(loss.deviance(y, loss.link(y)), 0, atol=1e-12 * max(1.0, np.abs(y).max()))


@pytest.mark.parametrize("name", ["negative-binomial", "tweedie", "tweedie-low"])
def test_deviance_next_to_the_response_is_a_square(name):
    """Its curvature times the squared distance, without the digits that a difference of large numbers would lose."""
    loss, y, _, _ = case_of(name)
    y = y[y > 0]
    d = 1e-6
    np.testing.assert_allclose(loss.deviance(y, np.log(y) + d), loss.curvature(y, np.log(y)) * d**2, rtol=1e-5)


@pytest.mark.parametrize("name", ["poisson", "poisson-amounts", "gamma", "gamma-units"])
def test_deviance_next_to_the_response_keeps_its_digits(name):
    """``2 (y log(y / mean) - y + mean)`` is about ``y (log(y / mean))^2``, and half of its digits would be lost."""
    loss, y, _, _ = case_of(name)
    y = y[y > 0]
    d, factor = (1e-5, y) if loss.name == "poisson" else (-1e-5, 1.0)
    series = d**2 + d**3 / 3 + d**4 / 12
    np.testing.assert_allclose(loss.deviance(y, np.log(y) + 1e-5), factor * series, rtol=1e-7)


FAMILIES = {
    "squared": "Gaussian",
    "poisson": "Poisson",
    "poisson-amounts": "Poisson",
    "negative-binomial": "NegativeBinomial",
    "tweedie": "Tweedie",
    "gamma": "Gamma",
    "binomial": "Binomial",
    "binomial-proportions": "Binomial",
}


@pytest.mark.parametrize("name", FAMILIES)
def test_deviance_and_likelihood_are_those_of_statsmodels(name):
    api = pytest.importorskip("statsmodels.api")
    given = {
        "gamma": {"link": api.families.links.Log()},
        "negative-binomial": {"alpha": 0.7},
        "tweedie": {"var_power": 1.5, "link": api.families.links.Log()},
    }
    family = getattr(api.families, FAMILIES[name])(**given.get(name, {}))
    loss, y, eta, weight = case_of(name)
    mean = family.link.inverse(eta)
    np.testing.assert_allclose(loss.inverse_link(eta), mean, rtol=1e-12)
    np.testing.assert_allclose(loss.link(mean), family.link(mean), rtol=1e-12)
    assert loss.deviance(y, eta) @ weight == pytest.approx(family.deviance(y, mean, freq_weights=weight), rel=1e-10)
    if name == "tweedie":  # statsmodels approximates its likelihood
        return
    # likelihoods agree up to what does not depend on the predictor
    start = np.zeros_like(eta)
    likelihoods = [family.loglike(y, family.link.inverse(at), freq_weights=weight) for at in (start, eta)]
    rise = loss.on(y, weight).total(eta) - loss.on(y, weight).total(start)
    assert rise == pytest.approx(likelihoods[0] - likelihoods[1], rel=1e-9)


@pytest.mark.parametrize(("power", "dispersion", "mean"), [(1.1, 0.5, 2.0), (1.9, 0.3, 3.0), (1.5, 1e-3, 2.0)])
def test_the_density_of_amounts_has_its_mass_mean_and_variance(power, dispersion, mean):
    """The probability of zero and the integral over all amounts are one together, for narrow bells and for wide."""
    sd = np.sqrt(dispersion * mean**power)
    y = np.linspace(0.0, mean + 60 * sd, 50_001)
    density = np.exp(log_density(y, np.full(y.shape, mean), power, dispersion))
    zero, density[0] = density[0], density[1]
    moments = [np.trapezoid(density * y**k, y) for k in range(3)]
    assert zero + moments[0] == pytest.approx(1, rel=1e-3)
    assert moments[1] == pytest.approx(mean, rel=1e-4)
    assert moments[2] - moments[1] ** 2 == pytest.approx(sd**2, rel=1e-3)
    # its logarithm depends on the mean as the loss says
    means = np.array([mean, 1.3 * mean])
    rise = np.diff(log_density(np.full(2, mean), means, power, dispersion))[0]
    value = Tweedie(power).value(np.full(2, mean), np.log(means))
    assert rise == pytest.approx(-np.diff(value)[0] / dispersion, rel=1e-8)


def test_overdispersion_is_that_of_greatest_likelihood():
    stats = pytest.importorskip("scipy.stats")
    y, eta, weight = CASES["negative-binomial"].y, CASES["negative-binomial"].predictor(), CASES["gamma"].weight()
    found = NegativeBinomial().scaled_to(y, eta, weight).overdispersion

    def likelihood(a):
        return weight @ stats.nbinom(1 / a, 1 / (1 + a * np.exp(eta))).logpmf(y)

    assert likelihood(found) > max(likelihood(found * 1.001), likelihood(found / 1.001))
    # counts that vary less than Poisson counts
    y = np.array([2.0, 3.0, 4.0] * 5)
    for less in (y, y[::-1], np.full(15, 3.0)):
        assert NegativeBinomial().scaled_to(less, np.full(15, np.log(3)), np.ones(15)).overdispersion == 1e-6


@pytest.mark.parametrize("name", ["quantile", "multi-quantile"])
def test_the_smoothed_pinball_loss_is_close_to_the_pinball_loss(name):
    loss, y, eta, _ = case_of(name)
    levels = np.array(getattr(loss, "levels", [0.3]))
    r = (y - eta).reshape(len(y), -1)
    pinball = np.where(r > 0, levels * r, (levels - 1) * r).sum(axis=1)
    np.testing.assert_allclose(loss.deviance(y, eta), 2 * pinball, rtol=1e-12)
    above = loss.value(y, eta) - pinball
    assert (above > 0).all()
    assert (above <= 0.1 * loss.scale * np.log(2) * levels.size * (1 + 1e-9)).all()


def test_several_quantiles_are_the_sum_of_single_ones():
    loss, y, eta, weight = case_of("multi-quantile")
    singles = [Quantile(level, loss.scale) for level in loss.levels]
    for method in ("value", "deviance"):
        expected = sum(getattr(one, method)(y[:, k], eta[:, k]) for k, one in enumerate(singles))
        np.testing.assert_allclose(getattr(loss, method)(y, eta), expected, rtol=1e-12)
    expected = np.column_stack([one.residual(y[:, k], eta[:, k]) for k, one in enumerate(singles)])
    np.testing.assert_allclose(loss.residual(y, eta), expected, rtol=1e-12)
    np.testing.assert_allclose(
        loss.null(y, weight, eta), [one.null(y[:, k], weight, eta[:, k]) for k, one in enumerate(singles)]
    )
    bounds = np.column_stack([one.bounding_curvature(y[:, k], eta[:, k]) for k, one in enumerate(singles)])
    np.testing.assert_allclose(loss.bounding_curvature(y, eta), bounds.max(axis=1), rtol=1e-12)


def test_the_parabola_of_the_pinball_loss_lies_above_it():
    loss, y, eta, _ = case_of("quantile")
    for other in (eta - 3, eta - 0.01, eta + 0.5, eta + 20):
        step = other - eta
        parabola = loss.value(y, eta) - loss.residual(y, eta) * step + loss.bounding_curvature(y, eta) * step**2 / 2
        assert (loss.value(y, other) <= parabola + 1e-12).all()


@pytest.mark.parametrize("level", [0.1, 0.5, 0.8])
def test_the_null_model_is_a_quantile_and_the_scale_is_robust(level):
    y = np.random.default_rng(0).standard_normal(5000)
    assert Quantile(level).null(y, np.ones(5000)) == pytest.approx(np.quantile(y, level), abs=0.05)
    scaled = Quantile(level).scaled_to(y, np.quantile(y, level), np.ones(5000))
    assert scaled.scale == pytest.approx(1, abs=0.05)
    many = MultiQuantile().scaled_to(np.repeat(y[:, None], 3, axis=1), np.quantile(y, [0.1, 0.5, 0.9]), np.ones(5000))
    assert many.scale == pytest.approx(scaled.scale, rel=1e-9)
    # in other units, and with wild values
    y[:50] = 1e9
    assert Quantile(level).scaled_to(1e-80 * y, 0.0, np.ones(5000)).scale == pytest.approx(1e-80, rel=0.1)


def test_the_difference_of_two_quantile_models_has_its_standard_error():
    """Twice the root of the dispersion times the distance, over many draws of the noise."""
    rng = np.random.default_rng(0)
    for loss in (Quantile(0.8, 1.0), MultiQuantile((0.2, 0.5, 0.9), 1.0)):
        levels = np.array(getattr(loss, "levels", [0.8]))
        at = np.quantile(rng.standard_normal(100_000), levels)
        y = np.repeat(rng.standard_normal((40_000, 1)), levels.size, axis=1)
        eta = at + 0.02 * np.arange(1, levels.size + 1)
        if not loss.vector:
            y, at, eta = y[:, 0], at[0], eta[0]
        spread = (
            loss.deviance(y, np.broadcast_to(eta, y.shape)) - loss.deviance(y, np.broadcast_to(at, y.shape))
        ).std()
        said = 2 * np.sqrt(loss.dispersion(1.0) * loss.distance(at, eta))
        assert said == pytest.approx(spread, rel=0.05)
