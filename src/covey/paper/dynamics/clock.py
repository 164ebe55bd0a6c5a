"""A time scale set by the loss, on which a network that separates the classes converges in direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.losses import Loss
from covey.validation import one_of

__all__ = ["LEAST_LOSS", "LossClock", "read_clock"]

# Below this, the loss, its gradient and their ratio approach the limits of float64.
LEAST_LOSS = 1e-290


@dataclass(frozen=True)
class LossClock:
    r"""Every gradient is multiplied by ``1 / (L max(1, log(1/L))^(2 - 2/k))``, with L the current loss.

    On separable classes the loss and its gradient tend to zero: gradient descent slows down, and margins grow like the
    logarithm of the number of steps. Dividing by L is gradient descent on ``log L``. For a predictor that is
    homogeneous of order k in the factors, ``log(1/L)`` is of order ``rho^k``, with rho the norm of the factors, and the
    curvature of ``log L`` is of order ``rho^(2k - 2)``. The second factor cancels that curvature: a step that is stable
    at the start stays stable, and margins grow linearly.

    `order` is k: N for the normalised network, whose directions keep their norm, and N + 1 for the plain one.
    """

    order: int

    def pace(self, loss: float) -> float:
        """The factor on the gradients."""
        return float(1 / (loss * max(1.0, -np.log(loss)) ** (2 - 2 / self.order)))


def read_clock(clock: Any, loss: Loss, order: int) -> LossClock | None:
    """Read ``clock=``: "steps", which gives None, or "loss"."""
    if one_of(clock, ("steps", "loss"), "clock") == "steps":
        return None
    if loss.name != "binomial":
        raise ValueError(
            f"clock='loss' is for separable classes, where the loss tends to zero at infinity; the {loss.name} loss "
            "has its minimum elsewhere. Use loss='binomial', or clock='steps'."
        )
    return LossClock(order)
