"""Times of the gradient flow of ``w_l = u_l^N v_l`` on an orthogonal design, for any power N (gf-es, corrected).

With a balanced start along ``X_l'y/n``, directions do not change and ``norm(v_l) = u_l/sqrt(N)``. With
``C = norm(X_l'y/n)``, each group then follows the scalar flow

    u' = sqrt(N) C u^N - u^(2N+1),        norm(w_l) = u^(N+1)/sqrt(N)  ->  C.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["PowerFlowTimes"]


@dataclass(frozen=True)
class PowerFlowTimes:
    """Scale and times of Theorem gf-es for a power N; for N = 2 the corrected ones of `covey.paper.theory.FlowTimes`.

    Attributes
    ----------
    depth : int
    r_max, r_min : float
        The largest and the least ``norm(w*_l)`` on the support.
    epsilon, group_noise : float
        The precision, and a bound on ``max_l norm(X_l'xi/n)``.
    theta : float or None
        The initial value of every magnitude; by default half the largest allowed.
    """

    depth: int
    r_max: float
    r_min: float
    epsilon: float
    group_noise: float = 0.0
    theta: float | None = None

    @property
    def init_scale(self) -> float:
        """The theta in use: ``epsilon/(4 r_max)`` by default, kept below 1."""
        return min(0.25 * self.epsilon / self.r_max, 0.5) if self.theta is None else self.theta

    @property
    def T_l(self) -> float:
        """The time from which every group of the support is within epsilon of its ``norm(X_l'y/n)``.

        ``theta^(1-N)/(sqrt(N) (N-1) C) + log((N+1) C_max/epsilon) / (3 (sqrt(N) C)^(2N/(N+1)))`` with
        ``C = r_min - group_noise`` and ``C_max = r_max + group_noise``. With ``x = u/(sqrt(N) C)^(1/(N+1))`` the time
        is the integral of ``x^-N + x/(1 - x^(N+1))`` over ``(sqrt(N) C)^(2N/(N+1))``, and ``x/(1 - x^(N+1))`` is at
        most ``1/(3 (1 - x))``, because ``1 + x + ... + x^N >= 1 + x + x^2 >= 3x``.
        """
        N, C = self.depth, self.r_min - self.group_noise
        if C <= 0:
            return math.inf
        grow = self.init_scale ** (1 - N) / (math.sqrt(N) * (N - 1) * C)
        settle = max(0.0, math.log((N + 1) * (self.r_max + self.group_noise) / self.epsilon))
        return grow + settle / (3 * (math.sqrt(N) * C) ** (2 * N / (N + 1)))

    @property
    def T_u(self) -> float:
        """The time until which ``u_l <= sqrt(theta)`` off the support, where only noise acts.

        ``(theta^(1-N) - theta^((1-N)/2)) / (sqrt(N) (N-1) group_noise)``.
        """
        if self.group_noise == 0:
            return math.inf
        N, theta = self.depth, self.init_scale
        return (theta ** (1 - N) - theta ** ((1 - N) / 2)) / (math.sqrt(N) * (N - 1) * self.group_noise)

    @property
    def off_support_radius(self) -> float:
        """``theta^((N+1)/2)/sqrt(N)``: the norm of ``w_l(t)`` off the support until T_u."""
        return self.init_scale ** ((self.depth + 1) / 2) / math.sqrt(self.depth)
