"""How far to believe a model: scores on unused rows, tests, effects with intervals, stability selection, knockoffs."""

from covey.evidence.band import band
from covey.evidence.bounds import expected_false
from covey.evidence.class_scores import ClassScores
from covey.evidence.double_selection import Effects
from covey.evidence.effect import effect
from covey.evidence.group_tests import test_groups
from covey.evidence.knockoffs import knockoffs
from covey.evidence.nested import nested_score
from covey.evidence.nested_result import MethodScore, NestedScore
from covey.evidence.selections import GroupTests, KnockoffSelection, StabilitySelection
from covey.evidence.stability import stability_selection

__all__ = [
    "ClassScores",
    "Effects",
    "GroupTests",
    "KnockoffSelection",
    "MethodScore",
    "NestedScore",
    "StabilitySelection",
    "band",
    "effect",
    "expected_false",
    "knockoffs",
    "nested_score",
    "stability_selection",
    "test_groups",
]
