"""The fast path: working set in Gram space."""

from covey.engine.group_path import group_path
from covey.engine.recorder import Move, Prospects, Snapshot, StopRule

__all__ = ["Move", "Prospects", "Snapshot", "StopRule", "group_path"]
