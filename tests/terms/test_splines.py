"""Splines against scipy's natural cubic spline, and their orthogonality on odd data."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import CubicSpline

from covey.terms.splines import (
    ROWS_BETWEEN_KNOTS,
    basis,
    orthonormal_curves,
    quantile_knots,
    quantiles,
    with_grid,
)


def test_basis_is_the_natural_spline_and_linear_beyond_the_knots():
    rng = np.random.default_rng(0)
    for k in (3, 4, 9):
        knots = np.sort(rng.normal(size=k))
        values = rng.normal(size=k)
        x = np.linspace(knots[0], knots[-1], 101)
        spline = CubicSpline(knots, values, bc_type="natural")
        np.testing.assert_allclose(basis(x, knots) @ values, spline(x), atol=1e-10)
        for edge, sign in ((knots[0], -1), (knots[-1], 1)):
            beyond = edge + sign * np.array([0.5, 20.0])
            expected = spline(edge) + spline(edge, 1) * (beyond - edge)
            np.testing.assert_allclose(basis(beyond, knots) @ values, expected, rtol=1e-9, atol=1e-9)


SHAPES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "lognormal": lambda rng, n: np.exp(3 * rng.normal(size=n)),
    "cauchy": lambda rng, n: rng.standard_cauchy(size=n),
    "many zeros": lambda rng, n: np.where(rng.random(n) < 0.7, 0.0, rng.random(n)),
    "integers": lambda rng, n: rng.integers(0, 5, size=n).astype(float),
    "two heaps": lambda rng, n: np.where(rng.random(n) < 0.5, 0.0, 1e6) + rng.random(n),
    "one outlier": lambda rng, n: np.append(rng.normal(size=n - 1), 1e8),
    "three values": lambda rng, n: rng.integers(0, 3, size=n) ** 2.0,
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [120, 300])
def test_curves_are_orthonormal_for_odd_distributions(shape, n):
    rng = np.random.default_rng(2)
    x = SHAPES[shape](rng, n)
    weights = rng.random(n)
    weights /= weights.sum()
    x = (x - weights @ x) / np.sqrt(weights @ (x - weights @ x) ** 2)
    distinct, which = np.unique(x, return_inverse=True)
    knots = quantile_knots(distinct, n * np.bincount(which, weights), 7)
    assert 3 <= len(knots) <= min(7, len(distinct))
    values = orthonormal_curves(x, weights, knots, np.empty((len(knots), 0)))
    assert values.shape[1] >= 1
    columns = np.column_stack([np.ones(n), x, basis(x, knots) @ values])
    np.testing.assert_allclose(columns.T @ (weights[:, None] * columns), np.eye(columns.shape[1]), atol=1e-7)


def test_a_value_that_most_rows_share_takes_one_knot():
    values = np.linspace(0, 1, 101)
    weights = np.ones(101)
    weights[0] = 500.0
    assert len(quantile_knots(values, weights, 7)) >= 6


def test_curves_are_ordered_from_smooth_to_wiggly():
    x = np.linspace(-1.7, 1.7, 400)
    x /= x.std()
    knots = np.linspace(x[0], x[-1], 7)
    values = orthonormal_curves(x, np.full(400, 1 / 400), knots, np.empty((7, 0)))
    curves = basis(x, knots) @ values
    turns = [(np.diff(np.sign(np.diff(curve))) != 0).sum() for curve in curves.T]
    assert turns == sorted(turns)
    assert turns[0] == 1


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=3, max_size=30), st.integers(0, 10))
def test_weights_of_quantiles_are_repetitions(counts, seed):
    values = np.sort(np.random.default_rng(seed).normal(size=len(counts)))
    at = np.linspace(0, 1, 9)
    drawn = quantiles(values, np.array(counts, float), at)
    assert (np.diff(drawn) >= 0).all()
    np.testing.assert_allclose(drawn, quantiles(values, 3.0 * np.array(counts), at))
    np.testing.assert_allclose(quantiles(-values[::-1], np.array(counts[::-1], float), at), -drawn[::-1], atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=3, max_size=60), st.integers(3, 12))
def test_there_are_rows_between_knots(counts, n_knots):
    values = np.sort(np.random.default_rng(len(counts)).normal(size=len(counts)))
    knots = quantile_knots(values, np.array(counts, float), n_knots)
    assert 1 <= len(knots) <= n_knots
    rows = np.repeat(values, counts)
    between = [((rows > low) & (rows <= high)).sum() for low, high in itertools.pairwise(knots)]
    assert all(count >= ROWS_BETWEEN_KNOTS for count in between)


def test_small_tables_have_no_curve():
    values = np.linspace(-1, 1, 20)
    assert len(quantile_knots(values, np.ones(20), 3)) < 3


def test_the_grid_of_a_detail_bends_up_to_the_outermost_rows():
    """A natural spline has no bend at its outermost knots: they lie outside, and the knots of the curve stay."""
    x = np.sort(np.random.default_rng(0).normal(size=500))
    rows = np.ones(500)
    inner = quantile_knots(x, rows, 10)
    knots = with_grid(inner, x, rows)
    assert set(inner) <= set(knots)
    assert knots[0] < x[0] < x[-1] < knots[-1]
    # so the splines follow a polynomial to its ends
    inside = knots[(knots >= x[0]) & (knots <= x[-1])]
    errors = []
    for some in (knots, inside):
        columns = basis(x, some)
        errors.append(np.abs(columns @ np.linalg.lstsq(columns, x**8, rcond=None)[0] - x**8).max())
    assert errors[0] < errors[1] / 3
