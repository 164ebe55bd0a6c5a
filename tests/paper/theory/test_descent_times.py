"""settle_time, rest_time, opening_scale and group_noise_bound, against the sequences and the noise they are about."""

import math

import numpy as np
import pytest

from covey.paper.theory import group_noise_bound, opening_scale, rest_time, settle_time


def scalar_descent(level, alpha, gamma, n_steps):
    """``u <- u (1 + 2 gamma (level - u^2))``: Algorithm 1 of one group on an orthogonal design."""
    u = [alpha]
    for _ in range(n_steps):
        u.append(u[-1] * (1 + 2 * gamma * (level - u[-1] ** 2)))
    return np.array(u)


@pytest.mark.parametrize("level", [0.3, 1.0, 20.0])
@pytest.mark.parametrize("share", [0.25, 0.05, 0.001], ids=["largest step", "default", "small"])
@pytest.mark.parametrize("alpha", [1e-8, 1e-3])
@pytest.mark.parametrize("close", [0.5, 0.01])
def test_a_group_has_settled_by_then_and_not_long_before(level, share, alpha, close):
    gamma, precision = share / level, close * level
    T = settle_time(level, init_scale=alpha, step_size=gamma, precision=precision)
    u = scalar_descent(level, alpha, gamma, math.ceil(T) + 50)
    assert (u**2 <= level * (1 + 1e-12)).all()
    assert (u[math.ceil(T) :] ** 2 >= level - precision).all()
    # sharp but for log(1 + x) >= x/(1 + x), with x = 2 gamma c
    settled = int(np.argmax(u**2 >= level - precision))
    assert settled * (1 + 2 * gamma * level) >= T - 1


def test_a_start_above_the_level_has_settled():
    assert settle_time(1.0, init_scale=2.0, step_size=0.05, precision=0.1) == 0.0
    assert math.isfinite(settle_time(1.0, init_scale=1e-300, step_size=0.05, precision=0.1))
    with pytest.raises(ValueError, match="precision must lie between 0 and the level"):
        settle_time(1.0, init_scale=1e-6, step_size=0.05, precision=1.0)


@pytest.mark.parametrize("noise", [0.01, 1.0])
def test_a_group_of_noise_rests_until_then_and_no_longer(noise):
    alpha, gamma = 1e-6, 0.05
    T = rest_time(noise, init_scale=alpha, step_size=gamma)
    u = alpha * (1 + 2 * gamma * noise) ** np.arange(math.floor(T) + 2.0)
    assert (u[: math.floor(T) + 1] <= math.sqrt(alpha)).all()
    assert u[-1] > math.sqrt(alpha)
    assert rest_time(0.0, init_scale=alpha, step_size=gamma) == math.inf


@pytest.mark.parametrize("noise", [0.2, 0.35, 0.44])
def test_at_the_opening_scale_the_two_times_meet(noise):
    steps = {"step_size": 0.05, "precision": 1e-4}
    alpha = opening_scale(1.0, noise, noise_step=0.04, **steps)
    settled = settle_time(1.0, init_scale=alpha, **steps)
    assert settled == pytest.approx(rest_time(noise, init_scale=alpha, step_size=0.04), rel=2e-3)
    for factor in (0.5, 2.0):
        rests = rest_time(noise, init_scale=factor * alpha, step_size=0.04)
        assert (settle_time(1.0, init_scale=factor * alpha, **steps) < rests) == (factor < 1)
    assert opening_scale(1.0, 0.7, noise_step=0.04, **steps) is None


def test_the_noise_of_groups():
    """By hand, and never exceeded in a hundred draws (the probability allows one in 8 p^3)."""
    assert group_noise_bound(2.0, 100, 10, 5, 4.0, 1.0) == pytest.approx(0.2 * (2 + math.sqrt(2 * math.log(40 * 1000))))
    assert group_noise_bound(2.0, 100, 10, 5, 4.0, 3.0) == pytest.approx(0.2 * (2 + math.sqrt(6 * math.log(40 * 1000))))
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.standard_normal((60, 20)))[0] * math.sqrt(60)
    bound = group_noise_bound(0.5, 60, 20, 5, 4.0, 1.0)
    for draw in (rng.standard_normal, lambda n: rng.choice([-1.0, 1.0], n)):
        norms = [np.linalg.norm((X.T @ (0.5 * draw(60)) / 60).reshape(5, 4), axis=1).max() for _ in range(50)]
        assert 0.25 * bound < max(norms) < bound
