"""covey finds the few groups of columns that matter in a regression, and fits them.

Groups wake up one after another, strongest first, along the path of the network ``w_l = u_l^2 v_l`` in the limit of
small starts. Groups that are not needed are dropped again, and cross-validation chooses one model.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from covey import (
        baselines,
        datasets,
        dynamics,
        evidence,
        experiments,
        losses,
        nn,
        plots,
        report,
        selection,
        stopping,
        theory,
    )
    from covey.batched import group_paths
    from covey.estimators import GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor, TermGroups
    from covey.evidence import nested_score, stability_selection
    from covey.groups import Groups
    from covey.search.limit_path import limit_path
    from covey.losses import survival
    from covey.network import Network
    from covey.network.group_path import group_path
    from covey.path import Path
    from covey.persistence import load, save

__all__ = [
    "GroupSparseClassifier",
    "GroupSparseCox",
    "GroupSparseRegressor",
    "Groups",
    "Network",
    "Path",
    "TermGroups",
    "baselines",
    "datasets",
    "dynamics",
    "evidence",
    "experiments",
    "group_path",
    "group_paths",
    "limit_path",
    "load",
    "losses",
    "nested_score",
    "nn",
    "plots",
    "report",
    "save",
    "selection",
    "stability_selection",
    "stopping",
    "survival",
    "theory",
]
__version__ = "0.2.0"

# Imported on first use, so that `import covey` and `covey --help` are fast.
_ROOMS = (
    "baselines", "datasets", "dynamics", "evidence", "experiments", "losses", "nn", "plots", "report", "selection",
    "stopping", "theory",
)  # fmt: skip
_NAMES = {
    "GroupSparseClassifier": "covey.estimators",
    "GroupSparseCox": "covey.estimators",
    "GroupSparseRegressor": "covey.estimators",
    "Groups": "covey.groups",
    "Network": "covey.network",
    "Path": "covey.path",
    "TermGroups": "covey.estimators",
    "group_path": "covey.network.group_path",
    "group_paths": "covey.batched",
    "limit_path": "covey.search.limit_path",
    "load": "covey.persistence",
    "nested_score": "covey.evidence",
    "save": "covey.persistence",
    "stability_selection": "covey.evidence",
    "survival": "covey.losses",
}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"covey.{name}")
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'covey' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_ROOMS, *_NAMES])
