"""Derivatives against finite differences, and against sympy's with fifty digits."""

import numpy as np
import pytest

from covey.losses import (
    Binomial,
    Gamma,
    Huber,
    Multinomial,
    MultiSquared,
    NegativeBinomial,
    Poisson,
    Quantile,
    Squared,
    Tweedie,
)
from loss_cases import CASES


def differences(function, eta, step=1e-5):
    """Central differences of a function of eta in each entry of its last axis; entry by entry for one of its shape."""
    return (function(eta + step) - function(eta - step)) / (2 * step)


def scaled(case, y):
    """Predictors near the responses, where differences of large values still have digits."""
    return case.predictor() + (case.loss.link(y).clip(-400, 60) if case.loss.log_link else 0)


@pytest.mark.parametrize("name", [name for name in CASES if not CASES[name].loss.vector])
def test_scalar_derivatives(name):
    case = CASES[name]
    loss, y = case.loss, case.y
    eta = scaled(case, y)
    size = 1 + np.abs(y) if loss.log_link and loss.name != "gamma" else 1.0
    first = -differences(lambda e: loss.value(y, e), eta)
    np.testing.assert_allclose(loss.residual(y, eta) / size, first / size, rtol=1e-6, atol=1e-8)
    second = -differences(lambda e: loss.residual(y, e), eta)
    np.testing.assert_allclose(loss.curvature(y, eta) / size, second / size, rtol=1e-6, atol=1e-8)
    direction = case.predictor(seed=7)
    np.testing.assert_allclose(loss.curvature_product(y, eta, direction), loss.curvature(y, eta) * direction)


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name].loss.vector])
def test_vector_derivatives(name):
    case = CASES[name]
    loss, y, eta, direction = case.loss, case.y, case.predictor(), case.predictor(seed=7)
    along = differences(lambda t: np.array([loss.value(y, eta + s * direction) for s in t]), np.zeros(1))[0]
    np.testing.assert_allclose(-(loss.residual(y, eta) * direction).sum(axis=1), along, rtol=1e-6, atol=1e-8)
    turned = -differences(lambda t: np.array([loss.residual(y, eta + s * direction) for s in t]), np.zeros(1))[0]
    np.testing.assert_allclose(loss.curvature_product(y, eta, direction), turned, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name].loss.vector])
def test_vector_curvature_is_the_trace_of_the_hessian_over_its_rank(name):
    case = CASES[name]
    loss, y, eta = case.loss, case.y, case.predictor()
    columns = [loss.curvature_product(y, eta, np.broadcast_to(unit, eta.shape)) for unit in np.eye(3)]
    hessians = np.stack(columns, axis=-1)
    np.testing.assert_allclose(hessians, hessians.transpose(0, 2, 1), atol=1e-15)
    rank = np.linalg.matrix_rank(hessians[0], tol=1e-10)
    assert rank == (2 if loss.name == "multinomial" else 3)
    np.testing.assert_allclose(loss.curvature(y, eta), np.trace(hessians, axis1=1, axis2=2) / rank, rtol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_the_sums_over_rows_are_derivatives_of_each_other(name):
    case = CASES[name]
    loss, y, weight, direction = case.loss, case.y, case.weight(), case.predictor(seed=7)
    eta = scaled(case, y)
    along = differences(lambda t: np.array([loss.on(y, weight).total(eta + s * direction) for s in t]), np.zeros(1))[0]
    assert -np.sum(loss.on(y, weight).score(eta) * direction) == pytest.approx(along, rel=1e-5)
    assert isinstance(loss.on(y, weight).total(eta), float)
    assert loss.on(y, weight).score(eta).shape == eta.shape


# ------------------------------------------------------------------------------------------ sympy, with fifty digits

ETAS = ["-30", "-2.5", "0", "1/3", "4", "36.5"]
FORMULAS = {
    "squared": (Squared(), "(y - e)**2 / 2", ["-3", "0", "7/8"]),
    "huber, near": (Huber(100.0), "(y - e)**2 / 2", ["-3", "0", "7/8"]),
    "huber, above": (Huber(0.5), "(y - e - 1/4) / 2", ["50", "100"]),
    "huber, below": (Huber(0.5), "(e - y - 1/4) / 2", ["-50", "-100"]),
    "quantile": (Quantile(0.25, 10.0), "(y - e)/4 + log(1 + exp(e - y))", ["-3", "0", "7/8"]),
    "poisson": (Poisson(), "exp(e) - y*e", ["0", "1", "7", "25/2"]),
    "negative-binomial": (NegativeBinomial(0.5), "(y + 2)*log(1 + exp(e)/2) - y*e", ["0", "1", "7"]),
    "tweedie": (Tweedie(1.25), "4*y*exp(-e/4) + exp(3*e/4)*4/3", ["0", "1", "25/2"]),
    "gamma": (Gamma(), "y*exp(-e) + e", ["1/8", "1", "50"]),
    "binomial": (Binomial(), "log(1 + exp(e)) - y*e", ["0", "1/4", "1"]),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_scalar_losses_are_their_formulas(name):
    sympy = pytest.importorskip("sympy")
    loss, text, responses = FORMULAS[name]
    y, e = sympy.symbols("y e")
    value = sympy.sympify(text, locals={"y": y, "e": e}, rational=True)
    functions = {"value": value, "residual": -value.diff(e), "curvature": value.diff(e, 2)}
    for response in responses:
        for eta in ETAS:
            at = {y: sympy.Rational(response), e: sympy.Rational(eta)}
            for method, formula in functions.items():
                exact = float(formula.subs(at).evalf(50))
                ours = getattr(loss, method)(float(at[y]), float(at[e]))
                assert ours == pytest.approx(exact, rel=2e-13, abs=1e-14), (method, response, eta)
                if name == "binomial" and response in ("0", "1"):  # next to 0 and 1 too
                    assert ours == pytest.approx(exact, rel=2e-13, abs=0)


@pytest.mark.parametrize("name", ["multinomial", "multi-squared"])
def test_vector_losses_are_their_formulas(name):
    sympy = pytest.importorskip("sympy")
    loss = {"multinomial": Multinomial(), "multi-squared": MultiSquared()}[name]
    e = sympy.symbols("e0:3")
    for y in ([0, 1, 0], [sympy.Rational(1, 4), sympy.Rational(1, 4), sympy.Rational(1, 2)]):
        if name == "multinomial":
            value = sympy.log(sum(sympy.exp(s) for s in e)) - sum(a * s for a, s in zip(y, e, strict=True))
        else:
            value = sum((a - s) ** 2 for a, s in zip(y, e, strict=True)) / 2
        gradient, hessian = [value.diff(s) for s in e], sympy.hessian(value, e)
        for eta in ([0, 0, 0], [1, -2, 3], [20, -20, 5]):
            at, direction = dict(zip(e, eta, strict=True)), sympy.Matrix([1, -3, sympy.Rational(1, 2)])
            response, predictor = np.array(y, dtype=float), np.array(eta, dtype=float)
            assert loss.value(response, predictor) == pytest.approx(float(value.subs(at).evalf(50)), rel=1e-13)
            exact = [-float(g.subs(at).evalf(50)) for g in gradient]
            np.testing.assert_allclose(loss.residual(response, predictor), exact, rtol=1e-12, atol=1e-15)
            exact = [float(product.subs(at).evalf(50)) for product in hessian * direction]
            ours = loss.curvature_product(response, predictor, np.array(direction, dtype=float).ravel())
            np.testing.assert_allclose(ours, exact, rtol=1e-12, atol=1e-14)


# ------------------------------------------------------------- where the exponential is continued by a parabola


@pytest.mark.parametrize("loss", [Poisson(), Gamma()], ids=["poisson", "gamma"])
def test_the_exponential_goes_on_smoothly(loss):
    sign = 1 if loss.name == "poisson" else -1
    d = np.array([-0.5, -1e-3, 0, 1e-3, 0.5, 10, 500])
    y, unit, t = 1.0, np.exp(300.0), 300.0 + d
    value, slope, bend = loss.value(y, sign * t), -sign * loss.residual(y, sign * t), loss.curvature(y, sign * t)
    inside, tolerance = d <= 0, {"rtol": 1e-10}
    np.testing.assert_allclose(value / unit, np.where(inside, np.exp(d.clip(max=0)), 1 + d + d**2 / 2), **tolerance)
    np.testing.assert_allclose(slope / unit, np.where(inside, np.exp(d.clip(max=0)), 1 + d), **tolerance)
    np.testing.assert_allclose(bend / unit, np.exp(d.clip(max=0)), **tolerance)
