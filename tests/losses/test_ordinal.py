"""Ordered classes: the likelihood against its definition and statsmodels', thresholds, labels and their order."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from covey.losses import Binomial, Ordinal


def classes(n=60, k=4, seed=0):
    """Positions of classes, weights with zeros among them, and a predictor."""
    rng = np.random.default_rng(seed)
    eta = 1.5 * rng.standard_normal(n)
    y = np.digitize(eta + rng.logistic(size=n), np.linspace(-1.5, 1.5, k - 1)).astype(float)
    y[:k] = np.arange(k)
    return y, rng.uniform(0.2, 3.0, n) * (np.arange(n) % 9 != 8), eta


def by_definition(y, eta, weight, thresholds):
    """Minus the weighted sum of log probabilities, as differences of cumulative ones."""
    ends = np.concatenate([[-np.inf], thresholds, [np.inf]])
    p = expit(ends[y.astype(int) + 1] - eta) - expit(ends[y.astype(int)] - eta)
    return -weight @ np.log(p)


@pytest.mark.parametrize("k", [2, 3, 6])
def test_thresholds_are_the_best_ones(k):
    y, weight, eta = classes(k=k)
    on = Ordinal().on(y, weight)
    found = on.thresholds(eta)
    assert found.shape == (k - 1,)
    assert on.total(eta) == pytest.approx(by_definition(y, eta, weight, found), rel=1e-12)
    start = np.linspace(-1, 1, k - 1)
    brute = minimize(lambda t: by_definition(y, eta, weight, np.sort(t)), start, method="Nelder-Mead",
                     options={"xatol": 1e-8, "fatol": 1e-12, "maxiter": 20_000, "maxfev": 20_000})  # fmt: skip
    assert on.total(eta) <= brute.fun + 1e-9
    np.testing.assert_allclose(found, np.sort(brute.x), atol=1e-4)
    # without columns they are the log odds of the cumulative shares
    shares = np.cumsum(np.bincount(y.astype(int), weights=weight))[:-1] / weight.sum()
    np.testing.assert_allclose(on.thresholds(np.zeros(len(y))), np.log(shares / (1 - shares)), atol=1e-10)


@pytest.mark.parametrize("k", [2, 3, 6])
def test_derivatives_of_the_profile(k):
    y, weight, eta = classes(k=k)
    on, n = Ordinal().on(y, weight), len(y)
    steps = 1e-4 * np.eye(n)
    slopes = np.array([on.total(eta + u) - on.total(eta - u) for u in steps]) / 2e-4
    np.testing.assert_allclose(on.score(eta), -slopes, atol=1e-7)
    H = np.array([on.score(eta - u) - on.score(eta + u) for u in steps]) / 2e-4
    A = np.random.default_rng(1).standard_normal((n, 3))
    np.testing.assert_allclose(on.curvature_product(eta, A[:, 0]), H @ A[:, 0], atol=1e-6)
    np.testing.assert_allclose(on.gram(eta, A), A.T @ H @ A, atol=1e-5)
    assert np.linalg.eigvalsh(H).min() > -1e-7  # convex, though the thresholds move
    assert (on.curvature(eta) >= np.diag(H) - 1e-6).all()
    assert abs(on.score(eta).sum()) < 1e-9  # a constant changes nothing
    assert on.total(eta + 7.0) == pytest.approx(on.total(eta), rel=1e-12)
    np.testing.assert_array_equal(on.score(eta)[weight == 0], 0)


def test_several_models_at_once_and_rows_twice():
    y, _, eta = classes()
    times = np.random.default_rng(3).integers(0, 4, len(y))
    times[:4] = 1
    on = Ordinal().on(y, times.astype(float))
    table = np.stack([eta, -eta, np.zeros_like(eta), 40 * eta], axis=1)
    np.testing.assert_allclose(on.total(table), [on.total(column) for column in table.T], rtol=1e-12)
    np.testing.assert_allclose(on.score(table)[:, 3], on.score(table[:, 3]), atol=1e-9)
    rows = np.repeat(np.arange(len(y)), times)
    twice = Ordinal().on(y[rows], np.ones(rows.size))
    assert on.total(eta) == pytest.approx(twice.total(eta[rows]), rel=1e-12)
    assert on.curvature(eta).sum() == pytest.approx(twice.curvature(eta[rows]).sum(), rel=1e-10)


@pytest.mark.parametrize("size", [0.0, 50.0, 1e3, 1e6])
def test_nothing_overflows_far_out(size):
    y, weight, eta = classes()
    for given in (size * eta, size * (y + 0.1 * eta), -size * y):
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            on = Ordinal().on(y, weight)
            found = on.total(given), on.score(given), on.curvature(given), on.gram(given, eta[:, None])
            known = Ordinal(thresholds=on.thresholds(given))
            more = [known.deviance(y, given), known.log_probabilities(given[:, None])]
        for part in (*found, *more):
            assert np.isfinite(part).all()


@pytest.mark.parametrize("size", [1e17, 1e100])
def test_a_predictor_without_digits_for_thresholds_has_no_likelihood(size):
    """Thresholds that far out are equal; Newton's steps in the coefficients turn back there."""
    y, weight, eta = classes()
    assert Ordinal().on(y, weight).total(size * eta) == np.inf


def test_known_thresholds_give_probabilities_and_deviances():
    y, weight, eta = classes()
    loss = Ordinal().with_thresholds(y, eta, weight)
    assert weight @ loss.deviance(y, eta) == pytest.approx(Ordinal().on(y, weight).deviance(eta), rel=1e-12)
    p = loss.probabilities(eta[:, None])
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-14)
    np.testing.assert_allclose(loss.deviance(y, eta), -2 * np.log(p[np.arange(len(y)), y.astype(int)]), rtol=1e-12)
    np.testing.assert_allclose(Ordinal().deviance(y, eta).sum() / 2, Ordinal().on(y, np.ones(len(y))).total(eta))


def test_two_classes_are_the_binomial_loss():
    y, weight, eta = classes(k=2)
    constant = Binomial().null(y, weight, eta)
    total = weight @ Binomial().value(y, eta + constant)
    assert Ordinal().on(y, weight).total(eta) == pytest.approx(total, rel=1e-12)
    assert Ordinal().read([3, 5, 3]).loss == Binomial()


ORDERS = {
    "numbers": (Ordinal(), np.array([10, 2, 5, 2]), [2, 5, 10]),
    "floats": (Ordinal(), np.array([5.0, -1.0, 2.0, 2.0]), [-1.0, 2.0, 5.0]),
    "categorical": (
        Ordinal(), pd.Series(pd.Categorical(list("cab"), categories=list("cxab"), ordered=True)), ["c", "a", "b"],
    ),
    "given": (Ordinal(order=["low", "middle", "high", "none"]), ["high", "low", "middle"], ["low", "middle", "high"]),
    "given before the categorical's": (
        Ordinal(order=["b", "a", "c"]), pd.Series(pd.Categorical(list("cab"), ordered=True)), ["b", "a", "c"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ORDERS)
def test_the_order_of_labels(case):
    loss, y, expected = ORDERS[case]
    response = loss.read(y)
    assert response.labels.tolist() == expected
    assert [expected[int(code)] for code in response.y] == list(y)
    again = loss.read(y, classes=response.labels)
    np.testing.assert_array_equal(again.y, response.y)


REFUSED = {
    "text": (
        lambda: Ordinal().read(["a", "b", "c"]),
        r"'a', 'b', 'c', whose order is not known: give loss=covey.losses",
    ),
    "no order": (lambda: Ordinal().read(pd.Series(pd.Categorical(list("abc")))), "whose order is not known"),
    "unknown": (lambda: Ordinal(order=["a", "b"]).read(["a", "c", "b"]), "label 'c', which order does not name"),
    "missing": (lambda: Ordinal().read([1.0, np.nan, 2.0]), "missing labels"),
    "text as order": (lambda: Ordinal(order="abc"), "order must be a list of at least two different labels"),
    "one label": (lambda: Ordinal(order=["a"]), "order must be a list of at least two different labels"),
    "a label twice": (lambda: Ordinal(order=["a", "b", "a"]), "order must be a list of at least two different"),
    "thresholds": (lambda: Ordinal(thresholds=[1.0, 0.0]), "thresholds must be finite and in ascending order"),
    "no thresholds": (lambda: Ordinal().probabilities(np.zeros((1, 1))), "no thresholds yet: call with_thresholds"),
    "one class": (lambda: Ordinal().null(np.zeros(3), np.ones(3)), "Every row is of one class"),
    "positions": (lambda: Ordinal().check([0.5, 1.0]), "must hold positions of classes 0, 1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    function, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        function()
