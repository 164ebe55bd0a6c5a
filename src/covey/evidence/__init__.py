"""How far to believe a model: scores on unused rows, groups found again in half of the rows, and knockoffs."""

from covey.evidence.bounds import expected_false
from covey.evidence.knockoffs import knockoffs
from covey.evidence.nested import nested_score
from covey.evidence.nested_result import MethodScore, NestedScore
from covey.evidence.selections import KnockoffSelection, StabilitySelection
from covey.evidence.stability import stability_selection

__all__ = [
    "KnockoffSelection",
    "MethodScore",
    "NestedScore",
    "StabilitySelection",
    "expected_false",
    "knockoffs",
    "nested_score",
    "stability_selection",
]
