"""The paper's network from a finite start, at scale: a working set in Gram space.

Its kernels are compiled, so names are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from covey.network.group_path import group_path
    from covey.network.runner import PathRunner
    from covey.network.settings import Network
    from covey.network.snapshots import Snapshot, Snapshots, StopLike, StopRule, as_stop_rule

__all__ = ["Network", "PathRunner", "Snapshot", "Snapshots", "StopLike", "StopRule", "as_stop_rule", "group_path"]

_NAMES = {
    "Network": "settings",
    "PathRunner": "runner",
    "Snapshot": "snapshots",
    "Snapshots": "snapshots",
    "StopLike": "snapshots",
    "StopRule": "snapshots",
    "as_stop_rule": "snapshots",
}


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(f"covey.network.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'covey.network' has no attribute {name!r}")
