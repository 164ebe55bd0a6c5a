"""The conditions and guarantees of the convergence theorems, as numbers.

Every property of `Bounds` is one displayed formula of the paper, named by its label. Where the paper contradicts itself
or has a slip, both versions are here: the plain name is the theorem as printed, the longer name describes the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from covey.paper.theory.power import PowerBounds, Quantities, Quantity, largest_init_scale, read_sizes, read_start
from covey.paper.theory.times import FlowTimes
from covey.path import Path
from covey.validation import as_numbers, check_scale, positive, real, whole


@dataclass(frozen=True)
class Bounds(Quantities):
    """Conditions and guarantees of Theorems convergence-alg-1 and -2 and of Corollary subgaussian-noise.

    The result of `bounds`. Attributes are the inputs, in the paper's letters; properties are the formulas. There are
    `s` non-zero groups of the magnitudes `u_star`, ``norm(w*_l) = u*_l^2``; `noise` and `group_noise` bound
    ``norm(X'xi/n, inf)`` and ``max_l norm(X_l'xi/n)``; `group_size` is that of the largest group. Times and radii are
    those at `init_scale`, alpha, and `step_size`, gamma.
    """

    n: int
    p: int
    L: int
    s: int
    u_star: tuple[float, ...]
    epsilon: float
    noise: float
    group_noise: float
    sigma: float | None
    init_scale: float
    step_size: float
    group_size: int

    @property
    def u_max(self) -> float:
        """``max u*_l`` over the support."""
        return max(self.u_star)

    @property
    def u_min(self) -> float:
        """``min u*_l`` over the support."""
        return min(self.u_star)

    @Quantity("section gd-norm")
    def zeta(self) -> float:
        """``80 max(norm(X'xi/n, inf), epsilon)``."""
        return 80.0 * max(self.noise, self.epsilon)

    @property
    def corrected(self) -> PowerBounds:
        """The corrected theorems, for N = 2."""
        norms = tuple(u * u for u in self.u_star)
        return PowerBounds(2, norms, self.L, self.epsilon, self.group_noise, self.init_scale, self.step_size)

    @Quantity("noise by its norm in a group")
    def zeta_corrected(self) -> float:
        """``80 max(max_l norm(X_l'xi/n), epsilon)``: Euclidean norms by group.

        Lemma phase2-boundness bounds ``v_l'X_l'xi/n`` by the largest entry, through ``norm(v)_1 <= norm(v)_2``. The
        correct bound is the norm of the group's part, up to ``sqrt(p_l)`` times as large; for groups of one column they
        agree.
        """
        return self.corrected.zeta

    @property
    def n_recoverable(self) -> int:
        """Groups with ``u*_l^2 >= zeta_corrected``; the others are only guaranteed to stay small."""
        return self.corrected.n_recoverable

    @Quantity("corollary, statement")
    def epsilon_statement(self) -> float | None:
        """``2 sqrt(sigma^2 log(2p)/n)``: the corollary as stated."""
        return None if self.sigma is None else corollary_epsilon(self.sigma, self.n, self.p, "statement")

    @Quantity("corollary, proof")
    def epsilon_proof(self) -> float | None:
        """``2 sqrt(2 sigma^2 log(2p)/n)``: the corollary's proof, with probability ``1 - 1/(8p^3)``."""
        return None if self.sigma is None else corollary_epsilon(self.sigma, self.n, self.p, "proof")

    @property
    def confidence(self) -> float | None:
        """``1 - 2p exp(-n epsilon^2/(2 sigma^2))``: Lemma bounding-max-noise, columns of norm sqrt(n)."""
        if self.sigma is None:
            return None
        return max(0.0, 1.0 - 2 * self.p * math.exp(-self.n * self.epsilon**2 / (2 * self.sigma**2)))

    @Quantity("convergence-alg-1")
    def init_scale_max(self) -> float:
        """``min((epsilon^4 ^ 1)/u_max^8, u_min^2/(80 L), epsilon/L)``; alpha must be smaller."""
        return largest_init_scale(self.epsilon, self.u_max, self.u_min, self.L)

    @Quantity("convergence-alg-1")
    def step_size_max(self) -> float:
        """``gamma <= 1/(20 u_max^2)``."""
        return 1.0 / (20.0 * self.u_max**2)

    @Quantity("convergence-alg-2, corrected")
    def step_size_max_alg_2(self) -> float:
        """``min(1/(20 u_max^2), 4 u_min^2/(9 u_max^4))``: leaves room for a direction step. Not in the paper.

        The corrected theorem convergence-alg-2 has ``gamma/u_min^2 <= eta <= 4/(9 u_max^4)``. At the largest gamma of
        theorem convergence-alg-1 no eta meets both once ``u_max^2/u_min^2 > 80/9``.
        """
        return min(self.step_size_max, 4.0 * self.u_min**2 / (9.0 * self.u_max**4))

    @Quantity("convergence-alg-2")
    def direction_step_theorem(self) -> float:
        """``eta <= 4/(9 u_max^2)``: Theorem convergence-alg-2 as printed. Too large if u_max > 1."""
        return 4.0 / (9.0 * self.u_max**2)

    @Quantity("direction-bound")
    def direction_step_lemma(self) -> float:
        """``eta <= 4/(9 u_max^4)``: required by Lemma direction-bound, on which the theorem rests."""
        return 4.0 / (9.0 * self.u_max**4)

    @Quantity("convergence-alg-2, corrected")
    def direction_step_min(self) -> float:
        """``eta >= gamma/u_min^2``: below it, directions keep their angle at the switch. Not in the paper."""
        return self.step_size / self.u_min**2

    def delta_in(self, algorithm: int = 1) -> float:
        """``u_min^2/(120 u_max^2)``, times ``sqrt(zeta)/u_max`` for Algorithm 2."""
        return self.corrected.coherence_bound(self.zeta, algorithm)

    def delta_out(self, algorithm: int = 1) -> float:
        """`delta_in` divided by the number of non-zero groups."""
        return self.delta_in(algorithm) / self.s

    @Quantity("convergence-alg-1")
    def T_lb(self) -> float:
        """The opening of the window, the same for both theorems.

        ``log(u_max^2/(2 alpha^2)) / (2 log(1 + gamma/2 m)) + floor(log2(u_max^2/zeta)) 5/(2 gamma m)`` with
        ``m = max(zeta, u_min^2)``; 0 if ``zeta >= u_max^2``, since the bound then holds from the start.
        """
        return self.corrected.opening(self.zeta)

    @Quantity("with zeta_corrected")
    def T_lb_corrected(self) -> float:
        """`T_lb` with `zeta_corrected`."""
        return self.corrected.T_lb

    @Quantity("convergence-alg-1, as printed")
    def T_ub(self) -> float:
        """The end of the window as printed: ``5/(16 gamma m) log(1/alpha^4)``.

        The theorem says "at least" this. If ``zeta < u_max^2`` and ``u_max > 0.002``, this value lies below
        `T_lb` at every admissible alpha, so the printed window is empty: `T_lb` alone is at least
        ``log(u_max^2/(2 alpha^2))/(gamma m)``.
        """
        m = max(self.zeta, self.u_min**2)
        return 5.0 / (16.0 * self.step_size * m) * math.log(1.0 / self.init_scale) * 4.0

    @Quantity("noise-bound, first line of its proof")
    def T_ub_corrected(self) -> float:
        """The end of the window: ``log(1/sqrt(alpha))/log(1 + 2 gamma B)``, the first line of the proof of noise-bound.

        ``B = u_min^2/20 + max_l norm(X_l'xi/n)`` is equation noise-bound with the noise in the norm that the proof
        needs. No factor is lost, and the window [T_lb_corrected, T_ub_corrected] is not empty.
        """
        return self.corrected.T_ub

    @Quantity("gd-error-bound-on-support")
    def error_radius(self) -> float:
        """``2 zeta``: the norm of ``w_l(t) - w*_l`` on the support, equation gd-error-bound-on-support."""
        return 2.0 * self.zeta

    @Quantity("with zeta_corrected")
    def error_radius_corrected(self) -> float:
        """``2 zeta_corrected``."""
        return self.corrected.error_radius

    @Quantity("convergence-alg-1")
    def off_support_radius(self) -> float:
        """``alpha``: the norm of ``w_l(t)`` off the support, from ``u_l <= sqrt(alpha)``."""
        return self.init_scale

    @Quantity("corollary, with constants")
    def squared_error(self) -> float:
        """``s (2 zeta_corrected)^2 + (L - s) alpha^2``: the bound on ``norm(w(t) - w*)^2``, with its constants."""
        return self.s * self.error_radius_corrected**2 + (self.L - self.s) * self.off_support_radius**2

    @Quantity("corollary")
    def corollary_rate(self) -> float | None:
        """``s sigma^2 log(p)/n``: Corollary subgaussian-noise, up to its constant."""
        return None if self.sigma is None else self.s * self.sigma**2 * math.log(self.p) / self.n

    @Quantity("with the group size")
    def corollary_rate_corrected(self) -> float | None:
        """``s sigma^2 (k + log p)/n`` with groups of at most k columns.

        The printed rate has no k, and least squares on the true groups already has error ``sigma^2 s k/n``.
        """
        if self.sigma is None:
            return None
        return self.s * self.sigma**2 * (self.group_size + math.log(self.p)) / self.n

    @Quantity("group sparsity")
    def minimax_rate(self) -> float | None:
        """``sigma^2 s (k + log(e L/s))/n`` with groups of k columns: the minimax order for group sparsity."""
        if self.sigma is None:
            return None
        return self.sigma**2 * self.s * (self.group_size + math.log(math.e * self.L / self.s)) / self.n

    @property
    def flow(self) -> FlowTimes:
        """Scale and times of the gradient-flow theorem (gf-es), at the largest scale it allows."""
        return FlowTimes(self.u_max, self.u_min, self.epsilon, self.noise, self.group_noise)

    def to_frame(self) -> pd.DataFrame:
        """One row per quantity: name, value and place in the paper."""
        flow = self.flow
        of_flow = {
            "init_scale_max": "gf-es", "T_l": "gf-es, as printed", "T_u": "gf-es, as printed",
            "T_l_corrected": "exact scalar flow", "T_u_corrected": "exact scalar flow",
        }  # fmt: skip
        rows = [(f"flow.{name}", getattr(flow, name), source) for name, source in of_flow.items()]
        return self._frame(("epsilon", self.epsilon, "used here"), *rows)

    def __str__(self) -> str:
        head = (
            f"bounds for n={self.n}, p={self.p}, L={self.L}, s={self.s}, u* in [{self.u_min:.4g}, {self.u_max:.4g}], "
            f"init_scale={self.init_scale:.3g}, step_size={self.step_size:.3g}"
        )
        return self._text(head, self.to_frame())


def corollary_epsilon(sigma: float, n: int, p: int, which: str = "statement") -> float:
    """``2 sqrt(c sigma^2 log(2p)/n)`` with c = 1 in the corollary's statement and c = 2 in its proof."""
    if which not in ("statement", "proof"):
        raise ValueError(f'epsilon must be a number, "statement" or "proof", not {which!r}.')
    factor = 1.0 if which == "statement" else 2.0
    return 2.0 * math.sqrt(factor * sigma**2 * math.log(2 * p) / n)


def bounds(
    u_star: ArrayLike, *, n: int, p: int, L: int, s: int | None = None, sigma: float | None = None,
    epsilon: float | str | None = None, noise: float | None = None, group_noise: float | None = None,
    init_scale: float | None = None, step_size: float | None = None, group_size: int | None = None,
) -> Bounds:  # fmt: skip
    """Conditions, times and radii of the convergence theorems for a given problem.

    Theorems convergence-alg-1, convergence-alg-2 and gf-es, Corollary subgaussian-noise; the properties of `Bounds`
    state the formulas.

    Parameters
    ----------
    u_star : array of float or float
        Magnitudes ``u*_l = sqrt(norm(w*_l))``. Zeros are groups outside the support. A single number means `s` groups
        of that magnitude.
    n, p, L : int
        Rows, columns, groups.
    s : int, optional
        Number of non-zero groups; by default the number of positive `u_star`.
    sigma : float, optional
        Standard deviation (sub-Gaussian parameter) of the noise.
    epsilon : float, "statement" or "proof", optional
        The precision; with `sigma`, by default the value in the corollary's statement.
    noise : float, optional
        ``norm(X'xi/n, inf)``, if known; by default epsilon if `sigma` is given (the event of the corollary), otherwise
        0.
    group_noise : float, optional
        ``max_l norm(X_l'xi/n)``, if known; by default its upper bound, ``sqrt(group_size)`` times `noise`.
    init_scale, step_size : float, optional
        alpha and gamma for times and radii; by default the largest allowed.
    group_size : int, optional
        Columns of the largest group; by default ``ceil(p/L)``.

    Examples
    --------
    >>> b = bounds([3.0, 2.0], n=1000, p=300, L=100, epsilon=0.01)
    >>> round(b.zeta, 6), round(b.step_size_max, 6), round(b.delta_out(1), 6)
    (0.8, 0.005556, 0.001852)
    >>> b.T_ub < b.T_lb < b.T_ub_corrected          # the printed window is empty; the corrected one is not
    True
    """
    n, p, L = (whole(value, name) for value, name in ((n, "n"), (p, "p"), (L, "L")))
    if p < L:
        raise ValueError(f"There are {L} groups but only {p} columns; every group needs at least one.")
    values = as_numbers(u_star, "u_star", finite=False)
    check_scale(values[np.isfinite(values)], "u_star")
    s = None if s is None else whole(s, "s")
    magnitudes = read_sizes(np.full(s, float(values)) if values.ndim == 0 and s else values, "u_star", u_star, L)
    if s is not None and len(magnitudes) != s:
        raise ValueError(f"u_star has {len(magnitudes)} positive entries, but s={s}.")
    if sigma is not None:
        if real(sigma, "sigma") == 0:
            raise ValueError("sigma must be above 0; for noiseless data leave sigma out and give epsilon.")
        sigma = positive(sigma, "sigma")
        check_scale(np.array(sigma), "sigma")
    if epsilon is None or isinstance(epsilon, str):
        if sigma is None:
            raise ValueError(
                f"epsilon={epsilon!r} needs sigma, with which the corollary sets it to 2 sqrt(sigma^2 log(2p)/n); or "
                "give the precision that you want."
            )
        epsilon = corollary_epsilon(sigma, n, p, epsilon or "statement")
    epsilon = positive(epsilon, "epsilon")
    if noise is None:
        noise = epsilon if sigma is not None else 0.0
    noise = positive(noise, "noise", zero=True)
    group_size = math.ceil(p / L) if group_size is None else whole(group_size, "group_size")
    group_noise = math.sqrt(group_size) * noise if group_noise is None else group_noise
    group_noise = positive(group_noise, "group_noise", zero=True)
    b = Bounds(n, p, L, len(magnitudes), magnitudes, epsilon, noise, group_noise, sigma, math.nan, math.nan, group_size)
    alpha = read_start(init_scale, b.init_scale_max, below_one=True)
    gamma = positive(b.step_size_max if step_size is None else step_size, "step_size")
    return replace(b, init_scale=alpha, step_size=gamma)


def bounds_from_path(path: Path, t: float, *, n: int, **given: Any) -> Bounds:
    """`bounds` with the magnitudes estimated from the model at time `t` of a path; other parameters as in `bounds`."""
    norms = path.group_norms[path.index(t)]
    groups = path.groups
    given.setdefault("group_size", int(groups.sizes.max()))
    return bounds(np.sqrt(norms), n=n, p=groups.n_columns, L=groups.n_groups, **given)
