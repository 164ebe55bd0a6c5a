"""Times of Algorithm 1 for a single group: when it has settled, and how long it stays small.

On an orthogonal design directions point along ``X_l'y/n`` from the first step on, and with ``c = norm(X_l'y/n)`` the
magnitude of a group follows

    u <- u (1 + 2 gamma (c - u^2)).

The window of theorem convergence-alg-1 bounds the growth of this sequence by a quarter of its true value, and its
precision by 80 times the noise. The times here are those of the sequence itself.
"""

from __future__ import annotations

import math

from covey.validation import positive, whole

__all__ = ["group_noise_bound", "opening_scale", "rest_time", "settle_time"]


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
