"""The network from a finite start, at scale: working set in Gram space."""

from covey.network.group_path import group_path
from covey.network.runner import PathRunner
from covey.network.settings import Network
from covey.network.snapshots import Snapshot, Snapshots, StopLike, StopRule, as_stop_rule

__all__ = ["Network", "PathRunner", "Snapshot", "Snapshots", "StopLike", "StopRule", "as_stop_rule", "group_path"]
