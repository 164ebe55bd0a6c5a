"""Scores that can be believed: the whole fit repeated without rows, which are then predicted."""

from covey.nested.result import MethodScore, NestedScore
from covey.nested.score import nested_score

__all__ = ["MethodScore", "NestedScore", "nested_score"]
