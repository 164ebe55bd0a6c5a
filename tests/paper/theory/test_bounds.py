"""Bounds: every formula at hand-computed values, the disagreements of the paper, and bad input."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from covey import Groups
from covey.paper.theory import FlowTimes, PowerFlowTimes, bounds, bounds_from_path
from covey.path import Path

HAND = {"n": 1000, "p": 300, "L": 100, "epsilon": 0.01, "noise": 0.002, "init_scale": 1e-12, "step_size": 0.001}


@pytest.fixture
def b():
    """u* = 3, 2 among zeros; numbers chosen so that every formula can be done by hand."""
    return bounds([0.0, 3.0, 0.0, 2.0], **HAND)


def test_the_problem_and_its_conditions_by_hand(b):
    """Erratum: the theorem prints u_max^2 where its lemma on the direction step has u_star^4."""
    assert (b.s, b.u_max, b.u_min, b.group_size) == (2, 3.0, 2.0, 3)
    assert b.zeta == b.zeta_corrected == pytest.approx(0.8)
    assert b.n_recoverable == 2
    assert b.init_scale_max == pytest.approx(1e-8 / 6561)
    assert b.step_size_max == pytest.approx(1 / 180)
    assert b.delta_in(1) == pytest.approx(1 / 270)
    assert b.delta_out(1) == pytest.approx(1 / 540)
    assert b.delta_in(2) == pytest.approx(math.sqrt(0.8) * 4 / (120 * 27))
    assert b.delta_out(2) == pytest.approx(math.sqrt(0.8) * 4 / (120 * 2 * 27))
    with pytest.raises(ValueError, match="1 or 2"):
        b.delta_in(3)
    assert b.direction_step_theorem == pytest.approx(4 / 81)
    assert b.direction_step_lemma == pytest.approx(4 / 729)
    assert b.direction_step_min == pytest.approx(0.001 / 4)


def test_each_term_of_the_scale_can_bind():
    assert bounds([1.0, 3.0], n=9, p=9, L=9, epsilon=0.001).init_scale_max == pytest.approx(1e-12 / 3**8)
    assert bounds([1.0, 3.0], n=9, p=9, L=9, epsilon=7.0).init_scale_max == pytest.approx(1 / 3**8)
    assert bounds([0.1, 0.5], n=9, p=99, L=99, epsilon=0.08).init_scale_max == pytest.approx(0.01 / (80 * 99))
    assert bounds(0.001, n=9, p=9, L=9, epsilon=1e-8).init_scale_max == pytest.approx(1e-8 / 9)


def test_times_by_hand(b):
    assert b.T_lb == pytest.approx(math.log(4.5e24) / (2 * math.log(1.002)) + 3 * 625)
    assert b.T_ub == pytest.approx(1250 / 16 * math.log(1e48))
    assert b.T_lb_corrected == b.T_lb
    noisy = bounds([3.0, 0.5], **HAND)  # noise dominates the weaker group
    assert noisy.n_recoverable == 1
    assert noisy.T_lb == pytest.approx(math.log(4.5e24) / (2 * math.log(1.0004)) + 3 * 5 / (2 * 0.001 * 0.8))
    weak = bounds(0.5, **HAND)  # the radius exceeds every group: nothing to wait for
    assert (weak.T_lb, weak.n_recoverable) == (0.0, 0)
    assert b.T_ub_corrected == pytest.approx(math.log(1e6) / math.log(1 + 0.002 * (0.2 + 0.002 * math.sqrt(3))))


def test_noise_in_the_norm_of_a_group():
    """Erratum: the proofs need norm(X_l'xi/n), up to sqrt(p_l) times the largest entry that zeta is printed with."""
    b = bounds([3.0, 2.0], **{**HAND, "noise": 0.01}, group_size=4)
    assert b.zeta == pytest.approx(0.8)
    assert b.zeta_corrected == pytest.approx(1.6)
    assert b.error_radius_corrected == pytest.approx(3.2)
    assert b.T_lb_corrected == pytest.approx(math.log(4.5e24) / (2 * math.log(1.002)) + 2 * 625)
    assert bounds([3.0, 2.0], **HAND, group_noise=0.05).zeta_corrected == pytest.approx(4.0)
    assert bounds([3.0, 2.0], **HAND, group_noise=0.08).n_recoverable == 1
    assert bounds([3.0, 2.0], **HAND, group_noise=0.3).T_lb_corrected == 0.0


def test_promises_by_hand(b):
    assert b.error_radius == pytest.approx(1.6)
    assert b.error_radius_corrected == pytest.approx(1.6)
    assert b.off_support_radius == 1e-12
    assert b.squared_error == pytest.approx(2 * 1.6**2)
    loud = bounds(1.0, n=9, p=20, L=11, epsilon=1e-4, init_scale=0.1)  # groups off the support count too
    assert loud.squared_error == pytest.approx((2 * 80e-4) ** 2 + 10 * 0.01)
    assert (b.corollary_rate, b.corollary_rate_corrected, b.minimax_rate, b.confidence) == (None,) * 4
    assert (b.epsilon_statement, b.epsilon_proof) == (None, None)


def test_the_corollarys_two_epsilons_and_rates():
    b = bounds(2.0, n=100, p=50, L=10, sigma=0.5)
    assert b.epsilon == b.epsilon_statement == pytest.approx(2 * math.sqrt(0.25 * math.log(100) / 100))
    assert b.epsilon_proof == pytest.approx(math.sqrt(2) * b.epsilon_statement)
    assert b.noise == b.epsilon
    assert b.zeta == pytest.approx(80 * b.epsilon)
    assert bounds(2.0, n=100, p=50, L=10, sigma=0.5, epsilon="proof").epsilon == b.epsilon_proof
    assert b.init_scale == pytest.approx(b.init_scale_max)
    assert b.init_scale < b.init_scale_max
    assert b.step_size == b.step_size_max
    # the statement's value has the claimed probability only with the proof's constant
    assert b.confidence == pytest.approx(1 - 1 / (2 * 50))
    assert bounds(2.0, n=100, p=50, L=10, sigma=0.5, epsilon="proof").confidence == pytest.approx(1 - 1 / (8 * 50**3))
    rates = bounds(1.0, s=2, n=100, p=60, L=12, sigma=0.5)
    assert rates.u_star == (1.0, 1.0)
    assert rates.corollary_rate == pytest.approx(2 * 0.25 * math.log(60) / 100)
    assert rates.corollary_rate_corrected == pytest.approx(2 * 0.25 * (5 + math.log(60)) / 100)
    assert rates.minimax_rate == pytest.approx(0.25 * 2 * (5 + 1 + math.log(6)) / 100)


def test_reading(b):
    value = b.to_frame().set_index("quantity")["value"]
    for algorithm in (1, 2):
        assert value[f"delta_in, algorithm {algorithm}"] == b.delta_in(algorithm)
        assert value[f"delta_out, algorithm {algorithm}"] == b.delta_out(algorithm)
    for name in value.index:
        if "algorithm" not in name and value[name] is not None and not name.startswith("flow."):
            assert value[name] == getattr(b, name) or math.isnan(value[name])
    text = str(b)
    assert "direction_step_lemma" in text
    assert "epsilon_proof" not in text  # without sigma it has no value
    assert "epsilon_proof" in str(bounds(1.0, n=9, p=9, L=3, sigma=1.0))


def test_from_a_fitted_path():
    groups = Groups.from_sizes([2, 3])
    coefs = sp.csr_array(np.array([[0.0] * 5, [3.0, 4.0, 0.0, 0.0, 0.0]]))
    path = Path(times=np.array([0, 10]), coefs=coefs, intercepts=np.zeros(2), groups=groups)
    b = bounds_from_path(path, 10, n=50, sigma=1.0)
    assert b.u_star == (pytest.approx(math.sqrt(5)),)
    assert (b.p, b.L, b.group_size) == (5, 2, 3)
    with pytest.raises(ValueError, match="no positive entry"):
        bounds_from_path(path, 0, n=50, sigma=1.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": None}, "epsilon=None needs sigma.*give the precision"),
        ({"epsilon": 0.0}, "epsilon must be above 0"),
        ({"epsilon": math.nan}, "epsilon must be"),
        ({"epsilon": "statement"}, "needs sigma"),
        ({"epsilon": "other", "sigma": 1.0}, '"statement" or "proof"'),
        ({"sigma": 0.0}, "sigma must be above 0.*noiseless"),
        ({"sigma": -1.0}, "sigma must be above 0"),
        ({"noise": -1.0}, "noise must be"),
        ({"group_noise": -1.0}, "group_noise must be"),
        ({"group_size": 0}, "group_size must be"),
        ({"u_star": -1.0}, "u_star must be finite and not negative"),
        ({"u_star": 0.0}, "no positive entry"),
        ({"u_star": [0.0, 0.0]}, "no positive entry"),
        ({"u_star": math.inf}, "u_star must be finite and not negative"),
        ({"u_star": [[1.0]]}, "a number or a vector"),
        ({"u_star": [1.0] * 4}, "only 3 groups"),
        ({"u_star": [1.0, 1.0], "s": 3}, "2 positive entries, but s=3"),
        ({"s": 0}, "s must be at least 1"),
        ({"n": 0}, "n must be at least 1"),
        ({"n": 2.5}, "n must be a whole number"),
        ({"p": 2}, "3 groups but only 2 columns"),
        ({"init_scale": 0.0}, "init_scale must be above 0"),
        ({"init_scale": 1.0}, "below 1"),
        ({"step_size": -1.0}, "step_size must be above 0"),
        ({"epsilon": 1e-90}, "underflows"),
    ],
)
def test_bad_input(changes, message):
    given = {"u_star": 1.0, "n": 10, "p": 6, "L": 3, "epsilon": 0.1, **changes}
    with pytest.raises(ValueError, match=message):
        bounds(given.pop("u_star"), **given)


# ---------------------------------------------------------------------- gradient flow


def test_flow_times_by_hand():
    f = FlowTimes(u_max=3.0, u_min=2.0, epsilon=0.09, noise=0.04, group_noise=0.08, theta=0.001)
    assert f.init_scale_max == pytest.approx(0.005)
    assert f.zeta == pytest.approx(4.0)
    B, rest = 0.01, 0.47 * 4
    grow = 2 ** (1 / 3) * 3 ** (4 / 3) * 1e6 / ((1 - 6 * B) * math.sqrt(2) * 4 * 1e-3)
    assert f.T_l == pytest.approx(grow + 2 * math.log2(50) / (3 * rest * (math.sqrt(2) * rest) ** (1 / 3)))
    late = FlowTimes(u_max=3.0, u_min=2.0, epsilon=0.09, noise=0.04, theta=1e3)  # the first term is gone
    assert late.T_l == pytest.approx(2 * math.log2(50) / (3 * rest * (math.sqrt(2) * rest) ** (1 / 3)), rel=1e-6)
    assert f.T_u == pytest.approx(math.log(1000) / (2e-6 + math.sqrt(2) * 4e-5))
    assert f.T_l_corrected == pytest.approx(
        1000 / (math.sqrt(2) * 3.92) + math.log(27.24 / 0.09) / (3 * (math.sqrt(2) * 3.92) ** (4 / 3))
    )
    assert f.T_u_corrected == pytest.approx((1000 - math.sqrt(1000)) / (math.sqrt(2) * 0.08))


def test_flow_defaults_and_edges():
    b = bounds([3.0, 2.0], n=10, p=30, L=10, epsilon=0.09)
    assert b.flow.init_scale == pytest.approx(0.0025)
    assert b.flow.T_u_corrected == math.inf
    assert b.flow.T_l > b.flow.T_u  # the printed window is empty here, too
    loud = FlowTimes(u_max=1.0, u_min=1.0, epsilon=0.1, noise=2.0, group_noise=2.0)
    assert loud.T_l == loud.T_l_corrected == math.inf
    with pytest.raises(ValueError, match="depth must be at least 2"):
        PowerFlowTimes(1, 1.0, 1.0, 0.1)
    coarse = FlowTimes(u_max=1.0, u_min=1.0, epsilon=5.0)
    assert coarse.init_scale == 0.5
    assert coarse.T_l_corrected == pytest.approx(math.sqrt(2))
