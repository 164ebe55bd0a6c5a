"""Dense designs: every order, dtype and stride gives the same numbers, without a copy of X."""

import subprocess
import sys
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

from covey.designs import Models, RepeatedColumns, as_design, protocol
from covey.designs.moments import LARGEST_BLOCK

FORMS = {
    "C": np.array,
    "Fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "reversed": lambda X: X[::-1].copy()[::-1],
}


@pytest.mark.parametrize("form", FORMS)
def test_reading_copies_nothing(form):
    X = FORMS[form](np.random.default_rng(0).standard_normal((1600, 2000)))
    q, members, starts = np.full(1600, 1 / 1600), np.arange(2000), np.arange(0, 2001, 4)
    design = as_design(X)
    arguments = (np.ones(1600), q, members, starts)
    design.moments(*arguments, centre=True, scale=np.ones(2000))
    tracemalloc.start()
    design.moments(*arguments, centre=True, scale=np.ones(2000))
    design.correlate(np.ones((2, 1600)))
    design.gram_parts(np.array([1, 2]), np.zeros(2), q, [q])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.2 * X.nbytes


def test_a_constant_column_has_exactly_no_variance():
    design, q, starts = as_design(np.full((1000, 2), 0.1)), np.full(1000, 1e-3), np.array([0, 2])
    moments = design.moments(np.ones(1000), q, np.arange(2), starts, centre=True, scale=np.ones(2))
    assert (moments.blocks == 0).all()


LAYOUTS = {
    "singletons": np.ones(700, dtype=int),
    "equal": np.full(150, 4),
    "a few sizes in runs": np.repeat([1, 3, 70, 2, 30], [40, 25, 2, 9, 3]),
    "large ones": np.array([90, 65, 64]),
    "small ones of all sizes": np.random.default_rng(0).integers(1, 5, 150),
}


@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("form", [*FORMS, "float32"])
@pytest.mark.parametrize("scattered", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_moments_and_products_are_those_of_plain_sums(layout, scattered, form, weighted, centre):
    rng = np.random.default_rng(2)
    sizes = LAYOUTS[layout]
    n, p, starts = 130, int(sizes.sum()), np.concatenate([[0], np.cumsum(sizes)])
    members = rng.permutation(p) if scattered else np.arange(p)
    X = rng.standard_normal((n, p)) + rng.choice([0.0, 0.0, 1.0, 40.0], p)
    X[:, 5] = 7.3
    X[::8, 11] += 30.0 * rng.standard_normal(17)
    X = FORMS.get(form, np.float32)(X)
    q = rng.integers(0, 3, n) if weighted else np.ones(n)
    q, y, scale = q / q.sum(), rng.standard_normal(n), np.exp2(rng.integers(-2, 3, p))
    found = as_design(X).moments(y, q, members, starts, centre=centre, scale=scale)
    A = X.astype(np.float64)[:, members]
    mean = q @ A if centre else np.zeros(p)
    Z = (A - mean) * scale
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.variance, q @ (Z * Z), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(found.correlation, (q * y) @ Z, rtol=1e-11, atol=1e-11)
    assert found.variance[members == 5] == 0 or not centre
    product = as_design(X).correlate(y[None])[:, members]
    np.testing.assert_allclose(product, y[None] @ A, rtol=0, atol=1e-3 if form == "float32" else 1e-9)
    for l, (a, b) in enumerate(pairwise(starts)):
        block = found.blocks[found.block_starts[l] : found.block_starts[l + 1]]
        if b - a > LARGEST_BLOCK:
            assert block.size == 0
        else:
            expected = (Z[:, a:b].T * q) @ Z[:, a:b]
            np.testing.assert_allclose(block.reshape(b - a, b - a), expected, rtol=1e-11, atol=1e-10)


def test_residuals_in_pieces(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 30))
    y, weights, columns = rng.standard_normal((50, 1)), list(rng.uniform(0, 1, (2, 50))), np.array([3, 1, 7])
    coefs, levels, shift = rng.standard_normal((3, 1, 3)), rng.standard_normal((3, 1)), np.arange(3.0)
    models = Models(y, weights, np.array([0, 1, 1]), columns, coefs, levels)
    for design in (as_design(X), RepeatedColumns(as_design(X), np.arange(30))):
        expected, moments = design.residual_products(models), design.gram_parts(columns, shift, y, weights)
        predicted = design.predict(columns, coefs[:, 0], levels[:, 0])
        with monkeypatch.context() as patch:
            patch.setattr(protocol, "RESIDUALS", 20)
            patch.setattr(protocol, "FEWEST_MODELS", 1)
            np.testing.assert_allclose(design.residual_products(models), expected, atol=1e-12)
            np.testing.assert_allclose(design.gram_parts(columns, shift, y, weights), moments, atol=1e-12)
            np.testing.assert_allclose(design.predict(columns, coefs[:, 0], levels[:, 0]), predicted, atol=1e-12)


def test_nothing_is_compiled():
    program = (
        "import sys, numpy as np, covey, covey.designs; from covey.preprocess import prepare\n"
        "rng = np.random.default_rng(0)\n"
        "problem, _ = prepare(rng.standard_normal((30, 20)), rng.standard_normal(30), 4)\n"
        "problem.gram_rows([0, 1]), problem.working_columns(np.arange(2))\n"
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
