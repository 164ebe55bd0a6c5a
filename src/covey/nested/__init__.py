"""Honest scores: the whole fit is repeated without some rows, which are then predicted."""

from covey.nested.result import MethodScore, NestedScore
from covey.nested.score import nested_score

__all__ = ["MethodScore", "NestedScore", "nested_score"]
