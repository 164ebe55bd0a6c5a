"""The switch of Algorithm 2: from the large direction step to a constant one."""

from __future__ import annotations

import numpy as np

from covey.network.awake import AwakeGroups
from covey.network.near_awake import AwakeView
from covey.network.settings import Settings
from covey.validation import FloatArray

__all__ = ["Switch"]

# The relative change of the magnitudes is meaningless before one has grown: the rule is armed once some group has
# reached this share of its first correlation.
ARM_AT = 0.5

# The lemma on directions allows eta up to 4 / (9 u^4) at the largest magnitude, for N = 2.
SAFE_SHARE = 4.0 / 9.0


class Switch:
    """Decides when to switch, and the direction step after it.

    Attributes
    ----------
    eta : float
        0 before the switch, the constant direction step after it.
    """

    def __init__(self, settings: Settings, eta: float = 0.0, armed: bool = False) -> None:
        self.settings = settings
        self.eta = eta
        self.armed = armed

    @property
    def frozen(self) -> bool:
        """Whether sleeping groups keep their directions, which a constant step hardly moves."""
        return self.eta > 0

    @property
    def tau(self) -> float:
        """The relative change that triggers the switch; 0 if no switch is pending."""
        return 0.0 if self.frozen else self.settings.tau

    def due(self, awake: AwakeGroups | AwakeView, change: float) -> bool:
        """Whether to switch now, when `change` is the largest relative change of any magnitude."""
        if self.tau == 0.0 or not awake.which:
            return False
        if not self.armed:
            self.arm(awake.u, np.sqrt(np.add.reduceat(awake.c**2, awake.starts[:-1])))
        return self.armed and change < self.settings.tau

    def arm(self, u: FloatArray, first: FloatArray) -> None:
        """Arm the rule once a magnitude has grown; `first` are the norms of the groups' first correlations."""
        self.armed = self.armed or bool((u**self.settings.depth >= ARM_AT * first).any())

    def fire(self, awake: AwakeGroups | AwakeView) -> None:
        """Switch."""
        largest = float(awake.u.max()) ** self.settings.depth
        self.eta = self.settings.eta if self.settings.eta > 0 else SAFE_SHARE / largest**2
