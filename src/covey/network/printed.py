"""An iteration of the paper's Algorithms 1 and 2 as printed, in plain numpy.

The text evaluates the gradient of the magnitudes at the new directions, so one iteration needs two correlations; steps
that would oscillate are not cut. `covey.dynamics.normalized_descent` is the same on raw columns, and a test compares
the two.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from covey.network.settings import Settings
from covey.preprocess import WorkingProblem
from covey.validation import FloatArray

__all__ = ["printed_step"]


def printed_step(
    problem: WorkingProblem,
    settings: Settings,
    u: FloatArray,
    v: FloatArray,
    w: FloatArray,
    correlations: Callable[[FloatArray], FloatArray],
    eta: float,
) -> float:
    """One iteration in place; returns the largest relative change of a magnitude, infinite if one would turn negative.

    ``z_l = v_l + eta_l u_l^N g_l``, ``v_l <- z_l/norm(z_l)`` and ``u_l <- u_l + gamma N u_l^(N-1) v_l'g_l``, the last
    with g at the new directions and the old magnitudes. `eta` is 0 for the large step ``eta_l = 1/u_l^(2N)``.
    """
    N, ranks = settings.depth, problem.ranks
    labels = np.repeat(np.arange(ranks.size), ranks)
    norms = u**N
    # u_l^N z_l has the same direction, without dividing by a power of a tiny magnitude
    z = w + (settings.large if eta == 0.0 else eta * norms[labels] ** 2) * correlations(w)
    lengths = problem.group_norms(z)[labels]
    v[:] = np.divide(z, lengths, out=v.copy(), where=lengths > 0)
    pulls = np.bincount(labels, weights=v * correlations(norms[labels] * v), minlength=ranks.size)
    changes = N * settings.gamma * settings.speeds * u ** (N - 2) * pulls
    if not (changes > -1.0).all():
        return np.inf
    u *= 1.0 + changes
    w[:] = u[labels] ** N * v
    return float(np.abs(changes).max(initial=0.0))
