"""Which groups to trust: those found again in halves of the rows, and those that beat their knockoffs."""

from covey.stability.bounds import expected_false
from covey.stability.knockoff_result import KnockoffSelection
from covey.stability.knockoffs import knockoffs
from covey.stability.result import StabilitySelection
from covey.stability.stability import stability_selection

__all__ = ["KnockoffSelection", "StabilitySelection", "expected_false", "knockoffs", "stability_selection"]
