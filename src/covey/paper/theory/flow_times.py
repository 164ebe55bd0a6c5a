"""Times of the gradient-flow theorem (gf-es): as printed for N = 2, and from the exact flow of one group for any N.

On an orthogonal design with a balanced start along ``X_l'y/n``, directions do not change (Lemma dir-not-change) and the
balance fixes ``norm(v_l) = u_l/sqrt(N)``. With ``C = norm(X_l'y/n)``, each group then follows the scalar flow

    u' = sqrt(N) C u^N - u^(2N+1),        norm(w_l) = u^(N+1)/sqrt(N)  ->  C.

The corrected times follow from this equation directly, without the inequalities in which the printed ones slip.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["FlowTimes", "PowerFlowTimes"]


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


@dataclass(frozen=True)
class FlowTimes:
    """Scale and times of Theorem gf-es.

    Attributes
    ----------
    u_max, u_min, epsilon : float
    noise, group_noise : float
        Bounds on ``norm(X'xi/n, inf)`` and on ``max_l norm(X_l'xi/n)``.
    theta : float or None
        The initial value of every magnitude; by default half the largest allowed.
    """

    u_max: float
    u_min: float
    epsilon: float
    noise: float = 0.0
    group_noise: float = 0.0
    theta: float | None = None

    @property
    def init_scale_max(self) -> float:
        """``theta < epsilon/(2 u_max^2)``."""
        return self.epsilon / (2.0 * self.u_max**2)

    @property
    def init_scale(self) -> float:
        """The theta in use. The theorem assumes that it is small; it is kept below 1."""
        return min(0.5 * self.init_scale_max, 0.5) if self.theta is None else self.theta

    @property
    def zeta(self) -> float:
        """``100 norm(X'xi/n, inf)``: the threshold of this theorem."""
        return 100.0 * self.noise

    @property
    def T_l(self) -> float:
        """The printed start of the window.

        ``2^(1/3) u_max^(4/3) / (theta^3 (1-6B) sqrt(2) u_min^2)
        + 2 log2(u_max^2/(2 epsilon)) / (3 u_min^2 (1/2-3B) (sqrt(2) (1/2-3B) u_min^2)^(1/3))``, ``B = noise/u_min^2``.
        It grows like theta^-3 where the exact flow needs theta^-1: the proof replaces an exponential by its argument.
        """
        B = self.noise / self.u_min**2
        if 6 * B >= 1:
            return math.inf
        theta, low, high = self.init_scale, self.u_min**2, self.u_max**2
        grow = 2 ** (1 / 3) * self.u_max ** (4 / 3) / theta**2 / ((1 - 6 * B) * math.sqrt(2) * low * theta)
        rest = (0.5 - 3 * B) * low
        halvings = max(0.0, math.log2(high / (2 * self.epsilon)))
        return grow + 2 * halvings / (3 * rest * (math.sqrt(2) * rest) ** (1 / 3))

    @property
    def T_u(self) -> float:
        """The printed end of the window: ``log(1/theta) / (2 theta^2 + sqrt(2) theta B)``, ``B = norm(X'xi/n, inf)``.

        It exceeds the exact time by a factor near log(1/theta): the growth of a group off the support is
        ``sqrt(2) u^3 B`` in u^2/2, and the proof has u^4.
        """
        theta = self.init_scale
        return math.log(1 / theta) / (2 * theta**2 + math.sqrt(2) * theta * self.noise)

    @property
    def corrected(self) -> PowerFlowTimes:
        """The times of the exact flow, for N = 2."""
        return PowerFlowTimes(2, self.u_max**2, self.u_min**2, self.epsilon, self.group_noise, self.init_scale)

    @property
    def T_l_corrected(self) -> float:
        """The time from which every group of the support is within epsilon of its ``norm(X_l'y/n)``."""
        return self.corrected.T_l

    @property
    def T_u_corrected(self) -> float:
        """``u_l <= sqrt(theta)`` off the support until ``(1/theta - 1/sqrt(theta)) / (sqrt(2) group_noise)``."""
        return self.corrected.T_u
