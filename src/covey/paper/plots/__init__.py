"""Displays of the paper's quantities, one per file, with their values kept on the object."""

from covey.optional import optional

with optional("covey.paper.plots"):
    from covey.paper.plots.balance import BalanceDisplay
    from covey.paper.plots.coherence import CoherenceDisplay
    from covey.paper.plots.trajectory import TrajectoryDisplay
    from covey.paper.plots.window import TimeWindowDisplay

__all__ = ["BalanceDisplay", "CoherenceDisplay", "TimeWindowDisplay", "TrajectoryDisplay"]
