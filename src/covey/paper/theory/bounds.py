"""Read and check a problem, and return the `Bounds` or `PowerBounds` of the theorems for it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from covey.paper.theory.formulas import Bounds, corollary_epsilon
from covey.paper.theory.power import PowerBounds
from covey.path import Path
from covey.validation import FloatArray, as_numbers, check_scale, positive, real, whole

__all__ = ["Bounds", "PowerBounds", "bounds", "bounds_from_path", "power_bounds"]


def bounds(
    u_star: ArrayLike,
    *,
    n: int,
    p: int,
    L: int,
    s: int | None = None,
    sigma: float | None = None,
    epsilon: float | str | None = None,
    noise: float | None = None,
    group_noise: float | None = None,
    init_scale: float | None = None,
    step_size: float | None = None,
    group_size: int | None = None,
) -> Bounds:
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
    magnitudes = _magnitudes(u_star, s, L)
    if sigma is not None:
        if real(sigma, "sigma") == 0:
            raise ValueError("sigma must be above 0; for noiseless data leave sigma out and give epsilon.")
        sigma = positive(sigma, "sigma")
        check_scale(np.array(sigma), "sigma")
    if epsilon is None and sigma is None:
        raise ValueError(
            "epsilon is missing: give the precision you want, or sigma, with which the corollary sets it to "
            "2 sqrt(sigma^2 log(2p)/n)."
        )
    if epsilon is None or isinstance(epsilon, str):
        if sigma is None:
            raise ValueError(f"epsilon={epsilon!r} needs sigma.")
        epsilon = corollary_epsilon(sigma, n, p, epsilon or "statement")
    epsilon = positive(epsilon, "epsilon")
    if noise is None:
        noise = epsilon if sigma is not None else 0.0
    noise = positive(noise, "noise", zero=True)
    group_size = math.ceil(p / L) if group_size is None else whole(group_size, "group_size")
    group_noise = math.sqrt(group_size) * noise if group_noise is None else group_noise
    group_noise = positive(group_noise, "group_noise", zero=True)
    b = Bounds(n, p, L, len(magnitudes), magnitudes, epsilon, noise, group_noise, sigma, math.nan, math.nan, group_size)
    alpha = _read_start(init_scale, b.init_scale_max, below_one=True)
    return replace(
        b, init_scale=alpha, step_size=positive(b.step_size_max if step_size is None else step_size, "step_size")
    )


def bounds_from_path(path: Path, t: float, *, n: int, **given: Any) -> Bounds:
    """`bounds` with the magnitudes estimated from the model at time `t` of a path; other parameters as in `bounds`."""
    norms = path.group_norms[path.index(t)]
    groups = path.groups
    given.setdefault("group_size", int(groups.sizes.max()))
    return bounds(np.sqrt(norms), n=n, p=groups.n_columns, L=groups.n_groups, **given)


def power_bounds(
    norms: ArrayLike,
    *,
    L: int,
    epsilon: float,
    depth: int = 2,
    group_noise: float = 0.0,
    init_scale: float | None = None,
    step_size: float | None = None,
) -> PowerBounds:
    """Conditions, times and radii of the convergence theorems for ``w_l = u_l^N v_l``.

    Parameters
    ----------
    norms : array of float
        ``norm(w*_l)``, one per group or one per non-zero group; zeros are groups outside the support.
    L : int
        Groups.
    epsilon : float
        The precision.
    depth : int
        The power N, at least 2.
    group_noise : float
        ``max_l norm(X_l'xi/n)``, or a bound on it.
    init_scale, step_size : float, optional
        alpha and gamma for times and radii; by default the largest allowed.

    Examples
    --------
    >>> b = power_bounds([1.0, 1.0], L=100, epsilon=0.001, depth=3)
    >>> round(b.step_size_max, 4), b.T_lb < b.T_ub
    (0.0222, True)
    >>> b = power_bounds([1.0, 1.0], L=100, epsilon=0.001)           # the paper's: 1/20
    >>> b.step_size_max, b.direction_step_min
    (0.05, 0.05)
    """
    depth, L = whole(depth, "depth", least=2), whole(L, "L")
    positive_norms = _read_sizes(as_numbers(norms, "norms", finite=False), "norms", norms, L)
    epsilon, group_noise = positive(epsilon, "epsilon"), positive(group_noise, "group_noise", zero=True)
    b = PowerBounds(depth, positive_norms, L, epsilon, group_noise, math.nan, math.nan)
    b = replace(b, step_size=positive(b.step_size_max if step_size is None else step_size, "step_size"))
    return replace(b, init_scale=_read_start(init_scale, b.init_scale_max, below_one=depth == 2))


def _magnitudes(u_star: ArrayLike, s: int | None, L: int) -> tuple[float, ...]:
    """The positive magnitudes; a single number stands for s of them."""
    values = as_numbers(u_star, "u_star", finite=False)
    check_scale(values[np.isfinite(values)], "u_star")
    s = None if s is None else whole(s, "s")
    if values.ndim == 0 and s is not None:
        values = np.full(s, float(values))
    active = _read_sizes(values, "u_star", u_star, L)
    if s is not None and len(active) != s:
        raise ValueError(f"u_star has {len(active)} positive entries, but s={s}.")
    return active


def _read_sizes(values: FloatArray, name: str, given: object, L: int) -> tuple[float, ...]:
    """The positive entries of magnitudes or norms, of which there is one per group or per non-zero group."""
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        raise ValueError(f"{name} must be finite and not negative; got {given!r}.")
    if values.ndim > 1:
        raise ValueError(f"{name} must be a number or a vector, not an array of shape {values.shape}.")
    active = np.atleast_1d(values)[np.atleast_1d(values) > 0]
    if active.size == 0:
        raise ValueError(f"{name} has no positive entry: with no non-zero group there is nothing to recover.")
    if active.size > L:
        raise ValueError(f"{name} has {active.size} positive entries, but there are only {L} groups.")
    return tuple(active.tolist())


def _read_start(init_scale: float | None, largest: float, *, below_one: bool) -> float:
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
