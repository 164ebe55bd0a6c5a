"""The fast path: working set in Gram space."""

from covey.engine.group_path import group_path
from covey.engine.recorder import Snapshot, StopRule
from covey.engine.validation_stop import ValidationStop

__all__ = ["Snapshot", "StopRule", "ValidationStop", "group_path"]
