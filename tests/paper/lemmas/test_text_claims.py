"""What the text says in passing, outside of lemmas and theorems: each sentence a test.

- "If the initialization on v_i is incorrect, the sign of v_i may not move with a small step size" (standard sparsity).
- "Our results still hold if one choose to switch after the time when the criterion is first satisfied."
- "With an appropriate choice of tau, the practical criterion would imply the theoretical criterion."
- "Random Gaussian matrices satisfy such conditions with high probability" (the assumption on the design).
- "In the degenerate case of size-one groups, our bounds coincide with previous results."
- "This initialization can be obtained by a single step of gradient descent with 0 initialization."
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lemmas.instances import lemma, make_model, random_directions, random_truth, seeds

from covey.datasets import make_group_sparse
from covey.groups import Groups
from covey.paper.datasets import legacy_paper_data
from covey.paper.dynamics import SwitchAt, SwitchSettled, normalized_descent, plain_descent
from covey.paper.theory import bounds, coherence


@pytest.fixture(scope="module")
def figure_3():
    return legacy_paper_data(support=range(5, 14))


# ------------------------------------------------------------------ a small direction step and groups of one


def wrong_signs(direction_step, n_steps=600):
    """Groups of one, an orthogonal design without noise, every sign of the support wrong at the start."""
    data = make_group_sparse(40, 10, 1, design="orthogonal", active=4, values=[1, -1, 2, -2], sigma=0.0, random_state=0)
    start = -np.where(data.w_star == 0, 1.0, np.sign(data.w_star))
    path = normalized_descent(
        data.X, data.y, 1, step_size=0.02, direction_step=direction_step, start=start, n_steps=n_steps,
        w_star=data.w_star,
    )  # fmt: skip
    return data, path, start


@pytest.mark.parametrize("eta", [1e-3, 1.0, 100.0])
def test_a_small_direction_step_leaves_wrong_signs_stuck(eta):
    """A sign turns when eta u^2 |g| > 1; with a wrong one u only shrinks from 1e-6, so no ordinary eta turns it."""
    data, path, start = wrong_signs(eta)
    np.testing.assert_array_equal(path.v, np.broadcast_to(start, path.v.shape))
    assert (np.diff(path.u[:, :4], axis=0) < 0).all()
    assert path.error.min() >= np.sum(data.w_star**2)


def test_the_large_direction_step_turns_them_at_once():
    data, path, _ = wrong_signs("large")
    np.testing.assert_array_equal(path.v[1, :4], np.sign(data.w_star[:4]))
    assert path.error[-1] < 1e-6


# ------------------------------------------------------------------ when to switch


def settled(data, switch):
    return normalized_descent(
        data.X, data.y, data.groups, direction_step=1e-3, switch=switch, n_steps=3000, w_star=data.w_star
    )


def test_switching_later_than_the_criterion_is_fine(figure_3):
    first = settled(figure_3, "oracle")
    errors = [settled(figure_3, SwitchAt(first.switch + later)).error[-1] for later in (0, 100, 400, 1000)]
    np.testing.assert_allclose(errors, first.error[-1], rtol=1e-3)
    assert errors[0] < 0.02


@pytest.mark.parametrize("tau", [0.0005, 0.001, 0.005, 0.03])
def test_the_practical_criterion_implies_the_theoretical_one_on_figure_3_unless_tau_is_too_large(figure_3, tau):
    path = settled(figure_3, SwitchSettled(tau))
    assert path.switch is not None
    assert (path.u[path.switch, :3] ** 2 >= figure_3.u_star[:3] ** 2 / 2).all() == (tau < 0.03)
    assert (path.switch >= settled(figure_3, "oracle").switch) == (tau < 0.03)


@lemma
@given(seeds, st.floats(0.1, 1.0))
def test_an_appropriate_tau_is_gamma_u_min_squared(seed, share):
    """On an orthogonal design a change below tau says u*^2 - u^2 < tau/(2 gamma), at most u*^2/2 for this tau.

    The rule is armed by the first group and asks all of them, so that the weakest decides.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, size=4)
    model = make_model(rng, sizes, random_truth(rng, sizes, 3, low=0.7, high=2.0))
    gamma = 1 / (20 * model.u_max**2)
    path = model.descend(
        step_size=gamma, direction_step=1e-6, start=random_directions(rng, sizes),
        switch=SwitchSettled(share * gamma * model.u_min**2), n_steps=6000,
    )  # fmt: skip
    assert path.switch is not None
    assert (path.u[path.switch, model.S] ** 2 >= model.u_star[model.S] ** 2 / 2 * (1 - 1e-9)).all()


# ------------------------------------------------------------------ designs that meet the assumption

DESIGNS = {
    "Gaussian": lambda rng, n, p: rng.standard_normal((n, p)),
    "Rademacher": lambda rng, n, p: rng.choice([-1.0, 1.0], (n, p)),
    "uniform": lambda rng, n, p: rng.uniform(-(3**0.5), 3**0.5, (n, p)),
}


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("size", [1, 3, 6])
def test_random_designs_are_as_incoherent_as_the_root_of_n(design, size):
    """delta_in and delta_out are of order sqrt((k + log L)/n): the slope is -1/2, and a constant of 3 will do."""
    p, rows = 60, np.array([250, 1000, 4000])
    L = p // size
    found = []
    for n in rows:
        values = []
        for seed in range(4):
            X = DESIGNS[design](np.random.default_rng(seed), n, p)
            both = coherence(X, Groups.from_size(size, p))
            values.append((both.delta_in, both.delta_out))
        found.append(np.mean(values, axis=0))
        assert (found[-1] <= 3 * np.sqrt((size + np.log(L)) / n)).all()
    found = np.array(found)
    if design == "Rademacher" and size == 1:
        assert not found[:, 0].any()  # columns of exactly unit mean square
        found = found[:, 1:]
    slopes = np.polyfit(np.log(rows), np.log(found), 1)[0]
    np.testing.assert_allclose(slopes, -0.5, atol=0.06)


# ------------------------------------------------------------------ groups of one and earlier work


@lemma
@given(st.integers(1, 50), st.floats(1e-3, 1.0), st.integers(50, 10_000), st.integers(100, 10_000))
def test_bounds_for_groups_of_one_are_those_of_plain_sparsity(s, sigma, n, p):
    """Noise by entry and by group is the same, and the rate is the s sigma^2 log(p)/n of Vaskevicius et al. (2019)."""
    b = bounds(np.ones(s), n=n, p=p, L=p, sigma=sigma, init_scale=1e-9)
    assert b.group_size == 1
    assert b.zeta == b.zeta_corrected
    assert b.T_lb == b.T_lb_corrected
    assert b.corollary_rate == pytest.approx(s * sigma**2 * np.log(p) / n)
    assert b.corollary_rate_corrected / b.corollary_rate == pytest.approx(1 + 1 / np.log(p))


@pytest.mark.parametrize("n", [150, 600])
def test_groups_of_one_reach_the_rate_of_plain_sparsity(n):
    ratios = []
    for seed in range(6):
        data = make_group_sparse(n, 200, 1, active=5, values=[1, -1, 1, -1, 1], sigma=0.5, random_state=seed)
        path = normalized_descent(data.X, data.y, 1, step_size=0.05, n_steps=600, record_every=5, w_star=data.w_star)
        ratios.append(path.error.min() / (5 * 0.25 * np.log(200) / n))
    assert np.mean(ratios) < 1.0


# ------------------------------------------------------------------ the warm start


@lemma
@given(seeds, st.floats(1e-6, 1.0), st.floats(1e-4, 1.0))
def test_one_step_from_zero_is_the_warm_start(seed, alpha, step):
    """``v_l(1) = gamma u_l(0)^2 X_l'y/n`` and magnitudes have not moved: the start of lemma warm-up-init."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, size=5)
    p = int(sizes.sum())
    X, y = rng.standard_normal((20, p)), rng.standard_normal(20)
    groups = Groups.from_sizes(sizes)
    path = plain_descent(X, y, groups, init_scale=alpha, step_size=step, start="zero", n_steps=1)
    np.testing.assert_allclose(path.v[1], step * alpha**2 * X.T @ y / 20, rtol=1e-9)
    np.testing.assert_array_equal(path.u[1], path.u[0])
    aligned = plain_descent(X, y, groups, init_scale=alpha, start="aligned", n_steps=0).v[0]
    unit = path.v[1] / groups.norms(path.v[1])[groups.labels]
    np.testing.assert_allclose(unit, aligned / groups.norms(aligned)[groups.labels], rtol=1e-9)
