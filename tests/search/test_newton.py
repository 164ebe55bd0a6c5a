"""Fits by Newton's method: certificates, minima that lie at infinity, and rough fits of many models at once."""

import numpy as np
import pytest
from scipy.special import expit

from covey.losses import Binomial, Gamma, Huber, Multinomial, MultiSquared, Poisson, Quantile, Squared
from covey.search import curvature, newton, rough
from covey.search.observations import Observations
from covey.search.rough import ModelSet, in_batches, minimise_together

N, K = 120, 4


def draw(name, seed=0, n=N, k=K, strength=0.7):
    """Columns with an intercept among them, and a response of the kind that a loss takes."""
    rng = np.random.default_rng(seed)
    A = np.column_stack([np.ones(n), rng.standard_normal((n, k))])
    eta = A @ np.append(0.3, strength * rng.choice([-1.0, 1.0], k))

    def classes():
        B = strength * rng.standard_normal((k + 1, 3))
        return np.eye(3)[(A @ B + rng.gumbel(size=(n, 3))).argmax(axis=1)]

    y = {
        "binomial": lambda: (rng.random(n) < expit(eta)).astype(float),
        "proportions": lambda: np.clip(expit(eta) + 0.1 * rng.standard_normal(n), 0, 1),
        "poisson": lambda: rng.poisson(np.exp(eta)).astype(float),
        "gamma": lambda: np.exp(eta) * rng.gamma(3.0, 1 / 3, n),
        "multinomial": classes,
        "multi-squared": lambda: A @ rng.standard_normal((k + 1, 3)) + rng.standard_normal((n, 3)),
    }.get(name, lambda: eta + rng.standard_t(2, n))()
    return A, y


LOSSES = {
    "squared": Squared(),
    "huber": Huber(0.9),
    "quantile": Quantile(0.8, 1.0),
    "poisson": Poisson(),
    "gamma": Gamma(),
    "binomial": Binomial(),
    "proportions": Binomial(),
    "multinomial": Multinomial(),
    "multi-squared": MultiSquared(),
}


def posed(name, y, weight=None, offset=None):
    outputs = y.shape[1] if y.ndim == 2 else 1
    shift = np.zeros((len(y), outputs)) if offset is None else offset
    weight = np.ones(len(y)) / len(y) if weight is None else weight
    return Observations(LOSSES[name], y, weight, shift, np.ones(len(y)))


def minimise(response, A, penalty=None, start=0.0, **options):
    """The minimiser, from a start where all coefficients are equal."""
    return newton.minimise(response, A, np.full((A.shape[1], response.n_outputs), start), penalty, **options)


@pytest.mark.parametrize("with_offset", [False, True], ids=["no offset", "offset"])
@pytest.mark.parametrize("ridge", [0.0, 0.3], ids=["no ridge", "ridge"])
@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.parametrize("name", LOSSES)
def test_the_gradient_certifies_the_fit(name, intercept, ridge, with_offset):
    """Minus the gradient of the loss is that of the penalty; textbook residuals are in `test_limit_path`."""
    A, y = draw(name)
    A = A if intercept else A[:, 1:]
    rng = np.random.default_rng(1)
    outputs = y.shape[1] if y.ndim == 2 else 1
    weight = rng.uniform(0, 2, N) * (rng.random(N) < 0.8)
    response = posed(name, y, weight, 0.5 * rng.standard_normal((N, outputs)) if with_offset else None)
    root = rng.standard_normal((A.shape[1], A.shape[1]))
    penalty = ridge * weight.sum() * root @ root.T
    fit = minimise(response, A, penalty if ridge else None)
    assert fit.status == "converged"
    np.testing.assert_allclose(fit.eta, A @ fit.coef, atol=1e-12)
    left = (A.T @ response.score(fit.eta) - penalty @ fit.coef) / np.sqrt(weight @ A**2)[:, None]
    assert np.abs(left).max() <= newton.TOLERANCE * response.unit * np.sqrt(weight.sum())


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6], ids=str)
@pytest.mark.parametrize("name", LOSSES)
def test_units_of_the_columns_change_no_digit_of_the_fit(name, scale):
    A, y = draw(name, seed=3)
    units = scale * np.geomspace(1e-3, 1e3, A.shape[1])
    response = posed(name, y)
    fit, plain = minimise(response, A * units), minimise(response, A)
    assert fit.status == plain.status == "converged"
    np.testing.assert_allclose(fit.coef * units[:, None], plain.coef, atol=1e-7)


def classes(labels):
    return np.eye(int(labels.max()) + 1)[labels]


@pytest.mark.parametrize("name", LOSSES)
def test_columns_that_depend_on_each_other_change_no_prediction(name):
    A, y = draw(name, seed=7)
    twice = np.column_stack([A, A[:, 1] - 2 * A[:, 2], A[:, 3], np.zeros(N)])
    plain, wide = minimise(posed(name, y), A), minimise(posed(name, y), twice)
    assert wide.status == "converged"
    np.testing.assert_allclose(wide.eta, plain.eta, atol=1e-6)
    assert not wide.coef[-1].any()


@pytest.mark.parametrize("start", [-30.0, -3.0, 0.0, 3.0, 30.0])
@pytest.mark.parametrize("name", LOSSES)
def test_a_fit_never_goes_up_and_ends_at_the_minimum_from_any_start(name, start):
    A, y = draw(name, seed=8)
    response = posed(name, y)
    best = minimise(response, A)
    fit = minimise(response, A, None, start)
    first = response.total(np.repeat(A.sum(axis=1, keepdims=True) * start, response.n_outputs, axis=1))
    assert fit.status == "converged"
    assert response.total(fit.eta) <= first + 1e-12 * abs(first)
    np.testing.assert_allclose(fit.coef, best.coef, atol=1e-6)


@pytest.mark.parametrize("size", [1e-12, 1e-3, 1e3, 1e12])
@pytest.mark.parametrize("name", ["poisson", "gamma"])
def test_counts_and_amounts_of_any_size(name, size):
    """From zero, as a fit without an intercept starts, to a mean of any size."""
    A, y = draw(name, seed=9)
    plain, fit = minimise(posed(name, y), A), minimise(posed(name, size * y), A)
    assert fit.status == "converged"
    np.testing.assert_allclose(fit.coef[1:], plain.coef[1:], atol=1e-6)
    assert fit.coef[0, 0] == pytest.approx(plain.coef[0, 0] + np.log(size), abs=1e-6)


@pytest.mark.parametrize("name", ["binomial", "multinomial"])
@pytest.mark.parametrize("kind", ["complete", "quasi-complete", "one level"])
def test_separable_classes(kind, name):
    rng = np.random.default_rng(10)
    A = np.column_stack([np.ones(N), rng.standard_normal((N, 3))])
    labels = (A[:, 1] > 0).astype(int) + (0 if name == "binomial" else (A[:, 2] > 0.5) * (A[:, 1] > 0))
    if kind == "quasi-complete":  # rows of all classes on the border between them
        A[:30, 1] = 0.0
        A[:30, 2] = 0.5
        labels[:30] = rng.integers(0, labels.max() + 1, 30)
    if kind == "one level":  # all rows of a level are of one class, and the others overlap
        A[:, 1] = np.arange(N) < 20
        labels = rng.integers(0, 2 if name == "binomial" else 3, N)
        labels[:20] = 1
    y = labels.astype(float) if name == "binomial" else classes(labels)
    fit = minimise(posed(name, y), A)
    assert fit.status == "separated"
    assert np.isfinite(fit.coef).all()
    penalised = minimise(posed(name, y), A, np.diag([0.0, 1e-3, 1e-3, 1e-3]))
    assert penalised.status == "converged"
    assert np.abs(penalised.coef).max() < np.abs(fit.coef).max() + 100


def test_a_level_without_any_event_is_separated_and_one_with_an_event_is_not():
    rng = np.random.default_rng(11)
    level = np.arange(2000) < 1000
    A = np.column_stack([np.ones(2000), level])
    y = rng.poisson(3.0, 2000).astype(float)
    y[level] = 0.0
    assert minimise(posed("poisson", y), A).status == "separated"
    y[0] = 1.0
    fit = minimise(posed("poisson", y), A)
    assert fit.status == "converged"
    assert fit.coef.sum() == pytest.approx(np.log(1e-3), rel=1e-7)


@pytest.mark.parametrize("n", [1000, 100_000])
@pytest.mark.parametrize("name", ["binomial", "poisson"])
def test_rare_events_are_not_taken_for_separation(name, n):
    """One event in n rows: Newton's steps from zero are of length one for a long time."""
    level = np.arange(2 * n) < n
    A = np.column_stack([np.ones(2 * n), level])
    y = (np.arange(2 * n) % 2).astype(float)
    y[level] = 0.0
    y[0] = 1.0
    fit = minimise(posed(name, y), A)
    assert fit.status == "converged"
    rate = np.log(1 / n) if name == "poisson" else np.log(1 / (n - 1))
    assert fit.coef.sum() == pytest.approx(rate, rel=1e-7)


@pytest.mark.parametrize("seed", range(10))
def test_wild_values_do_not_make_huber_fits_infinite(seed):
    rng = np.random.default_rng(seed)
    A = np.column_stack([np.ones(60), rng.standard_normal((60, 15))])
    y = A @ rng.standard_normal(16) + rng.standard_cauchy(60) * 10.0 ** rng.integers(0, 4, 60)
    response = Observations(Huber(0.05), y, np.full(60, 1 / 60), np.zeros((60, 1)), np.ones(60))
    fit = minimise(response, A)
    assert fit.status == "converged"
    assert np.abs(A.T @ response.score(fit.eta)).max() <= 1e-7 * response.unit


@pytest.mark.parametrize("start", [0.0, 2.0])
@pytest.mark.parametrize("strength", [0.7, 4.0])
@pytest.mark.parametrize("name", ["huber", "poisson", "gamma", "binomial"])
def test_rough_fits_are_near_the_minimum_wherever_they_start(name, strength, start):
    """The deviance of a bad start says nothing about how many digits are enough."""
    A, y = draw(name, seed=13, strength=strength)
    response, M = posed(name, y), np.diag([0.0] + [1.0] * K)
    for ridge in (1e-3, 0.03, 1.0):
        best = minimise(response, A, ridge * M)
        rough = minimise(response, A, ridge * M, start, rough=True).coef
        least = response.total(best.eta) + ridge / 2 * (best.coef * (M @ best.coef)).sum()
        excess = response.total(A @ rough) + ridge / 2 * (rough * (M @ rough)).sum() - least
        assert -1e-14 * abs(least) - 1e-12 <= excess <= newton.ROUGH * response.scale(response.total(best.eta))


def test_large_systems_are_solved_without_their_hessian(monkeypatch):
    A, y = draw("multinomial", seed=12, n=200, k=6)
    full = minimise(posed("multinomial", y), A)
    monkeypatch.setattr(curvature, "MOST_UNKNOWNS", 0)
    monkeypatch.setattr(curvature, "_full_hessian", None)
    fit = minimise(posed("multinomial", y), A)
    assert fit.status == "converged"
    np.testing.assert_allclose(fit.coef, full.coef, atol=1e-7)


@pytest.mark.parametrize("name", LOSSES)
def test_nothing_to_fit(name):
    A, y = draw(name)
    fit = minimise(posed(name, y), A[:, :0])
    assert fit.status == "converged"
    assert fit.coef.shape == (0, posed(name, y).n_outputs)
    assert not fit.eta.any()


# ------------------------------------------------------------------ rough fits of many models at once

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
            best = newton.minimise(response, A[:, columns], np.zeros((len(columns), 1)), P)
            least = response.total(best.eta) + 0.5 * float((best.coef * (P @ best.coef)).sum())
            excess = response.total(A @ coef) + 0.5 * float((coef[columns] * (P @ coef[columns])).sum()) - least
            assert -1e-14 * abs(least) - 1e-12 <= excess <= newton.ROUGH * response.scale(response.total(best.eta))


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
        assert newton.minimise(response, A[:, :2], start[:, None], rough=rough_).status == "separated"
    assert fitted("binomial", y, A, sets=[np.array([0, 2])])[3].all()


@pytest.mark.parametrize("name", ["poisson", "binomial"])
def test_batches_make_no_difference(name, monkeypatch):
    A, y = draw(name, seed=3, strength=0.7)
    together = fitted(name, y, A)[2]
    monkeypatch.setattr(rough, "MOST_NUMBERS", 1)
    np.testing.assert_allclose(fitted(name, y, A)[2], together, rtol=0, atol=1e-10)
