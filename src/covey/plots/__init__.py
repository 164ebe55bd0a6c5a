"""Displays: one plot per file, with its values kept on the object. Only this package imports matplotlib."""

from covey.optional import optional

with optional("covey.plots"):
    from covey.plots.candidates import CandidatesDisplay
    from covey.plots.frequency import FrequencyDisplay
    from covey.plots.group_path import GroupPathDisplay
    from covey.plots.group_tests import GroupTestsDisplay
    from covey.plots.partial_effect import PartialEffectDisplay
    from covey.plots.stability import StabilityDisplay
    from covey.plots.terms import TermsDisplay

__all__ = [
    "CandidatesDisplay",
    "FrequencyDisplay",
    "GroupPathDisplay",
    "GroupTestsDisplay",
    "PartialEffectDisplay",
    "StabilityDisplay",
    "TermsDisplay",
]
