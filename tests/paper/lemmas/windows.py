"""Theorems convergence-alg-1 and -2: scale, step and time windows by their formulas, models at their limits."""

from dataclasses import dataclass

import numpy as np
from lemmas.instances import ROUNDING, coherence, make_model, noise_with_group_norms, random_directions, random_truth


@dataclass
class Window:
    """All quantities of the two theorems for given magnitudes, noise and precision.

    ``noise`` is ``norm(X'xi/n)_inf`` for the printed theorem and ``max_l norm(X_l'xi/n)_2`` for the corrected one.
    """

    u_max: float
    u_min: float
    L: int
    noise: float
    epsilon: float
    gamma: float
    alpha: float

    @classmethod
    def of(cls, model, noise, epsilon, gamma=None, shrink=0.9):
        """For a model, with the largest step and a scale just below the theorem's limit."""
        u_max, u_min, L = model.u_max, model.u_min, model.groups.n_groups
        gamma = 1 / (20 * u_max**2) if gamma is None else gamma
        return cls(u_max, u_min, L, noise, epsilon, gamma, shrink * largest_scale(u_max, u_min, L, epsilon))

    @property
    def zeta(self):
        return 80 * max(self.noise, self.epsilon)

    @property
    def slowest(self):
        """``zeta v u_min^2``."""
        return max(self.zeta, self.u_min**2)

    @property
    def lower(self):
        """``T_lb``, as printed."""
        first = np.log(self.u_max**2 / 2) - 2 * np.log(self.alpha)
        halvings = max(0.0, np.floor(np.log2(self.u_max**2 / self.zeta)))  # zeta may exceed u_max^2 by a rounding
        return first / (2 * np.log1p(self.gamma / 2 * self.slowest)) + halvings * 5 / (2 * self.gamma * self.slowest)

    @property
    def printed_upper(self):
        """The printed lower bound on ``T_ub``, which is the proof's ``T_3``."""
        return 5 / (16 * self.gamma * self.slowest) * -4 * np.log(self.alpha)

    def corrected_upper(self, off_noise):
        """``log(1/alpha) / (4 gamma B)`` with ``B = u_min^2/20 + off_noise``."""
        return -np.log(self.alpha) / (4 * self.gamma * (self.u_min**2 / 20 + off_noise))


def largest_scale(u_max, u_min, L, epsilon):
    """The limit of both theorems on alpha."""
    return min(min(epsilon**4, 1.0) / u_max**8, u_min**2 / (80 * L), epsilon / L)


def draw(rng, noise_level, delta_factor=lambda zeta, truth: 1.0, low=1.0, high=1.4):
    """A model at the theorem's limits of coherence, with group noise at most ``noise_level``: ``(model, sizes)``."""
    sizes = rng.integers(1, 4, size=4)
    s = int(rng.integers(1, 4))
    w_star = random_truth(rng, sizes, s, low=low, high=high)
    truth = make_model(rng, sizes, w_star)
    limit = delta_factor(80 * noise_level, truth) * truth.u_min**2 / (120 * truth.u_max**2)
    noise = noise_with_group_norms(rng, sizes, noise_level * rng.choice([1.0, 0.3], size=4))
    return at_the_limit(rng, sizes, w_star, limit, s, noise), sizes


def at_the_limit(rng, sizes, w_star, limit, s, noise):
    """A model with ``delta_in = limit`` and ``delta_out = limit/s``."""
    model = make_model(rng, sizes, w_star, delta_in=limit, delta_out=limit / s, noise_correlation=noise)
    delta_in, delta_out = coherence(model.X, model.groups)
    assert delta_in <= limit * (1 + ROUNDING)
    assert delta_out <= limit / s * (1 + ROUNDING)
    return model


def assert_recovers(rng, model, epsilon, gamma=None, *, settled=True, record_every=7, **options):
    """Run from random directions; the error bounds of the corrected theorem at every record of the window."""
    window = Window.of(model, model.group_noise.max(), epsilon, gamma)
    upper = window.corrected_upper(model.group_noise[model.off].max())
    path = model.descend(
        init_scale=window.alpha, step_size=window.gamma, start=random_directions(rng, model.groups.sizes),
        n_steps=int(upper), record_every=record_every, **options,
    )  # fmt: skip
    assert window.lower <= upper
    inside = (path.t >= window.lower) & (path.t <= upper)
    assert inside.sum() > 20
    errors, norms = model.groups.norms(path.w - model.w_star), model.groups.norms(path.w)
    assert (errors[inside][:, model.S] <= 2 * window.zeta).all()
    assert (norms[path.t <= upper][:, model.off] <= window.alpha).all()
    if settled:
        # stronger than the theorem: by T_lb the groups of the support have in fact settled where their correlation
        # vanishes, at most noise / (1 - delta_in - s delta_out) from the truth
        assert (errors[inside][:, model.S] <= 1.1 * max(window.noise, window.epsilon)).all()
    return window, path
