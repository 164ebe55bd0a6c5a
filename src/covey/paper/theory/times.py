"""Times of a single group, by its scalar equation: of the gradient flow for any N, and of Algorithm 1.

*Flow* (theorem gf-es: as printed for N = 2, and from the exact flow of one group for any N). On an orthogonal design
with a balanced start along ``X_l'y/n``, directions do not change (Lemma dir-not-change) and the balance fixes
``norm(v_l) = u_l/sqrt(N)``. With ``C = norm(X_l'y/n)``, each group then follows the scalar flow

    u' = sqrt(N) C u^N - u^(2N+1),        norm(w_l) = u^(N+1)/sqrt(N)  ->  C.

The corrected times follow from this equation directly, without the inequalities in which the printed ones slip.

*Algorithm 1*. On an orthogonal design directions point along ``X_l'y/n`` from the first step on, and the magnitude of a
group follows

    u <- u (1 + 2 gamma (C - u^2)).

The window of theorem convergence-alg-1 bounds the growth of this sequence by a quarter of its true value, and its
precision by 80 times the noise. The times here are those of the sequence itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from covey.validation import positive, whole


@dataclass(frozen=True)
class PowerFlowTimes:
    """Scale and times of Theorem gf-es for a power N; for N = 2 the corrected ones of `covey.paper.theory.FlowTimes`.

    `r_max` and `r_min` are the largest and the least ``norm(w*_l)`` on the support, `epsilon` is the precision,
    `group_noise` a bound on ``max_l norm(X_l'xi/n)``, and `theta` the start of every magnitude, by default half the
    largest allowed.
    """

    depth: int
    r_max: float
    r_min: float
    epsilon: float
    group_noise: float = 0.0
    theta: float | None = None

    def __post_init__(self) -> None:
        whole(self.depth, "depth", least=2)

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
    """Scale and times of Theorem gf-es, as printed and, from `corrected`, of the exact flow.

    `noise` and `group_noise` are bounds on ``norm(X'xi/n, inf)`` and on ``max_l norm(X_l'xi/n)``, and `theta` is the
    start of every magnitude, by default half the largest allowed.
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


def settle_time(level: float, *, init_scale: float, step_size: float, precision: float) -> float:
    """The time from which ``level - precision <= u^2 <= level``, for a group with ``norm(X_l'y/n) = level``.

    ``(1 + 2 gamma c)/(4 gamma c) log((c/alpha^2 - 1)(c - d)/d)`` with c the level and d the precision: since
    ``log(1 + x) >= x/(1 + x)``, the sequence is never behind the logistic flow ``(u^2)' = 4 gamma' u^2 (c - u^2)`` with
    ``gamma' = gamma/(1 + 2 gamma c)``. It needs ``gamma <= 1/(4 c)`` (lemma monotonicity).

    >>> round(settle_time(1.0, init_scale=1e-6, step_size=0.05, precision=0.1), 1)
    164.1
    """
    rise, rate = _rise(level, step_size, precision)
    level, alpha = float(level), positive(init_scale, "init_scale")
    behind = alpha / math.sqrt(level)
    if behind >= 1:
        return 0.0
    return max(0.0, rate * (rise - 2 * math.log(behind) + math.log1p(-behind * behind)))


def rest_time(noise: float, *, init_scale: float, step_size: float) -> float:
    """The time until which ``u <= sqrt(alpha)``, for a group with ``|v'g| <= noise``.

    ``log(1/sqrt(alpha))/log(1 + 2 gamma b)`` with b the noise: the first line of the proof of lemma noise-bound.
    """
    noise = positive(noise, "noise", zero=True)
    gamma, alpha = positive(step_size, "step_size"), positive(init_scale, "init_scale")
    growth = math.log1p(2.0 * gamma * noise)
    return math.inf if growth == 0 else max(0.0, -0.5 * math.log(alpha) / growth)


def opening_scale(level: float, noise: float, *, step_size: float, noise_step: float, precision: float) -> float | None:
    """The start below which a group of this level settles before a noise group wakes up; None if there is none.

    Both times grow linearly in ``log(1/alpha)``; the second must grow faster, which for small steps means
    ``noise < level/2``.
    """
    rise, rate = _rise(level, step_size, precision)
    growth = math.log1p(2.0 * positive(noise_step, "noise_step") * positive(noise, "noise", zero=True))
    gained = 0.5 / growth - 2.0 * rate if growth > 0 else math.inf
    if gained <= 0:
        return None
    return min(1.0, math.exp(-max(0.0, rate * (rise + math.log(level)) / gained)))


def group_noise_bound(sigma: float, n: float, p: int, L: int, trace: float, largest: float) -> float:
    """``norm(X_l'xi/n)`` of all groups is below this with probability ``1 - 1/(8p^3)``, for sub-Gaussian noise.

    ``sigma/sqrt(n) (sqrt(t) + sqrt(2 e log(8 L p^3)))`` with t the trace and e the largest eigenvalue of the group's
    ``X_l'X_l/n``: the tail of a quadratic form (Hsu, Kakade and Zhang, 2012) and a union over L groups. For orthonormal
    groups t is the size and e is 1: the order of the corrected corollary, size plus log p.
    """
    sigma, n = positive(sigma, "sigma", zero=True), positive(n, "n")
    trace, largest = positive(trace, "trace", zero=True), positive(largest, "largest", zero=True)
    tail = math.log(8) + math.log(whole(L, "L")) + 3.0 * math.log(whole(p, "p"))
    return sigma / math.sqrt(n) * (math.sqrt(trace) + math.sqrt(2.0 * largest * tail))


def _rise(level: float, step_size: float, precision: float) -> tuple[float, float]:
    """``log((c - d)/d)``, and the iterations per unit of a logarithm."""
    c, d, gamma = positive(level, "level"), positive(precision, "precision"), positive(step_size, "step_size")
    if not d < c:
        raise ValueError(f"precision must lie between 0 and the level, {c:g}; it is {d:g}.")
    speed = 4 * gamma * c
    if not 0 < speed < math.inf:
        raise ValueError(f"step_size={gamma:g} times the level, {c:g}, overflows.")
    return math.log(c - d) - math.log(d), 1 / speed + 0.5
