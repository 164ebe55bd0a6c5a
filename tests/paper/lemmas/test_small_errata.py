"""Slips of the text that change no conclusion: two matrices, two quantifiers, one power (docs/errata.md, section 6)."""

import numpy as np
import pytest

from covey import Groups
from covey.paper.theory import GroupedNetwork


def test_the_two_matrices_of_the_text_make_u_v_and_not_u_squared_v():
    rng = np.random.default_rng(0)
    groups = Groups.from_sizes([2, 3])
    u, v = rng.uniform(1.1, 2, 2), rng.standard_normal(5)
    W_1, W_2 = np.diag(v), np.diag(u[groups.labels])
    network = GroupedNetwork(groups)
    w = network.value(network.pack(u, v))
    np.testing.assert_allclose(np.diag(W_2 @ W_1), u[groups.labels] * v)
    assert np.abs(np.diag(W_2 @ W_1) - w).min() > 0.01
    np.testing.assert_allclose(np.diag(W_2 @ W_2 @ W_1), w)


def test_with_the_quantifiers_as_printed_a_poisson_variable_is_sub_gaussian():
    """``for all t there exists sigma`` asks for a finite moment generating function only; no sigma serves all t."""
    t = np.linspace(0.01, 30, 500)
    log_mgf = np.exp(t) - 1 - t  # of a Poisson variable of mean 1, centred
    least = np.sqrt(2 * log_mgf) / t  # the sigma that this t needs
    assert np.isfinite(least).all()
    assert least.max() > 1e4
    # and a Rademacher variable meets the definition with sigma = 1, the order that is meant
    assert (np.log(np.cosh(t)) <= t**2 / 2).all()


@pytest.mark.parametrize("L", [10, 1000])
def test_the_proof_of_the_corollary_adds_up_alpha_where_its_square_is_needed(L):
    """Off the support ``norm(w_l)_2 <= alpha < epsilon/L``: squares add up to less than the printed right-hand side."""
    s, epsilon = 2, 1e-3
    alpha = 0.9 * epsilon / L
    printed_right = s * epsilon**2 + (L - s) * epsilon**2 / L**2
    assert s * epsilon**2 + (L - s) * alpha > 100 * printed_right
    assert s * epsilon**2 + (L - s) * alpha**2 <= printed_right
