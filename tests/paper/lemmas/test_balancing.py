r"""Lemma balancing (``lemma:balancing``).

Along the gradient flow of the loss, for every group,

    d/dt ( u_l^2 / 2 - norm(v_l)^2 ) = 0,

on any design, with any noise and any start. For depth N the conserved quantity is ``u_l^2 / N - norm(v_l)^2``.

Gradient descent with step gamma keeps it only to second order. With ``s = v_l'g_l`` a step changes it by
exactly

    gamma^2 (2 u_l^2 s^2 - u_l^4 norm(g_l)^2),

which is how the paper's remark that balancing "is sensitive to the step size" can be checked.

Verdict: holds.
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from lemmas.instances import engines, lemma, seeds

from covey.datasets import make_group_sparse
from covey.groups import Groups
from covey.paper.dynamics import gradient_flow, plain_descent
from covey.paper.theory import balance_drift, balance_increment

SIZES = (3, 1, 2)


def draw(seed):
    rng = np.random.default_rng(seed)
    groups = Groups.from_sizes(rng.permutation(SIZES))
    n = int(rng.choice([2, 5, 9]))  # two rows are few enough that descent works with X rather than with its Gram matrix
    data = make_group_sparse(n, 6, groups, design="gaussian", active=2, values="normal", random_state=seed)
    return data, rng.uniform(0.05, 0.8, 3), rng.standard_normal(6) * rng.uniform(0.05, 1.0)


@lemma
@given(seeds, st.sampled_from([2, 3]))
def test_flow_conserves_the_balance(seed, depth):
    data, u0, v0 = draw(seed)
    path = gradient_flow(data.X, data.y, data.groups, init_scale=u0, start=v0, t_end=2.0, depth=depth, rtol=1e-10)
    balance = path.u**2 / depth - data.groups.norms(path.v) ** 2
    assert np.ptp(path.u, axis=0).max() > 1e-3, "the flow must move for the lemma to say anything"
    np.testing.assert_allclose(balance, np.broadcast_to(balance[0], balance.shape), rtol=1e-6, atol=1e-7)
    drift = balance_drift(path)
    np.testing.assert_allclose(drift.drift, balance - balance[0], atol=1e-15)
    np.testing.assert_allclose(drift.relative, np.abs(drift.drift).max() / (path.u**2).max() * depth)


@lemma
@given(seeds, engines)
def test_descent_drifts_by_the_second_order_term(seed, reference):
    data, u, v = draw(seed)
    gamma = 0.1
    path = plain_descent(
        data.X, data.y, data.groups, init_scale=u, start=v, step_size=gamma, n_steps=1, reference=reference
    )
    w = u[data.groups.labels] ** 2 * v
    g = data.X.T @ (data.y - data.X @ w) / len(data.y)
    s = np.array([v[G] @ g[G] for G in data.groups.lists()])
    drift = np.diff(path.u**2 / 2 - data.groups.norms(path.v) ** 2, axis=0)[0]
    expected = gamma**2 * (2 * u**2 * s**2 - u**4 * data.groups.norms(g) ** 2)
    np.testing.assert_allclose(drift, expected, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(balance_increment(u, v, g, data.groups, gamma), expected, rtol=1e-9, atol=1e-13)
