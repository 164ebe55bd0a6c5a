"""The convergence theorems for any power N: ``w_l = u_l^N v_l`` with directions of unit norm.

The paper proves its theorems for N = 2. Perturbations, directions and coherence enter its proofs through ``w`` alone,
so they carry over with ``u*^2`` replaced by the norm of the group, ``r_l = norm(w*_l)``. Only the recursion of a
magnitude changes,

    u(t+1) = u(t) + gamma N u(t)^(N-1) (r - u(t)^N + e_t),

and with it the step, the start and the times. `docs/theory.md` derives each formula; for N = 2 they are the corrected
ones of `covey.paper.theory.Bounds`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from covey.paper.theory.times import PowerFlowTimes
from covey.validation import FloatArray, as_numbers, one_of, positive, whole

# (1 + a)^(N-1) with a = gamma N u^(N-2) r/4 <= 1/(20 N) while a group grows: the loss of a step relative to the flow
STEP_LOSS = math.exp(1 / 20)

# Fourth powers of magnitudes and norms must be finite numbers.
LARGEST = 1e70


class Quantity(property):
    """A property that is a row of the table, with its place in the paper."""

    def __init__(self, source: str) -> None:
        self.source = source

    def __call__(self, formula: Callable[[Any], float | None]) -> Quantity:
        super().__init__(formula)
        return self


class Quantities:
    """What has quantities, and limits on the coherence for both algorithms: as a table and as text."""

    delta_in: Callable[[int], float]
    delta_out: Callable[[int], float]

    def _frame(self, *more: tuple[str, float, str]) -> pd.DataFrame:
        """One row per quantity, in the order of definition, then the limits on the coherence, then more."""
        found = [(n, getattr(self, n), q.source) for n, q in vars(type(self)).items() if isinstance(q, Quantity)]
        for k in (1, 2):
            found.append((f"delta_in, algorithm {k}", self.delta_in(k), f"convergence-alg-{k}"))
            found.append((f"delta_out, algorithm {k}", self.delta_out(k), f"convergence-alg-{k}"))
        return pd.DataFrame([*found, *more], columns=["quantity", "value", "source"])

    def _text(self, head: str, frame: pd.DataFrame) -> str:
        """The head, and one line per quantity that has a value."""
        known = frame.dropna()
        lines = zip(known.quantity, known.value, known.source, strict=True)
        return "\n".join([head, *(f"  {quantity:<24} {value:>12.5g}  {source}" for quantity, value, source in lines)])


@dataclass(frozen=True)
class PowerBounds(Quantities):
    """Conditions and guarantees of the corrected Theorems convergence-alg-1 and -2 for ``w_l = u_l^N v_l``.

    The result of `power_bounds`. Attributes are the inputs; properties are the formulas. `depth` is the power N,
    `norms` are ``r_l = norm(w*_l)`` of the non-zero groups, `L` is the number of groups, `epsilon` the precision and
    `group_noise` a bound on ``max_l norm(X_l'xi/n)``. Times and radii are those at `init_scale`, alpha, and
    `step_size`, gamma.
    """

    depth: int
    norms: tuple[float, ...]
    L: int
    epsilon: float
    group_noise: float
    init_scale: float
    step_size: float

    @property
    def s(self) -> int:
        """Non-zero groups."""
        return len(self.norms)

    @property
    def r_max(self) -> float:
        """The largest norm of a group."""
        return max(self.norms)

    @property
    def r_min(self) -> float:
        """The least norm of a non-zero group."""
        return min(self.norms)

    @Quantity("noise by its norm in a group")
    def zeta(self) -> float:
        """``80 max(max_l norm(X_l'xi/n), epsilon)``, the same for every N."""
        return 80.0 * max(self.group_noise, self.epsilon)

    @property
    def n_recoverable(self) -> int:
        """Groups with ``r_l >= zeta``; the others are only guaranteed to stay small."""
        return sum(r >= self.zeta for r in self.norms)

    @Quantity("monotonicity")
    def step_size_monotone(self) -> float:
        """``gamma <= 1/(N^2 r_max^(2-2/N))``: Lemma monotonicity. Any larger step overshoots the truth."""
        return 1.0 / self.contraction(self.r_max)

    @Quantity("convergence-alg-1")
    def step_size_max(self) -> float:
        """``gamma <= 1/(5 N^2 r_max^(2-2/N))``: the theorems' step, ``1/(20 u_max^2)`` for N = 2."""
        return self.step_size_monotone / 5.0

    @Quantity("convergence-alg-2")
    def step_size_max_alg_2(self) -> float:
        """``min(step_size_max, 16 r_min^(2/N)/(9 N^2 r_max^2))``: leaves room for a direction step.

        At `step_size_max` the limits `direction_step_min` and `direction_step_max` leave none once
        ``r_max/r_min > (80/9)^(N/2)``: 8.9 for N = 2, 79 for N = 4.
        """
        N = self.depth
        return min(self.step_size_max, 16.0 * self.r_min ** (2 / N) / (9.0 * N**2 * self.r_max**2))

    @Quantity("convergence-alg-1")
    def init_scale_max(self) -> float:
        """The start must be below this, so that groups off the support are negligible and the window is open.

        For N = 2 the paper's ``min((epsilon^4 ^ 1)/r_max^4, r_min/(80 L), epsilon/L)``. For N > 2
        ``(2 alpha)^N < min(r_min/(80 L), epsilon/L)``, ``alpha < r_min^(1/N)/5``, and, so that ``T_lb <= T_ub``,
        ``alpha^(2-N) ((1 - 2^(2-N))/B - 4 exp(1/20)/m) > gamma N (N-2) (1 + floor(log2(r_max/zeta)) T_halve)``.
        """
        N, r_max, r_min = self.depth, self.r_max, self.r_min
        if N == 2:
            return largest_init_scale(self.epsilon, math.sqrt(r_max), math.sqrt(r_min), self.L)
        negligible = min(r_min / (80.0 * self.L), self.epsilon / self.L) ** (1 / N) / 2.0
        small = r_min ** (1 / N) / 5.0
        if self.zeta >= r_max:
            return min(negligible, small)
        # the noise is at most m/80, so B <= m/16 and the difference is positive: 8/m - 4.3/m for N = 3, then larger
        spare = (1 - 2.0 ** (2 - N)) / self.leakage - 4 * STEP_LOSS / max(self.zeta, r_min)
        settle = math.floor(math.log2(r_max / self.zeta)) * self.T_halve
        return min(negligible, small, (spare / (self.step_size * N * (N - 2) * (1 + settle))) ** (1 / (N - 2)))

    @Quantity("direction-bound")
    def direction_step_max(self) -> float:
        """``eta <= 4/(9 r_max^2)`` after the switch: Lemma direction-bound, the same for every N."""
        return 4.0 / (9.0 * self.r_max**2)

    @Quantity("convergence-alg-2")
    def direction_step_min(self) -> float:
        """``eta >= N^2 gamma/(4 r_min^(2/N))``: below it, directions settle more slowly than magnitudes.

        A step shrinks the error of a magnitude by ``gamma N^2 r^(2-2/N)`` and that of a direction by ``eta r^2``.
        """
        return self.depth**2 * self.step_size / (4.0 * self.r_min ** (2 / self.depth))

    def delta_in(self, algorithm: int = 1) -> float:
        """``r_min/(120 r_max)``, times ``sqrt(zeta/r_max)`` for Algorithm 2; the same for every N."""
        return self.coherence_bound(self.zeta, algorithm)

    def coherence_bound(self, zeta: float, algorithm: int) -> float:
        """`delta_in` for any threshold zeta; the theorem as printed has another one."""
        shrink = 1.0 if one_of(algorithm, (1, 2), "algorithm") == 1 else math.sqrt(zeta / self.r_max)
        return self.r_min / (120.0 * self.r_max) * shrink

    def delta_out(self, algorithm: int = 1) -> float:
        """`delta_in` divided by the number of non-zero groups."""
        return self.delta_in(algorithm) / self.s

    def contraction(self, r: float) -> float:
        """``N^2 r^(2-2/N)``: near the truth a step of gamma shrinks the error of a magnitude by gamma times this."""
        return self.depth**2 * r ** (2 - 2 / self.depth)

    @property
    def leakage(self) -> float:
        """B of equation noise-bound: the influence of other groups and of the noise on a group off the support."""
        return self.r_min / 20.0 + self.group_noise

    @Quantity("phase1")
    def T_grow(self) -> float:
        """The time by which every recoverable group has half of its norm (Lemma phase1); a larger start has it at once.

        ``4 exp(1/20) (alpha^(2-N) - (r_max/2)^((2-N)/N)) / (gamma N (N-2) m) + 1`` for N > 2, with
        ``m = max(zeta, r_min)``; for N = 2 the paper's ``log(r_max/(2 alpha^2)) / (2 log(1 + gamma m/2))``.
        """
        return self._grow(max(self.zeta, self.r_min))

    def _grow(self, m: float) -> float:
        N, gamma = self.depth, self.step_size
        if N == 2:
            # the square of a tiny start would underflow
            distance = math.log(self.r_max / 2) - 2 * math.log(self.init_scale)
            return max(0.0, distance) / (2 * math.log1p(gamma * m / 2))
        distance = self.init_scale ** (2 - N) - (self.r_max / 2) ** ((2 - N) / N)
        return 4 * STEP_LOSS * max(0.0, distance) / (gamma * N * (N - 2) * m) + 1

    @Quantity("phase2-convergence")
    def T_halve(self) -> float:
        """Half-life of a magnitude's error (Lemma phase2-convergence): ``5 2^(2-2/N) / (gamma N^2 m^(2-2/N))``."""
        return self._halve(max(self.zeta, self.r_min))

    def _halve(self, m: float) -> float:
        # u^N >= m/2 throughout, where the contraction is 2^(2/N - 2) times its value at m
        return 5.0 * 2 ** (2 - 2 / self.depth) / (self.step_size * self.contraction(m))

    @Quantity("convergence-alg-1")
    def T_lb(self) -> float:
        """The start of the window: ``T_grow + floor(log2(r_max/zeta)) T_halve``; 0 if ``zeta >= r_max``."""
        return self.opening(self.zeta)

    def opening(self, zeta: float) -> float:
        """The start of the window for any threshold zeta; the theorem as printed has another one."""
        if zeta >= self.r_max:
            return 0.0
        m = max(zeta, self.r_min)
        return self._grow(m) + math.floor(math.log2(self.r_max / zeta)) * self._halve(m)

    @Quantity("noise-bound")
    def T_ub(self) -> float:
        """The end of the window: until then, magnitudes off the support are at most `ceiling` (Lemma noise-bound).

        ``alpha^(2-N) (1 - 2^(2-N)) / (gamma N (N-2) B)`` for N > 2, and ``log(1/sqrt(alpha)) / log(1 + 2 gamma B)`` for
        N = 2, with ``B = r_min/20 + max_l norm(X_l'xi/n)``.
        """
        N, gamma, alpha, B = self.depth, self.step_size, self.init_scale, self.leakage
        if N == 2:
            return 0.5 * math.log(1.0 / alpha) / math.log1p(2.0 * gamma * B)
        return (alpha ** (2 - N) - self.ceiling ** (2 - N)) / (gamma * N * (N - 2) * B)

    @Quantity("gd-error-bound-on-support")
    def error_radius(self) -> float:
        """``2 zeta``: the norm of ``w_l(t) - w*_l`` on the support, for t in the window."""
        return 2.0 * self.zeta

    @property
    def ceiling(self) -> float:
        """Magnitudes off the support stay below this: ``2 alpha`` for N > 2, ``sqrt(alpha)`` for N = 2.

        For N > 2 growth accelerates like ``u^(N-1)``: most of the time is spent near the start, and a group off the
        support stays within a constant factor of it. For N = 2 the time is logarithmic, and it may not.
        """
        return math.sqrt(self.init_scale) if self.depth == 2 else 2.0 * self.init_scale

    @Quantity("convergence-alg-1")
    def off_support_radius(self) -> float:
        """``ceiling^N``: the norm of ``w_l(t)`` off the support, ``alpha`` for N = 2."""
        return self.ceiling**self.depth

    @property
    def flow(self) -> PowerFlowTimes:
        """Scale and times of the gradient flow on an orthogonal design (gf-es, corrected), for this N."""
        return PowerFlowTimes(self.depth, self.r_max, self.r_min, self.epsilon, self.group_noise)

    def to_frame(self) -> pd.DataFrame:
        """One row per quantity: name, value and the corresponding statement."""
        times = {"flow.T_l": self.flow.T_l, "flow.T_u": self.flow.T_u}
        return self._frame(*((name, time, "gf-es, exact scalar flow") for name, time in times.items()))

    def __str__(self) -> str:
        head = (
            f"bounds for w = u^{self.depth} v, L={self.L}, s={self.s}, norms in [{self.r_min:.4g}, {self.r_max:.4g}], "
            f"init_scale={self.init_scale:.3g}, step_size={self.step_size:.3g}"
        )
        return self._text(head, self.to_frame())


def largest_init_scale(epsilon: float, u_max: float, u_min: float, L: int) -> float:
    """``min((epsilon^4 ^ 1)/u_max^8, u_min^2/(80 L), epsilon/L)``."""
    # the eighth power of the ratio may underflow, and then no start is small enough; u_max**8 would overflow
    ratio = math.sqrt(min(epsilon, 1.0)) / u_max
    # the power of a huge ratio would overflow, and is never the minimum
    return min(ratio**8 if ratio < 1e30 else math.inf, u_min**2 / (80.0 * L), epsilon / L)


def power_bounds(
    norms: ArrayLike, *, L: int, epsilon: float, depth: int = 2, group_noise: float = 0.0,
    init_scale: float | None = None, step_size: float | None = None,
) -> PowerBounds:  # fmt: skip
    """Conditions, times and radii of the convergence theorems for ``w_l = u_l^N v_l``, N the `depth`.

    The `norms` are ``norm(w*_l)``, one per group or one per non-zero group; zeros are groups outside the support. There
    are `L` groups; `group_noise` is ``max_l norm(X_l'xi/n)`` or a bound on it. `init_scale` and `step_size`, alpha and
    gamma for times and radii, are by default the largest allowed.

    >>> b = power_bounds([1.0, 1.0], L=100, epsilon=0.001, depth=3)
    >>> round(b.step_size_max, 4), b.T_lb < b.T_ub
    (0.0222, True)
    >>> b = power_bounds([1.0, 1.0], L=100, epsilon=0.001)           # the paper's: 1/20
    >>> b.step_size_max, b.direction_step_min
    (0.05, 0.05)
    """
    depth, L = whole(depth, "depth", least=2), whole(L, "L")
    positive_norms = read_sizes(as_numbers(norms, "norms", finite=False), "norms", norms, L)
    epsilon, group_noise = positive(epsilon, "epsilon"), positive(group_noise, "group_noise", zero=True)
    b = PowerBounds(depth, positive_norms, L, epsilon, group_noise, math.nan, math.nan)
    b = replace(b, step_size=positive(b.step_size_max if step_size is None else step_size, "step_size"))
    return replace(b, init_scale=read_start(init_scale, b.init_scale_max, below_one=depth == 2))


def read_sizes(values: FloatArray, name: str, given: object, L: int) -> tuple[float, ...]:
    """The positive entries of magnitudes or norms, of which there is one per group or per non-zero group."""
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        raise ValueError(f"{name} must be finite and not negative; got {given!r}.")
    if np.any(values > LARGEST):
        raise ValueError(f"{name} has an entry above {LARGEST:g}, whose powers overflow: change the units.")
    if values.ndim > 1:
        raise ValueError(f"{name} must be a number or a vector, not an array of shape {values.shape}.")
    active = np.atleast_1d(values)[np.atleast_1d(values) > 0]
    if active.size == 0:
        raise ValueError(f"{name} has no positive entry: with no non-zero group there is nothing to recover.")
    if active.size > L:
        raise ValueError(f"{name} has {active.size} positive entries, but there are only {L} groups.")
    return tuple(active.tolist())


def read_start(init_scale: float | None, largest: float, *, below_one: bool) -> float:
    """The start of the magnitudes, by default the largest allowed one."""
    if init_scale is None:
        if largest == 0.0:
            raise ValueError("The largest allowed init_scale underflows to 0: give init_scale or a larger epsilon.")
        # strictly below the bound, as the theorem requires; for N = 2 also below 1
        init_scale = min(largest * (1 - 1e-9), 0.5 if below_one else math.inf)
    init_scale = positive(init_scale, "init_scale")
    if below_one and init_scale >= 1:
        raise ValueError(f"init_scale must lie below 1, not {init_scale!r}: sqrt(alpha) bounds nothing otherwise.")
    return init_scale
