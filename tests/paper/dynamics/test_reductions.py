"""Where the answer is known by other means."""

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

from covey.datasets import make_group_sparse
from covey.paper.dynamics import SwitchAt, SwitchOracle, SwitchSettled, gradient_flow, normalized_descent, plain_descent


def test_size_one_groups_only_carry_signs():
    data = make_group_sparse(80, 40, 1, active=4, values=[1, -1, 1, -1], random_state=0)
    path = normalized_descent(data.X, data.y, 1, step_size=0.05, n_steps=300, w_star=data.w_star)
    np.testing.assert_allclose(np.abs(path.v), 1, rtol=1e-12)
    assert path.error.min() < 0.05


def test_scaling_y_scales_w():
    """y -> c y with u -> sqrt(c) u and gamma -> gamma/c is the same run in other units."""
    data = make_group_sparse(40, 24, 3, active=2, values=2.0, random_state=2)
    path = normalized_descent(data.X, data.y, data.groups, init_scale=1e-3, step_size=0.01, n_steps=400)
    scaled = normalized_descent(data.X, 9 * data.y, data.groups, init_scale=3e-3, step_size=0.01 / 9, n_steps=400)
    np.testing.assert_allclose(scaled.w, 9 * path.w, rtol=1e-7, atol=1e-9)


def test_one_group_of_everything_tends_to_least_squares():
    data = make_group_sparse(60, 10, 10, active=1, values="normal", random_state=3)
    path = normalized_descent(data.X, data.y, data.groups, step_size=0.02, n_steps=4000, record_every=4000)
    np.testing.assert_allclose(path.w[-1], np.linalg.lstsq(data.X, data.y, rcond=None)[0], rtol=1e-6)


def test_a_run_goes_on_where_another_ended_and_any_unit_start_reaches_the_same_model():
    data = make_group_sparse(random_state=0)
    end = normalized_descent(data.X, data.y, data.groups, n_steps=800).w[-1]
    half = normalized_descent(data.X, data.y, data.groups, n_steps=400)
    rest = normalized_descent(data.X, data.y, data.groups, n_steps=400, init_scale=half.u[-1], start=half.v[-1])
    np.testing.assert_allclose(rest.w[-1], end, rtol=1e-9, atol=1e-12)
    for v in np.random.default_rng(1).standard_normal((2, 300)):
        v /= data.groups.norms(v)[data.groups.labels]
        other = normalized_descent(data.X, data.y, data.groups, start=v, n_steps=800).w[-1]
        np.testing.assert_allclose(other, end, atol=1e-3)


def test_tiny_scales_neither_under_nor_overflow():
    data = make_group_sparse(60, 12, 3, design="orthogonal", active=1, values=2.0, sigma=0.1, random_state=0)
    path = normalized_descent(
        data.X, data.y, data.groups, init_scale=1e-150, step_size=0.02, n_steps=4000, record_every=100,
        w_star=data.w_star,
    )  # fmt: skip
    assert path.error[-1] < 0.01


def test_a_huge_direction_step_leaves_directions_of_unit_norm():
    """Squares of the step overflow; the directions are then along the gradient."""
    data = make_group_sparse(60, 12, 3, active=1, values=2.0, sigma=0.1, random_state=0)
    path = normalized_descent(data.X, data.y, data.groups, direction_step=1e170, n_steps=5)
    np.testing.assert_allclose(data.groups.norms(path.v), 1, rtol=1e-12)


@pytest.mark.parametrize(("depth", "options"), [(2, {}), (3, {"init_scale": 0.3, "step_size": 1e-4})])
def test_switch_rules_and_the_oracle_which_waits_until_every_group_is_half_way(depth, options):
    data = make_group_sparse(values=np.arange(5.0, 14.0), random_state=0)

    def run(switch):
        return normalized_descent(
            data.X, data.y, data.groups, direction_step=1e-3, switch=switch, n_steps=900, w_star=data.w_star,
            depth=depth, **options,
        )  # fmt: skip

    path, norms = run("oracle"), data.groups.norms(data.w_star)
    half = (path.u**depth >= norms / 2).all(axis=1)
    assert half.any()
    assert path.switch == np.argmax(half) == run(SwitchOracle(norms ** (1 / depth))).switch
    assert run(300).switch == run(SwitchAt(300)).switch == 300
    assert run(0.01).switch == run(SwitchSettled(0.01)).switch is not None


def test_the_practical_rule_waits_until_a_group_has_grown():
    """tau above the first rate of growth would fire at once; armed, it waits for a group at half its estimate."""
    data = make_group_sparse(values=np.arange(5.0, 14.0), random_state=0)
    first = 2e-3 * data.groups.norms(data.X.T @ data.y / 150).max()
    path = normalized_descent(data.X, data.y, data.groups, direction_step=1e-3, switch=2 * first, n_steps=900)
    estimate = data.groups.norms(data.X.T @ data.y / 150)
    assert path.switch == np.argmax((path.u**2 >= estimate / 2).any(axis=1)) > 100


def test_flow_dense_output_and_the_equation_as_printed():
    data = make_group_sparse(30, 12, 3, active=2, values="normal", random_state=0)
    coarse = gradient_flow(data.X, data.y, data.groups, init_scale=0.1, times=[0.0, 5.0])
    fine = gradient_flow(data.X, data.y, data.groups, init_scale=0.1, times=np.linspace(0, 5, 11))
    np.testing.assert_allclose(coarse.at(2.5), fine.w[5], rtol=1e-6, atol=1e-8)
    labels, L = data.groups.labels, data.groups.n_groups

    def printed(_, x):
        """Equation of the flow in u and v themselves; covey follows log u and v/u."""
        u, v = x[:L], x[L:]
        g = data.X.T @ (data.y - data.X @ (u[labels] ** 2 * v)) / 30
        return np.r_[2 * u * np.bincount(labels, v * g), u[labels] ** 2 * g]

    end = solve_ivp(printed, (0, 5), np.r_[coarse.u[0], coarse.v[0]], "DOP853", rtol=1e-10, atol=1e-13).y[:, -1]
    np.testing.assert_allclose(end[labels] ** 2 * end[L:], coarse.w[-1], rtol=1e-6, atol=1e-8)


def test_flow_follows_its_closed_form_on_an_orthogonal_design():
    """Balanced and aligned, du/dt = sqrt(2) u^2 (c - u^3/sqrt(2)) with c = norm(X_l'y/n): time is a quadrature."""
    data = make_group_sparse(40, 6, 3, design="orthogonal", active=1, values=1.0, sigma=0.0, random_state=0)
    path = gradient_flow(data.X, data.y, data.groups, init_scale=0.05, t_end=12.0, rtol=1e-11)
    c = np.linalg.norm(data.X[:, :3].T @ data.y / 40)
    for u in (0.1, 0.3, 1.0, 1.3):
        t, _ = quad(lambda x: 1 / (np.sqrt(2) * x**2 * (c - x**3 / np.sqrt(2))), 0.05, u)
        np.testing.assert_allclose(np.linalg.norm(path.at(t)[:3]), u**3 / np.sqrt(2), rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(path.w[-1, :3]), c, rtol=1e-6)


def test_flow_from_a_tiny_start():
    """Far below the solver's absolute tolerance, where the plain coordinates would be lost."""
    data = make_group_sparse(30, 6, 3, design="orthogonal", active=1, values=1.0, sigma=0.1, random_state=0)
    path = gradient_flow(data.X, data.y, data.groups, init_scale=1e-11, t_end=1e11)
    assert path.status == "completed"
    np.testing.assert_allclose(path.w[-1, :3], data.X[:, :3].T @ data.y / 30, rtol=1e-6)
    np.testing.assert_allclose(path.w[0, :3], 0, atol=1e-32)
    assert (path.w[0] != 0).all()


def test_flow_refuses_a_time_that_cannot_be_resolved():
    data = make_group_sparse(30, 6, 3, design="orthogonal", active=1, values=1.0, random_state=0)
    with pytest.raises(ValueError, match="Use a larger init_scale"):
        gradient_flow(data.X, data.y, data.groups, init_scale=1e-120)


def test_plain_descent_follows_the_flow_as_the_step_falls():
    data = make_group_sparse(30, 12, 3, active=2, values="normal", random_state=0)
    flow = gradient_flow(data.X, data.y, data.groups, init_scale=0.2, times=[0.0, 2.0])
    gaps = []
    for step in (0.02, 0.01, 0.005):
        path = plain_descent(
            data.X, data.y, data.groups, init_scale=0.2, start="aligned", step_size=step, n_steps=round(2 / step)
        )
        gaps.append(np.linalg.norm(path.w[-1] - flow.w[-1]))
    assert gaps[2] < 0.3 * gaps[0]  # first order: a quarter, but for the second-order part


@pytest.mark.parametrize("depth", [2, 3])
def test_the_automatic_direction_step_is_the_lemmas_limit(depth):
    """4/(9 c^2) with c the largest norm(X_l'y/n), which stands for u_max^2."""
    data = make_group_sparse(60, 30, 3, active=2, values=2.0, sigma=0.5, random_state=0)
    c = data.groups.norms(data.X.T @ data.y / 60).max()
    assert c > 2  # so that 4/(9 c) is another number
    options = {"step_size": 0.01, "n_steps": 150, "init_scale": 0.5, "switch": 3, "depth": depth}
    auto, given = (
        normalized_descent(data.X, data.y, data.groups, direction_step=step, **options)
        for step in ("auto", 4 / (9 * c**2))
    )
    np.testing.assert_array_equal(auto.w, given.w)
    other = normalized_descent(data.X, data.y, data.groups, direction_step=4 / (9 * c), **options)
    assert np.abs(other.w - auto.w).max() > 1e-3


@pytest.mark.parametrize("depth", [2, 3, 5])
@pytest.mark.parametrize("scale", ["one", "each"])
def test_the_aligned_start_is_balanced_and_along_the_correlation(depth, scale):
    """norm(v_l)^2 = u_l^2/N and v_l along X_l'y/n, for plain descent and for the flow; lemma balancing keeps it so."""
    data = make_group_sparse(40, 12, 3, active=2, values=1.0, sigma=0.5, random_state=0)
    alpha = 0.3 if scale == "one" else np.array([0.2, 0.3, 0.4, 0.5])
    g = (data.X.T @ data.y / 40).reshape(4, 3)
    wanted = (np.broadcast_to(alpha, 4) / np.sqrt(depth))[:, None] * g / np.linalg.norm(g, axis=1, keepdims=True)
    options = {"init_scale": alpha, "start": "aligned", "depth": depth}
    path = plain_descent(data.X, data.y, data.groups, n_steps=0, **options)
    np.testing.assert_allclose(path.v[0].reshape(4, 3), wanted, rtol=1e-12)
    flow = gradient_flow(data.X, data.y, data.groups, t_end=0.5, **options)
    np.testing.assert_allclose(flow.v[0].reshape(4, 3), wanted, rtol=1e-9)
    np.testing.assert_allclose(data.groups.norms(flow.v) ** 2, flow.u**2 / depth, rtol=1e-6)
