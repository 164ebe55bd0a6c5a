r"""Lemma direction-bound (``lemma:direction-bound``): a small constant direction step keeps what has been reached.

With ``eta <= 4/(9 u_star^4)``, ``0 < tau < 1/2``, ``<v(t), v_star> >= 1 - tau/5``, ``|u(t)^2 - u_star^2| <= tau
u_star^2`` and ``norm(b_t) <= tau u_star^2 / 10``,

    < v(t+1), v_star >  >=  1 - tau/5.

The step's limit makes ``1 - eta u^4 >= 0``. Theorem convergence-alg-2 prints ``4/(9 u_max^2)`` instead, which
for ``u_star > 1`` is larger and breaks the lemma.

Verdict: holds; the theorem's limit does not follow from it.
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from lemmas.instances import ROUNDING, OneGroup, direction_with_cosine, engines, in_ball, lemma, seeds, unit


@lemma
@given(seeds, st.integers(1, 5), st.floats(0.3, 5.0), st.floats(0.01, 0.499), st.floats(0.01, 1.0), engines)
def test_holds(seed, size, u_star, tau, portion, reference):
    rng = np.random.default_rng(seed)
    eta = portion * 4 / (9 * u_star**4)
    group = OneGroup(u_star, unit(rng, size), gamma=1e-3, eta=eta, reference=reference)
    for _ in range(10):
        u = u_star * np.sqrt(1 + tau * rng.choice([-1.0, 1.0, rng.uniform(-1, 1)]))
        v = direction_with_cosine(group.v_star, 1 - tau / 5 * rng.choice([1.0, rng.random()]), rng)
        b = in_ball(rng, size, tau * u_star**2 / 10)
        _, new = group.step(u, v, b)
        assert new @ group.v_star >= 1 - tau / 5 - ROUNDING
        # equation update-on-v itself
        z = v + eta * u**2 * (u_star**2 * group.v_star - u**2 * v) + eta * u**2 * b
        np.testing.assert_allclose(new, z / np.linalg.norm(z), atol=1e-12)


def test_fails_at_the_step_limit_that_the_theorem_prints():
    # u_star = 4: 4/(9 u_star^2) = 0.0278 against 4/(9 u_star^4) = 0.00174; the angle grows six-fold in a step
    u_star, tau, v_star = 4.0, 0.1, np.array([1.0, 0.0])
    v = direction_with_cosine(v_star, 1 - tau / 10, np.random.default_rng(0))
    cosines = {}
    for name, eta in {"printed": 4 / (9 * u_star**2), "lemma": 4 / (9 * u_star**4)}.items():
        _, new = OneGroup(u_star, v_star, gamma=1e-3, eta=eta).step(u_star, v, np.zeros(2))
        cosines[name] = new @ v_star
    assert cosines["lemma"] > v @ v_star
    assert cosines["printed"] < 0.8 < 1 - tau / 5
