r"""Theorem convergence-alg-2 (``thm:convergence-alg-2``): Algorithm 2 recovers the truth inside the same window.

Printed: as theorem convergence-alg-1 with ``delta_in <= sqrt(zeta) u_min^2/(120 u_max^3)``, ``delta_out <=
sqrt(zeta) u_min^2/(120 s u_max^3)``, the large direction step until ``u_l^2 >= u_star_l^2/2`` for every l, and
from then on ``eta <= 4/(9 u_max^2)``; the window and the bounds are the same.

Beyond what is said in convergence-alg-1, the condition on eta fails on both sides. Its limit should be that of
lemma direction-bound, ``4/(9 u_max^4)``: with ``u_max = 4`` the printed one makes directions unstable. And
there is no lower limit, although T_lb does not know eta: a tiny step freezes the directions as they were at the
switch, when half of each group was still missing, with an angle of order ``delta_in``, that is of order
``sqrt(zeta)``, not ``zeta``. (Lemma direction-bound keeps ``1 - tau/5`` for one tau; nothing in the proof makes
tau smaller for the directions.)

Corrected: ``gamma/u_min^2 <= eta <= 4/(9 u_max^4)``, with zeta, T_lb and T_ub of the corrected
convergence-alg-1. That leaves an eta only for ``gamma <= 4 u_min^2/(9 u_max^4)``, which is less than the
``1/(20 u_max^2)`` of convergence-alg-1 once ``u_max^2/u_min^2 > 80/9 = 8.9``. The lower limit on eta: after the
switch a step multiplies the tangent of the angle by at most about ``1 - eta u_star^4/2``, so that ``5/(2 gamma
u_min^2)`` steps, which T_lb allows per halving, halve the angle too when ``eta >= gamma/u_min^2``.

Verdict: fails as printed; holds corrected.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lemmas.instances import ROUNDING, coherence, lemma, model_with_gram, seeds
from lemmas.windows import Window, assert_recovers, draw

from covey.groups import Groups


@lemma
@given(seeds, st.floats(-5.0, -3.5), st.floats(0, 1), st.sampled_from([1.4, 2.5, 4.0]))
def test_corrected(seed, log_epsilon, portion, high):
    # u_max/u_min up to 4: for the largest ratios gamma of convergence-alg-1 leaves no eta
    rng, epsilon = np.random.default_rng(seed), 10**log_epsilon
    model, _ = draw(rng, epsilon, lambda zeta, truth: np.sqrt(zeta) / truth.u_max, high=high)
    gamma = min(1 / (20 * model.u_max**2), 4 * model.u_min**2 / (9 * model.u_max**4))
    least, most = gamma / model.u_min**2, 4 / (9 * model.u_max**4)
    assert least <= most * (1 + ROUNDING)
    window = Window.of(model, model.group_noise.max(), epsilon, gamma)
    _, path = assert_recovers(
        rng, model, epsilon, gamma, direction_step=least * (most / least) ** portion, switch="oracle",
        w_star=model.w_star, record_every=max(7, int(window.lower) // 200),
    )  # fmt: skip
    assert path.switch is not None
    assert path.switch <= window.lower


def leaning(u_star, epsilon):
    """Two groups of two columns; in the first, the truth's column leans on the other as far as the theorem allows."""
    delta = np.sqrt(80 * epsilon) / (120 * u_star)
    G = np.eye(4)
    G[0, 1] = G[1, 0] = delta
    model = model_with_gram(np.random.default_rng(0), Groups.from_size(2, 4), G, [u_star**2, 0, 0, 0])
    delta_in, delta_out = coherence(model.X, model.groups)
    assert delta_in <= delta * (1 + 1e-9)
    assert delta_out < 1e-12
    return model


def run(model, epsilon, eta):
    window = Window.of(model, model.entry_noise, epsilon)
    path = model.descend(
        init_scale=window.alpha, step_size=window.gamma, direction_step=eta,
        switch="oracle", w_star=model.w_star, n_steps=int(window.corrected_upper(0.0)), record_every=7,
    )  # fmt: skip
    return window, np.abs(path.w - model.w_star).max(axis=1)[path.t >= window.lower]


def test_as_printed_the_largest_direction_step_fails():
    model, epsilon = leaning(4.0, 1e-3), 1e-3
    printed, lemmas = 4 / (9 * model.u_max**2), 4 / (9 * model.u_max**4)
    window, error = run(model, epsilon, printed)
    assert error.max() > 5 > 60 * window.zeta
    window, error = run(model, epsilon, lemmas)
    assert error.max() < 2 * window.zeta


@pytest.mark.parametrize("eta", [1e-8, 1e-6])
def test_as_printed_a_tiny_direction_step_fails(eta):
    # the error is about delta_in/2 at every time of the window, and sqrt(zeta) is not below a multiple of zeta
    ratios = []
    for epsilon in (1e-6, 1e-8, 1e-10):
        window, error = run(leaning(1.0, epsilon), epsilon, eta)
        assert eta <= 4 / 9
        ratios.append(error.min() / (2 * window.zeta))
    assert ratios[1] > 2
    np.testing.assert_allclose(np.array(ratios[1:]) / ratios[:-1], 10, rtol=0.2)
    # the corrected lower limit mends it
    window, error = run(leaning(1.0, 1e-8), 1e-8, 1 / 20)
    assert error.max() < 1e-3 * window.zeta
