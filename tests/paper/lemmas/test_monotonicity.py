r"""Lemma monotonicity (``lemma:monotonicity``).

With ``0 < u(0) < u_star`` and ``gamma <= 1/(4 u_star^2)`` the sequence

    u(t) = u(t-1) + 2 gamma u(t-1) (u_star^2 - u(t-1)^2)

never exceeds ``u_star`` (and never decreases). The constant 4 is sharp.

Stated in the paper without ``u(0) > 0``, which the parameterisation implies. Verdict: holds.
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from lemmas.instances import engines, lemma, seeds, unit

from covey.paper.dynamics import normalized_descent


def magnitudes(u0, u_star, gamma, n_steps, *, size=2, seed=0, reference=False):
    """Algorithm 1 on one noiseless group of an orthonormal design: directions are right from the first step on."""
    rng = np.random.default_rng(seed)
    X = np.sqrt(size) * np.linalg.qr(rng.standard_normal((size, size)))[0]
    w_star = u_star**2 * unit(rng, size)
    return normalized_descent(
        X, X @ w_star, size, init_scale=u0, step_size=gamma, n_steps=n_steps, start=unit(rng, size), reference=reference
    ).u[:, 0]


@lemma
@given(seeds, st.floats(0.1, 10.0), st.floats(1e-6, 0.9999), st.floats(0.01, 1.0), engines, st.integers(1, 4))
def test_holds(seed, u_star, fraction, portion, reference, size):
    gamma = portion / (4 * u_star**2)
    u = magnitudes(fraction * u_star, u_star, gamma, 150, size=size, seed=seed, reference=reference)
    assert (u <= u_star * (1 + 1e-14)).all()
    assert (np.diff(u) >= -1e-14 * u_star).all()
    # and it is this sequence
    expected = u[:-1] * (1 + 2 * gamma * (u_star**2 - u[:-1] ** 2))
    np.testing.assert_allclose(u[1:], expected, rtol=1e-12)


def test_the_step_limit_is_sharp():
    # 4 % above the limit the sequence overshoots from just below u_star; at the limit it does not
    assert magnitudes(0.99, 1.0, 0.26, 1)[-1] > 1
    assert magnitudes(0.99, 1.0, 0.25, 1)[-1] <= 1
