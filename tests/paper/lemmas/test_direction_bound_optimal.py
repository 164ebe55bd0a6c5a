r"""Lemma direction-bound-optimal (``lemma:direction-bound-optimal``).

With the large direction step ``eta_t = 1/u(t)^4`` and a perturbation with ``norm(b_t) <= B u_star^2``, ``0 < B
< 1``,

    < v(t+1), v_star >  >=  1 - B^2,

whatever ``u(t)`` and ``v(t)`` are. In fact the cosine is at least ``sqrt(1 - B^2)``, and that is attained.

Verdict: holds.
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from lemmas.instances import ROUNDING, OneGroup, engines, in_ball, lemma, seeds, unit


@lemma
@given(seeds, st.integers(1, 5), st.floats(-4, 1), st.floats(0.2, 5.0), st.floats(0.01, 0.99), engines)
def test_holds(seed, size, log_u, u_star, B, reference):
    rng = np.random.default_rng(seed)
    group = OneGroup(u_star, unit(rng, size), gamma=1e-3, reference=reference)
    b = in_ball(rng, size, B * u_star**2)
    _, v = group.step(10**log_u, unit(rng, size), b)
    assert abs(np.linalg.norm(v) - 1) < 1e-12
    cosine = v @ group.v_star
    assert cosine >= 1 - B**2 - ROUNDING
    assert cosine >= np.sqrt(1 - B**2) - ROUNDING
    # and the new direction is that of the perturbed truth: nothing is left of the old one
    z = u_star**2 * group.v_star + b
    np.testing.assert_allclose(v, z / np.linalg.norm(z), atol=1e-8)


@lemma
@given(st.floats(0.05, 0.95), engines)
def test_square_root_is_attained(B, reference):
    v_star = np.array([1.0, 0.0])
    b = B * np.array([-B, np.sqrt(1 - B**2)])
    _, v = OneGroup(1.0, v_star, gamma=1e-3, reference=reference).step(0.3, np.array([0.0, 1.0]), b)
    np.testing.assert_allclose(v @ v_star, np.sqrt(1 - B**2), rtol=1e-9)
