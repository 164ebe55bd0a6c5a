"""Displays: one plot per file, with its values kept on the object. Only this package imports matplotlib."""

from covey.optional import optional

with optional("covey.plots"):
    from covey.plots.balance import BalanceDisplay
    from covey.plots.candidates import CandidatesDisplay
    from covey.plots.coherence import CoherenceDisplay
    from covey.plots.frequency import FrequencyDisplay
    from covey.plots.group_path import GroupPathDisplay
    from covey.plots.partial_effect import PartialEffectDisplay
    from covey.plots.stability import StabilityDisplay
    from covey.plots.trajectory import TrajectoryDisplay
    from covey.plots.window import TimeWindowDisplay

__all__ = [
    "BalanceDisplay",
    "CandidatesDisplay",
    "CoherenceDisplay",
    "FrequencyDisplay",
    "GroupPathDisplay",
    "PartialEffectDisplay",
    "StabilityDisplay",
    "TimeWindowDisplay",
    "TrajectoryDisplay",
]
