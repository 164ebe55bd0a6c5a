"""The coordinate in which a sleeping group's growth is additive, for arrays of groups; see `covey.network.kernels`."""

from __future__ import annotations

import numpy as np

from covey.network.settings import ENTER, Settings
from covey.validation import FloatArray

__all__ = ["growth_of", "join_at", "logs_of", "phi_of", "phis_of", "u_of"]


def phi_of(u: float, depth: int) -> float:
    """The coordinate in which a sleeping group's growth is additive."""
    if depth == 2:
        return float(np.log(u))
    with np.errstate(over="ignore"):
        return -float(np.power(u, 2.0 - depth)) / (depth - 2.0)


def u_of(phi: float, depth: int) -> float:
    """The magnitude for a ``phi``."""
    return float(np.exp(phi) if depth == 2 else np.power(-(depth - 2.0) * phi, -1.0 / (depth - 2.0)))


def growth_of(x: FloatArray, depth: int, substeps: int) -> FloatArray:
    """The change of ``phi`` in one iteration: the kernel's `growth` for arrays."""
    return substeps * np.log1p(np.maximum(x / substeps, -0.9)) if depth == 2 else x


def phis_of(log_u: FloatArray, depth: int) -> FloatArray:
    """`phi_of` for arrays of logarithms of magnitudes."""
    if depth == 2:
        return log_u.copy()
    with np.errstate(over="ignore"):  # from a start this small a deep network never wakes up: minus infinity
        return -np.exp((2 - depth) * log_u) / (depth - 2)


def logs_of(phi: FloatArray, depth: int) -> FloatArray:
    """The inverse of `phis_of`."""
    return phi.copy() if depth == 2 else -np.log(-(depth - 2) * phi) / (depth - 2)


def join_at(settings: Settings, tol: float) -> float:
    """The norm at which a group starts to be stepped."""
    return min(1.0, tol / ENTER) * settings.enter
