"""The best constant: a zero of the gradient, and no worse than a minimiser that knows nothing of losses."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from covey import GroupSparseRegressor
from covey.losses import Binomial, Huber, Loss, Multinomial, MultiSquared, Poisson, Squared
from covey.losses.constant import scalar_constant
from covey.losses.responses import weighted_median
from loss_cases import CASES

OFFSETS = {"none": 0.0, "small": 1.0, "large": 30.0}


def offset_of(case, kind):
    return None if kind == "none" else case.predictor(seed=9, scale=OFFSETS[kind])


@pytest.mark.parametrize("kind", OFFSETS)
@pytest.mark.parametrize("name", CASES)
def test_no_constant_is_better(name, kind):
    case = CASES[name]
    loss, y, weight, offset = case.loss, case.y, case.weight(), offset_of(case, kind)
    base = np.zeros(case.shape) if offset is None else offset
    constant = loss.null(y, weight, offset)

    def total(c):
        return loss.on(y, weight).total(base + c)

    if loss.vector:
        assert constant.shape == (3,)
        brute = minimize(total, np.zeros(3), method="BFGS").x
        terms = loss.on(y, weight).score(base + constant)
        assert abs(terms.sum(axis=0)).max() <= 1e-12 * np.abs(terms).sum() + 1e-13
    else:
        assert isinstance(constant, float)
        near = np.linspace(constant - 50, constant + 50, 2001)
        best = near[np.argmin([total(c) for c in near])]
        brute = minimize_scalar(total, bounds=(best - 0.1, best + 0.1), method="bounded", options={"xatol": 1e-10}).x
        terms = loss.on(y, weight).score(base + constant)
        assert abs(terms.sum()) <= 1e-12 * np.abs(terms).sum() + 1e-13
    assert total(constant) <= total(brute) + 1e-12 * abs(total(brute))


@pytest.mark.parametrize("name", CASES)
def test_weights_are_repeated_rows(name):
    case = CASES[name]
    times = np.random.default_rng(0).integers(0, 4, len(case.y))
    offset = case.predictor(seed=9)
    weighted = case.loss.null(case.y, times.astype(float), offset)
    rows = np.repeat(np.arange(len(case.y)), times)
    repeated = case.loss.null(case.y[rows], np.ones(rows.size), offset[rows])
    np.testing.assert_allclose(weighted, repeated, atol=1e-12)
    np.testing.assert_allclose(case.loss.null(case.y, 1e-200 * times, offset), weighted, atol=1e-12)


@pytest.mark.parametrize("shift", [5.0, 900.0, -900.0])
@pytest.mark.parametrize("name", CASES)
def test_a_common_offset_is_taken_back(name, shift):
    case = CASES[name]
    weight, offset = case.weight(), case.predictor(seed=9)
    moved = 0.0 if case.loss.name == "multinomial" else shift  # where the common shift means nothing
    shifted = case.loss.null(case.y, weight, np.full(case.shape, shift))
    np.testing.assert_allclose(shifted, case.loss.null(case.y, weight) - moved, atol=1e-10)
    shifted = case.loss.null(case.y, weight, offset + shift)
    np.testing.assert_allclose(shifted, case.loss.null(case.y, weight, offset) - moved, atol=1e-10)


@pytest.mark.parametrize("units", [1e-120, 1.0, 1e120], ids=["1e-120", "1", "1e120"])
@pytest.mark.parametrize("threshold", [None, 0.7], ids=["scaled", "given"])
def test_huber_in_any_units(threshold, units):
    case = CASES["huber"]
    plain = Huber(threshold).null(case.y, case.weight(), case.predictor())
    loss = Huber(None if threshold is None else threshold * units)
    assert loss.null(units * case.y, case.weight(), units * case.predictor()) == pytest.approx(units * plain, rel=1e-10)


def test_huber_scale_is_the_median_of_the_rows_that_count():
    residuals, weight = np.array([-1.0, 2.0, 3.0, 100.0]), np.array([1.0, 1.0, 1.0, 0.0])
    assert Huber().scaled_to(residuals, 0.0, weight).threshold == pytest.approx(1.345 * 1.4826 * 2)
    assert Huber(0.3).scaled_to(residuals, 0.0, weight) == Huber(0.3)
    assert Huber().scaled_to(residuals, 0.0, 7 * weight) == Huber().scaled_to(residuals, 0.0, weight)


def test_weighted_median():
    values = np.random.default_rng(0).standard_normal(20)
    for n in (1, 2, 19, 20):
        assert weighted_median(values[:n], np.full(n, 0.1)) == np.median(values[:n])
    assert weighted_median(np.array([1.0, 2.0, 9.0, -5.0]), np.array([1.0, 2.0, 3.0, 0.0])) == 5.5


@pytest.mark.parametrize("start", [0.0, -2000.0], ids=["steep side", "flat side"])
def test_a_root_far_away_takes_few_steps(start):
    """Newton's method alone goes down an exponential in steps of one, and up it in a leap past everything."""
    calls = []

    def slope(c):
        calls.append(c)
        return 1e-250 - np.exp(min(c, 300.0))

    assert scalar_constant(slope, start) == pytest.approx(np.log(1e-250), rel=1e-14)
    assert len(calls) < 60


def test_huber_scale_where_most_residuals_are_zero():
    residuals = np.array([0.0, 0.0, 0.0, 0.0, 4.0, 4.0, 1e9])
    assert Huber().scaled_to(residuals, 0.0, np.ones(7)).threshold == pytest.approx(1.345 * 1.4826 * 4)
    assert Huber().scaled_to(np.zeros(4), 0.0, np.ones(4)).threshold == 1.345
    assert Huber().null(np.full(4, 2.5), np.ones(4)) == 2.5


@pytest.mark.parametrize("wild", [1e3, 1e12, 1e150])
def test_outliers_do_not_move_the_scale_and_the_limit_of_huber(wild):
    residuals, weight = np.linspace(-1, 1, 101), np.ones(101)
    clean = Huber().limited_to(residuals, weight).scaled_to(residuals, 0.0, weight)
    residuals[:20] = wild
    loss = Huber().limited_to(residuals, weight).scaled_to(residuals, 0.0, weight)
    assert clean.threshold <= loss.threshold < 1.5 * clean.threshold
    assert clean.limit <= loss.limit < 1.5 * clean.limit
    assert Huber(0.3, 5.0).limited_to(residuals, weight).scaled_to(residuals, 0.0, weight) == Huber(0.3, 5.0)


def test_the_limit_of_huber_is_that_of_most_rows_where_many_are_equal():
    residuals = np.concatenate([np.full(60, 1e-3), np.full(40, 100.0)])
    assert Huber().limited_to(residuals, np.ones(100)).limit > 100


@pytest.mark.parametrize(
    ("loss", "given", "message"),
    [
        (Poisson(), ([0.0, 0.0, 5.0], [1.0, 1.0, 0.0]), r"Every count is zero.*give rows with positive counts"),
        (Binomial(), (np.zeros(4), np.ones(4)), "Every row is of class 0.*give rows of the other class"),
        (Binomial(), (np.ones(4), np.ones(4)), "Every row is of class 1.*give rows of the other class"),
        (Multinomial(), (np.eye(3)[[0, 1, 1, 0]], np.ones(4)), r"No row is of class 2 .*leave its column out"),
        (Squared(), (np.ones(4), np.ones(4), np.ones(3)), r"offset has shape \(3,\), but the response has \(4,\)"),
        (MultiSquared(), (np.ones((3, 3)), np.ones(3), np.ones(3)), r"shape \(3,\), but the response has \(3, 3\)"),
        (Squared(), (np.ones(4), np.zeros(4)), "weight is zero in every row"),
    ],
)
def test_rows_without_a_null_model(loss, given, message):
    with pytest.raises(ValueError, match=message):
        loss.null(*map(np.asarray, given))


@dataclass(frozen=True)
class LogCosh(Loss):
    """A custom loss that leaves everything but the three functions to the base class."""

    name: ClassVar[str] = "log-cosh"

    def value(self, y, eta):
        return np.logaddexp(y - eta, eta - y) - np.log(2)

    def residual(self, y, eta):
        return np.tanh(y - eta)

    def curvature(self, y, eta):
        return 1 - np.tanh(y - eta) ** 2


@dataclass(frozen=True)
class TwoCosh(LogCosh):
    """The same for several outputs."""

    name: ClassVar[str] = "two-cosh"
    vector: ClassVar[bool] = True

    def value(self, y, eta):
        return super().value(y, eta).sum(axis=-1)

    def curvature(self, y, eta):
        return super().curvature(y, eta).mean(axis=-1)

    def curvature_product(self, y, eta, direction):
        return (1 - np.tanh(y - eta) ** 2) * direction


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_loss_of_ones_own_has_a_null_model(scale):
    loss, y = LogCosh(), scale * CASES["squared"].y
    weight, offset = CASES["squared"].weight(), scale * CASES["squared"].predictor()
    constant = loss.null(y, weight, offset)
    assert abs(weight @ np.tanh(y - offset - constant)) <= 1e-12 * weight @ abs(np.tanh(y - offset - constant))
    np.testing.assert_allclose(loss.deviance(y, offset), 2 * loss.value(y, offset))
    assert loss.dispersion(0.3) == 0.3
    np.testing.assert_array_equal(loss.check([1, 2, 3]), [1.0, 2.0, 3.0])


@dataclass(frozen=True)
class Scaled(LogCosh):
    """A loss with a scale that is found at a model."""

    width: float | None = None
    parameter: ClassVar[str] = "width"
    identity_link: ClassVar[bool] = True

    def value(self, y, eta):
        return self.known() ** 2 * super().value(y / self.known(), eta / self.known())

    def residual(self, y, eta):
        return self.known() * super().residual(y / self.known(), eta / self.known())

    def curvature(self, y, eta):
        return super().curvature(y / self.known(), eta / self.known())

    def estimate(self, y, eta, weight):
        return float(np.sqrt(np.average((y - eta) ** 2, weights=weight)))


@pytest.mark.parametrize("units", [1e-100, 1.0, 1e100])
def test_a_loss_of_ones_own_may_have_a_parameter(units):
    y = units * CASES["squared"].y
    assert 0 < Scaled().null(y, np.ones(30)) / units + 1 < 2
    model = GroupSparseRegressor(loss=Scaled(), selection="ebic").fit(np.arange(30.0)[:, None] % 7, y / units)
    assert model.loss_.width > 0
    assert (Scaled(2.0).settled(Scaled(2.0)), Scaled(1.0).settled(Scaled(2.0))) == (True, False)
    lacking = type("Lacking", (Scaled,), {"estimate": Loss.estimate})
    with pytest.raises(NotImplementedError, match="Lacking must implement estimate"):
        lacking().scaled_to(y, 0 * y, np.ones(30))


def test_a_vector_loss_of_ones_own_reads_its_columns_and_has_a_null_model():
    case = CASES["multi-squared"]
    response = TwoCosh().read(case.y.tolist())
    assert (response.n_outputs, response.columns) == (3, True)
    with pytest.raises(ValueError, match=r"must have two dimensions \(rows, outputs\)"):
        TwoCosh().read(case.y[:, 0])
    constant = TwoCosh().null(response.y, case.weight(), case.predictor())
    single = [LogCosh().null(case.y[:, a], case.weight(), case.predictor()[:, a]) for a in range(3)]
    np.testing.assert_allclose(constant, single, atol=1e-10)


@dataclass(frozen=True)
class Falling(LogCosh):
    """A loss without a minimum."""

    def value(self, y, eta):
        return np.exp(-eta / 1e3) + 0 * y

    def residual(self, y, eta):
        return np.exp(-eta / 1e3) / 1e3 + np.finfo(float).tiny + 0 * y


def test_a_loss_without_a_minimum_says_so():
    with pytest.raises(ValueError, match="No finite constant minimises the loss"):
        Falling().null(np.ones(3), np.ones(3))
