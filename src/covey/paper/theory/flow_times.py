"""Times of the gradient-flow theorem (gf-es): as printed, and from the exact flow of one group.

On an orthogonal design with a balanced start along ``X_l'y/n``, directions do not change (Lemma dir-not-change) and the
balance fixes ``norm(v_l) = u_l/sqrt(2)``. With ``C = norm(X_l'y/n)``, each group then follows the scalar flow

    u' = sqrt(2) C u^2 - u^5,        norm(w_l) = u^3/sqrt(2)  ->  C.

The corrected times follow from this equation directly, without the inequalities in which the printed ones slip.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from covey.paper.theory.power_flow import PowerFlowTimes

__all__ = ["FlowTimes"]


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
        """``100 norm(X'xi/n, inf)``: this theorem's own threshold."""
        return 100.0 * self.noise

    # ------------------------------------------------------------------ as printed

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

    # ------------------------------------------------------------------ from the exact flow

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
