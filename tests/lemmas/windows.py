"""The scale, the step and the time windows of theorems convergence-alg-1 and convergence-alg-2, from their formulas."""

from dataclasses import dataclass

import numpy as np


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
        halvings = np.floor(np.log2(self.u_max**2 / self.zeta))
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
