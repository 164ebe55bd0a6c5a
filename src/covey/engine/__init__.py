"""The fast path: working set in Gram space."""

from covey.engine.group_path import group_path
from covey.engine.runner import PathRunner
from covey.engine.snapshots import Move, Prospects, Snapshot, Snapshots, StopRule

__all__ = ["Move", "PathRunner", "Prospects", "Snapshot", "Snapshots", "StopRule", "group_path"]
