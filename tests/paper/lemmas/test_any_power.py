r"""The corrected theorems for any power N: ``w_l = u_l^N v_l``, on instances at the limits of their conditions.

In the paper's proofs perturbations and directions enter through ``w`` alone; the recursion of a magnitude is the one
thing that N changes. Each formula of `covey.paper.theory.PowerBounds` is checked where it can fail: the step by its
sharp limit, the window by runs of Algorithms 1 and 2 at the largest coherence, step, start and noise that it allows.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lemmas.instances import lemma, make_model, random_directions, seeds
from lemmas.windows import draw, largest_scale

from covey.paper.dynamics import normalized_descent
from covey.paper.theory import PowerFlowTimes, bounds, power_bounds, time_window

DEPTHS = [2, 3, 4]


def magnitude_steps(u, r, gamma, N, n_steps=1):
    """The unperturbed recursion of one group, stepped by covey."""
    X = np.ones((1, 1))
    path = normalized_descent(
        X, [r], 1, init_scale=u, start=[1.0], step_size=gamma, depth=N, n_steps=n_steps, record_every=n_steps
    )
    return float(path.u[-1, 0])


@pytest.mark.parametrize("N", [2, 3, 4, 7])
@lemma
@given(r=st.floats(0.05, 20.0), share=st.floats(0.01, 0.9999))
def test_monotone_step_never_passes_the_truth(N, r, share):
    b = power_bounds([r], L=1, epsilon=1e-3, depth=N)
    assert magnitude_steps(share * r ** (1 / N), r, b.step_size_monotone, N) <= r ** (1 / N) * (1 + 1e-12)


@pytest.mark.parametrize("N", [2, 3, 4, 7])
def test_monotone_step_is_sharp(N):
    r = 1.7
    gamma = 1.01 * power_bounds([r], L=1, epsilon=1e-3, depth=N).step_size_monotone
    assert magnitude_steps(0.9999 * r ** (1 / N), r, gamma, N) > r ** (1 / N)


@pytest.mark.parametrize("N", DEPTHS)
@settings(lemma, max_examples=15)
@given(r=st.floats(0.2, 5.0), scale=st.floats(0.02, 0.2))
def test_growth_takes_no_longer_than_phase_1_says(N, r, scale):
    # the slowest growth that the lemma allows: cosine 4/5 and a perturbation of r/20 leave 3/4 of the signal
    alpha = scale * r ** (1 / N)
    b = power_bounds([r], L=1, epsilon=r / 1e4, depth=N, init_scale=min(alpha, 0.5))
    reached = magnitude_steps(b.init_scale, 0.75 * r, b.step_size, N, int(np.ceil(b.T_grow)))
    assert reached**N >= r / 2
    # and a time of less than a third would not do
    assert magnitude_steps(b.init_scale, 0.75 * r, b.step_size, N, int(0.3 * b.T_grow)) ** N < r / 2


@pytest.mark.parametrize(("N", "at_once"), [(2, 0.0), (3, 1.0)])
def test_growth_from_beyond_half_of_the_norm_takes_no_time(N, at_once):
    """And does not make the window open earlier than the halvings of phase 2 allow."""
    b = power_bounds([0.5], L=3, epsilon=1e-4, depth=N, init_scale=0.9)
    assert b.T_grow == at_once
    assert b.T_lb == at_once + np.floor(np.log2(0.5 / b.zeta)) * b.T_halve


@pytest.mark.parametrize("N", DEPTHS)
@lemma
@given(r=st.floats(0.2, 5.0), tau=st.floats(0.01, 0.5), above=st.booleans())
def test_halving_takes_no_longer_than_phase_2_says(N, r, tau, above):
    b = power_bounds([r], L=1, epsilon=r / 1e4, depth=N)
    # cosine 1 - tau^2/5 and a perturbation of tau r/10, both against the group
    target = r * (1 + 0.1 * tau) if above else r * (1 - 0.3 * tau)
    u = (r * (1 + tau if above else 1 - tau)) ** (1 / N)
    reached = magnitude_steps(u, target, b.step_size, N, int(np.ceil(b.T_halve))) ** N
    assert abs(reached - r) <= 0.5 * tau * r


def bounds_of(model, epsilon, N, **options):
    return power_bounds(
        model.groups.norms(model.w_star), L=model.groups.n_groups, epsilon=epsilon, depth=N,
        group_noise=float(model.group_noise.max()), **options,
    )  # fmt: skip


def assert_recovers(model, path, b, records=20):
    """The promise of the theorem at every record of the window, and the ceiling off the support until its end."""
    assert b.T_lb <= b.T_ub
    inside = (path.t >= b.T_lb) & (path.t <= b.T_ub)
    assert inside.sum() > records
    errors, norms = model.groups.norms(path.w - model.w_star), model.groups.norms(path.w)
    assert (errors[inside][:, model.S] <= b.error_radius).all()
    assert (norms[path.t <= b.T_ub][:, model.off] <= b.off_support_radius).all()
    assert time_window(path, model.w_star, bounds=b).contains((b.T_lb, min(b.T_ub, path.t[-1])))


@pytest.mark.parametrize("N", DEPTHS)
@settings(lemma, max_examples=8)
@given(seeds)
def test_algorithm_1_at_the_limits(N, seed):
    rng, epsilon = np.random.default_rng(seed), 2e-3
    model, sizes = draw(rng, epsilon)
    b = bounds_of(model, epsilon, N)
    assert b.error_radius < model.groups.norms(model.w_star)[model.S].min(), "the bound must say more than w = 0 does"
    n_steps = int(np.ceil(b.T_ub))
    path = model.descend(
        init_scale=b.init_scale, step_size=b.step_size, depth=N,
        start=random_directions(rng, sizes), n_steps=n_steps, record_every=max(1, n_steps // 400),
    )  # fmt: skip
    assert_recovers(model, path, b)


@pytest.mark.parametrize("which", ["least step", "largest step"])
@pytest.mark.parametrize("N", DEPTHS)
@settings(lemma, max_examples=4)
@given(seeds)
def test_algorithm_2_at_the_limits(N, which, seed):
    rng, epsilon = np.random.default_rng(seed), 2e-3
    model, sizes = draw(rng, epsilon, lambda zeta, truth: np.sqrt(zeta) / truth.u_max, high=1.2)
    b = bounds_of(model, epsilon, N)
    eta = b.direction_step_min if which == "least step" else b.direction_step_max
    assert b.direction_step_min <= b.direction_step_max
    n_steps = int(np.ceil(b.T_ub))
    path = model.descend(
        init_scale=b.init_scale, step_size=b.step_size, depth=N,
        direction_step=eta, switch="oracle", w_star=model.w_star,
        start=random_directions(rng, sizes), n_steps=n_steps, record_every=max(1, n_steps // 400),
    )  # fmt: skip
    assert path.switch is not None
    assert_recovers(model, path, b)


@pytest.mark.parametrize("N", [3, 4])
def test_direction_steps_outside_the_limits_fail(N):
    """What the errata of theorem 2 say of N = 2 is true of N: too large a step diverges, a tiny one freezes."""
    rng, epsilon = np.random.default_rng(0), 1e-9
    r = 16.0
    delta = power_bounds([r], L=2, epsilon=epsilon, depth=N).delta_in(2)
    model = make_model(rng, [2, 2], [0.6 * r, 0.8 * r, 0, 0], delta_in=delta)

    def last_error(eta):
        b = bounds_of(model, epsilon, N, init_scale=0.05 * r ** (1 / N))
        path = model.descend(
            init_scale=b.init_scale, step_size=b.step_size, depth=N,
            direction_step=eta(b), switch="oracle", w_star=model.w_star, n_steps=int(b.T_grow) + 40 * int(b.T_halve),
            record_every=50,
        )  # fmt: skip
        return float(np.abs(path.w[-1] - model.w_star)[:2].max()), b

    good, b = last_error(lambda b: b.direction_step_min)
    assert good < 2 * b.zeta
    assert last_error(lambda b: b.direction_step_max)[0] < 2 * b.zeta
    # the printed form of the limit, 4/(9 u_max^2), for N = 2 as for others
    assert last_error(lambda b: 4 / (9 * r))[0] > 1
    assert last_error(lambda b: 1e-5 * b.direction_step_min)[0] > 2 * b.zeta


@pytest.mark.parametrize("N", [2, 3, 4, 6])
@settings(lemma, max_examples=200)
@given(
    st.floats(-2, 2), st.floats(0.05, 1), st.integers(1, 1000), st.floats(-6, -0.01), st.floats(0, 1),
    st.floats(0.01, 1.0), st.floats(-5, -0.01),
)  # fmt: skip
def test_window_is_open_for_every_admissible_choice(N, log_r, ratio, L, log_zeta, share, step, log_shrink):
    r_max = 10**log_r
    epsilon = 10**log_zeta * r_max / 80
    given = {"L": L, "epsilon": epsilon, "depth": N, "group_noise": share * epsilon}
    largest = power_bounds([r_max, ratio * r_max][: max(1, min(L, 2))], **given)
    gamma = step * largest.step_size_max
    at_gamma = power_bounds(largest.norms, step_size=gamma, **given)
    b = power_bounds(
        largest.norms, step_size=gamma, init_scale=min(0.5, 10**log_shrink * at_gamma.init_scale_max), **given
    )
    assert b.T_lb <= b.T_ub


@pytest.mark.parametrize("N", DEPTHS)
def test_flow_on_an_orthogonal_design(N):
    theta, epsilon, noise = 0.15, 0.02, 0.01
    rng = np.random.default_rng(N)
    model = make_model(rng, [2, 2, 3], [1.0, 0, 0.8, 0.9, 0, 0, 0], noise_correlation=noise * np.eye(7)[[4]].sum(0))
    norms = model.groups.norms(model.w_star)
    times = PowerFlowTimes(N, norms.max(), norms[:2].min(), epsilon, noise, theta)
    assert times.T_l < times.T_u
    path = model.flow(init_scale=theta, depth=N, times=[0.0, times.T_l, times.T_u])
    reached = model.groups.norms(path.w - model.w_star)
    assert (reached[1:, :2] <= epsilon).all()
    assert (model.groups.norms(path.w)[1:, 2] <= times.off_support_radius).all()
    # by half of T_l the weaker group is not there: the time is of the right order
    early = model.flow(init_scale=theta, depth=N, times=[0.0, 0.5 * times.T_l])
    assert model.groups.norms(early.w - model.w_star)[-1, :2].max() > epsilon


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"norms": [0.0], "L": 2, "epsilon": 0.1}, "no positive entry"),
        ({"norms": [1e300], "L": 2, "epsilon": 0.1}, "whose powers overflow"),
        ({"norms": [1.0, 1.0], "L": 1, "epsilon": 0.1}, "only 1 groups"),
        ({"norms": [-1.0], "L": 1, "epsilon": 0.1}, "not negative"),
        ({"norms": [1.0], "L": 1, "epsilon": 0.1, "depth": 1}, "depth"),
        ({"norms": [1.0], "L": 1, "epsilon": 0.0}, "epsilon"),
        ({"norms": [1.0], "L": 1, "epsilon": 0.1, "init_scale": 2.0}, "below 1"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        power_bounds(**arguments)


@pytest.mark.parametrize("N", [2, 3, 4])
def test_step_of_theorem_2_leaves_room_for_a_direction_step(N):
    if N == 2:  # the formulas of the paper's own theorem
        mine, known = power_bounds([1.69, 1.0], L=9, epsilon=1e-3), bounds([1.3, 1.0], n=9, p=18, L=9, epsilon=1e-3)
        for name in ("step_size", "step_size_max_alg_2", "init_scale", "off_support_radius", "direction_step_min"):
            assert getattr(mine, name) == pytest.approx(getattr(known, name))
        assert mine.direction_step_max == pytest.approx(known.direction_step_lemma)
        assert mine.init_scale_max == pytest.approx(largest_scale(1.3, 1.0, 9, 1e-3))
    widest = (80 / 9) ** (N / 2)
    for ratio, room in ((0.99 * widest, True), (1.01 * widest, False)):
        b = power_bounds([ratio, 1.0], L=2, epsilon=1e-6, depth=N)
        assert (b.direction_step_min <= b.direction_step_max) == room
        assert (b.step_size_max_alg_2 == b.step_size_max) == room
        slower = power_bounds([ratio, 1.0], L=2, epsilon=1e-6, depth=N, step_size=b.step_size_max_alg_2)
        assert slower.direction_step_min <= slower.direction_step_max * (1 + 1e-12)
