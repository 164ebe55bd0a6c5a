"""The fast path: working set in Gram space."""

from covey.engine.group_path import group_path
from covey.engine.recorder import Move, Prospects, Snapshot, Snapshots, StopRule
from covey.engine.runner import PathRunner

__all__ = ["Move", "PathRunner", "Prospects", "Snapshot", "Snapshots", "StopRule", "group_path"]
