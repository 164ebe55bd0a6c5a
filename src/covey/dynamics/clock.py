"""The clock of the loss, on which a network that tells classes apart reaches its limit in direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.losses import Binomial, Loss
from covey.validation import one_of

__all__ = ["LEAST_LOSS", "LossClock", "read_clock"]

# Below this the loss and its gradient are about to leave the range of float64, and with them their ratio.
LEAST_LOSS = 1e-290


@dataclass(frozen=True)
class LossClock:
    r"""Every gradient is multiplied by ``1 / (L max(1, log(1/L))^(2 - 2/k))``, with L the present loss.

    On separable classes the loss goes to zero, and its gradient with it: gradient descent then moves ever more slowly,
    and margins grow like the logarithm of the number of steps. Dividing by L is gradient descent on ``log L``. A
    predictor that is homogeneous of order k in the factors has ``log(1/L)`` of the order ``rho^k``, with rho the norm
    of the factors, and ``log L`` bends like ``rho^(2k - 2)``. The second factor is one over that: a step that is stable
    at the start is stable throughout, and margins grow linearly.

    Attributes
    ----------
    order : int
        k: N for the normalised network, whose directions keep their norm, and N + 1 for the plain one.
    """

    order: int

    def pace(self, loss: float) -> float:
        """What gradients are multiplied by."""
        return float(1 / (loss * max(1.0, -np.log(loss)) ** (2 - 2 / self.order)))


def read_clock(clock: Any, loss: Loss, order: int) -> LossClock | None:
    """What a user may pass as ``clock=``: "steps", which is no clock at all, or "loss"."""
    if one_of(clock, ("steps", "loss"), "clock") == "steps":
        return None
    if not isinstance(loss, Binomial):
        raise ValueError(
            f"clock='loss' is for classes that can be told apart, where the loss goes to zero at infinity; the "
            f"{loss.name} loss has its minimum elsewhere. Use loss='binomial', or clock='steps'."
        )
    return LossClock(order)
