"""Stability selection: which groups are found again and again in halves of the rows."""

from covey.stability.bounds import expected_false
from covey.stability.stability import StabilitySelection, stability_selection

__all__ = ["StabilitySelection", "expected_false", "stability_selection"]
