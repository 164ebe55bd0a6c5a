r"""Lemma phase1 (``lemma:phase1``): from tiny to half of the truth.

Printed: "fix the step size", ``u(0) = alpha <= u_star/5``, updates update-on-u and update-on-v with
``|<v(t), b_t>| <= u_star^2/20`` and ``|e_t| <= u_star^2/20``. Then for

    T >= log(u_star^2 / (2 alpha^2)) / (2 log(1 + gamma u_star^2 / 2)),

``u(T)^2 >= u_star^2/2`` (and ``u(t)^2 <= 3/2 u_star^2`` for all t).

Three things are missing. A limit on gamma, without which the sequence jumps about. The large direction step,
which the proof uses: with a small one a wrong start never turns. And a bound on ``norm(b_t)``: the proof
applies lemma direction-bound-optimal, which needs it, and a perturbation orthogonal to the direction that it
produces is invisible to ``<v, b>``.

Corrected: with ``eta_t = 1/u(t)^4``, ``gamma <= 1/(7 u_star^2)``, ``norm(b_t) <= u_star^2/20`` and ``|e_t| <=
u_star^2/20`` the conclusion holds, with ``u(t)^2 <= 21/20 u_star^2``. Proof: the cosine is at least 399/400, so
below ``u_star^2/2`` a step multiplies u by at least ``1 + 2 gamma (379/400 - 1/2) u_star^2 >= 1 + gamma
u_star^2/2``; and by lemma bounded-updates, corrected, u cannot fall back.

Verdict: fails as printed; holds corrected.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lemmas.instances import ROUNDING, OneGroup, engines, in_ball, lemma, seeds, unit

from covey.paper.dynamics import normalized_descent


def phase_time(u_star, alpha, gamma):
    return int(np.ceil(np.log(u_star**2 / (2 * alpha**2)) / (2 * np.log(1 + gamma * u_star**2 / 2))))


@settings(lemma, max_examples=15)
@given(seeds, st.integers(1, 4), st.floats(0.5, 3.0), st.floats(-3, np.log10(0.2)), st.floats(0.7, 1.0), engines)
def test_corrected(seed, size, u_star, log_alpha, portion, reference):
    rng = np.random.default_rng(seed)
    alpha, gamma = 10**log_alpha * u_star, portion / (7 * u_star**2)
    group = OneGroup(u_star, unit(rng, size), gamma=gamma, reference=reference)
    worst = rng.random() < 0.5

    def perturbation(t, u, v):
        if worst:
            return -(u_star**2) / 20 * group.v_star, -(u_star**2) / 20
        return in_ball(rng, size, u_star**2 / 20), u_star**2 / 20 * rng.uniform(-1, 1)

    T = phase_time(u_star, alpha, gamma)
    u, _ = group.run(alpha, unit(rng, size), T + 20, perturbation)
    assert (u[T:] ** 2 >= u_star**2 / 2 * (1 - ROUNDING)).all()
    assert (u**2 <= 21 / 20 * u_star**2 * (1 + ROUNDING)).all()


def test_as_printed_fails_for_a_perturbation_orthogonal_to_the_direction():
    # Algorithm 1 with constant noise: h = X'y/n = w_star + b with b orthogonal to h and norm(h) = 0.4 u_star^2
    w_star, h = np.array([1.0, 0.0]), 0.4 * np.array([0.4, np.sqrt(0.84)])
    alpha, gamma, X = 0.01, 0.05, np.sqrt(2) * np.eye(2)
    T = phase_time(1.0, alpha, gamma)
    path = normalized_descent(X, X @ h, 2, init_scale=alpha, start=h / 0.4, step_size=gamma, n_steps=20 * T)
    assert np.abs(path.v @ (h - w_star)).max() < 1e-12, "|<v, b>| = |e| = 0 <= 1/20"
    assert (path.u[T:] ** 2 < 0.41).all()


@pytest.mark.parametrize("gamma", [0.75, 1.0])
def test_as_printed_fails_without_a_step_limit(gamma):
    # no perturbation at all
    w_star, alpha, X = np.array([1.0, 0.0]), 0.01, np.sqrt(2) * np.eye(2)
    T = phase_time(1.0, alpha, gamma)
    path = normalized_descent(X, X @ w_star, 2, init_scale=alpha, start=w_star, step_size=gamma, n_steps=T + 200)
    assert (path.u[T:] ** 2 < 0.4).any()


def test_as_printed_fails_with_a_small_direction_step():
    w_star, alpha, gamma, X = np.array([1.0, 0.0]), 0.01, 0.05, np.sqrt(2) * np.eye(2)
    T = phase_time(1.0, alpha, gamma)
    path = normalized_descent(
        X, X @ w_star, 2, init_scale=alpha, start=-w_star, step_size=gamma, direction_step=0.4, n_steps=T
    )
    assert path.u[-1, 0] < alpha
