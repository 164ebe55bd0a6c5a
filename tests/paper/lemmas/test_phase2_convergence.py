r"""Lemma phase2-convergence (``lemma:phase2-convergence``): the error of a magnitude halves in a fixed time.

Printed: "fix the step size", ``|u_star^2 - u(0)^2| <= tau u_star^2`` with ``0 < tau <= 1/2``, updates
update-on-u and update-on-v with ``|<v(t), b_t>| <= tau u_star^2/10`` and ``|e_t| <= tau u_star^2/10``. Then
after ``T >= 5/(2 gamma u_star^2)``: ``<v(t), v_star> >= 1 - tau^2/5`` for ``t <= T`` and ``|u(T)^2 - u_star^2|
<= tau u_star^2/2``.

As in lemma phase1, a limit on gamma, the large direction step and a bound on ``norm(b_t)`` are missing; and the
direction is that of ``1 <= t <= T``, for ``v(0)`` is arbitrary.

Corrected: with ``eta_t = 1/u(t)^4``, ``gamma <= 1/(9 u_star^2)``, ``norm(b_t) <= tau u_star^2/10`` and ``|e_t|
<= tau u_star^2/10`` the conclusion holds for every t >= T. Proof: the cosine is at least ``1 - tau^2/100``.
Below ``(1 - tau/2) u_star^2`` a step multiplies u by at least ``1 + 0.79 gamma tau u_star^2``, above ``(1 +
tau/2) u_star^2`` by at most ``1 - 0.8 gamma tau u_star^2``, so that either distance is halved within
``0.64/(gamma u_star^2)``; lemma bounded-updates, corrected, keeps it.

Verdict: fails as printed; holds corrected.
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from lemmas.instances import ROUNDING, OneGroup, engines, in_ball, lemma, seeds, unit

from covey.paper.dynamics import normalized_descent


@lemma
@given(seeds, st.integers(1, 4), st.floats(0.5, 3.0), st.floats(0.02, 0.5), st.floats(0.2, 1.0), engines)
def test_corrected(seed, size, u_star, tau, portion, reference):
    rng = np.random.default_rng(seed)
    gamma = portion / (9 * u_star**2)
    group = OneGroup(u_star, unit(rng, size), gamma=gamma, reference=reference)
    side = rng.choice([-1.0, 1.0, rng.uniform(-1, 1)])
    u0 = u_star * np.sqrt(1 + side * tau)
    adverse = rng.choice([0.0, np.sign(side)])

    def perturbation(t, u, v):
        bound = tau * u_star**2 / 10
        return in_ball(rng, size, bound), bound * (adverse or rng.uniform(-1, 1))

    T = int(np.ceil(5 / (2 * gamma * u_star**2)))
    u, v = group.run(u0, unit(rng, size), T + 20, perturbation)
    assert (v[1:] @ group.v_star >= 1 - tau**2 / 5 - ROUNDING).all()
    assert (np.abs(u[T:] ** 2 - u_star**2) <= tau * u_star**2 / 2 * (1 + ROUNDING)).all()
    early = int(np.ceil(0.64 / (gamma * u_star**2)))
    assert (np.abs(u[early:] ** 2 - u_star**2) <= tau * u_star**2 / 2 * (1 + ROUNDING)).all()


def test_as_printed_fails_for_a_perturbation_orthogonal_to_the_direction():
    w_star, h = np.array([1.0, 0.0]), 0.4 * np.array([0.4, np.sqrt(0.84)])
    tau, gamma, X = 0.5, 0.05, np.sqrt(2) * np.eye(2)
    T = int(5 / (2 * gamma))
    path = normalized_descent(X, X @ h, 2, init_scale=1.0, start=h / 0.4, step_size=gamma, n_steps=3 * T)
    assert np.abs(path.v @ (h - w_star)).max() < 1e-12, "|<v, b>| = |e| = 0 <= tau/10"
    assert (path.v @ w_star < 0.41).all(), "at least 1 - tau^2/5 = 0.95 is promised"
    assert (np.abs(path.u[T:] ** 2 - 1) > 1.1 * tau).all(), "at most tau/2 is promised"


def test_as_printed_fails_without_a_step_limit():
    # beyond gamma = 1/(2 u_star^2) the truth is an unstable fixed point: errors grow, however small tau is
    w_star, tau, gamma, X = np.array([1.0, 0.0]), 0.1, 0.6, np.sqrt(2) * np.eye(2)
    T = int(np.ceil(5 / (2 * gamma)))
    path = normalized_descent(
        X, X @ w_star, 2, init_scale=np.sqrt(1 - tau), start=w_star, step_size=gamma, n_steps=T + 100
    )
    assert (np.abs(path.u[T + 20 :] ** 2 - 1) > tau).all()
