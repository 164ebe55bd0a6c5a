"""covey finds the few groups of columns that matter in a regression, and fits them.

Groups wake up one after another, strongest first, along the path of the network ``w_l = u_l^2 v_l`` in the limit of
small starts. Groups that are not needed are dropped again, and cross-validation chooses one model.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from covey import datasets, evidence, losses, plots, report, selection
    from covey.designs import open
    from covey.estimators import GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor, TermGroups
    from covey.evidence import nested_score, stability_selection
    from covey.groups import Groups
    from covey.losses import survival
    from covey.path import Path
    from covey.persistence import load, save
    from covey.search.limit_path import limit_path
    from covey.tables import from_anndata, read_table
    from covey.terms import Curve, Levels, Linear, Terms

__all__ = [
    "Curve",
    "GroupSparseClassifier",
    "GroupSparseCox",
    "GroupSparseRegressor",
    "Groups",
    "Levels",
    "Linear",
    "Path",
    "TermGroups",
    "Terms",
    "datasets",
    "evidence",
    "from_anndata",
    "limit_path",
    "load",
    "losses",
    "nested_score",
    "open",
    "plots",
    "read_table",
    "report",
    "save",
    "selection",
    "stability_selection",
    "survival",
]
__version__ = "0.3.0"

# Imported on first use, so that `import covey` and `covey --help` are fast.
_ROOMS = ("datasets", "evidence", "losses", "plots", "report", "selection")
_NAMES = {
    "Curve": "covey.terms",
    "GroupSparseClassifier": "covey.estimators",
    "GroupSparseCox": "covey.estimators",
    "GroupSparseRegressor": "covey.estimators",
    "Groups": "covey.groups",
    "Levels": "covey.terms",
    "Linear": "covey.terms",
    "Path": "covey.path",
    "TermGroups": "covey.estimators",
    "Terms": "covey.terms",
    "from_anndata": "covey.tables",
    "limit_path": "covey.search.limit_path",
    "load": "covey.persistence",
    "nested_score": "covey.evidence",
    "open": "covey.designs",
    "read_table": "covey.tables",
    "save": "covey.persistence",
    "stability_selection": "covey.evidence",
    "survival": "covey.losses",
}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"covey.{name}")
    if name not in _NAMES:
        raise AttributeError(f"module 'covey' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_NAMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_ROOMS, *_NAMES])
