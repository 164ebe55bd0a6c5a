"""The paper, runnable: "Implicit Regularization for Group Sparsity" (Li, Nguyen, Hegde and Wong, ICLR 2023).

This part may import the tool; the tool never imports it. `NetworkRegressor` is the paper's method as an estimator;
`dynamics` has its algorithms, `theory` its theorems, `experiments` its figures and tables.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from covey.paper.regressor import NetworkRegressor
    from covey.paper.stopping import AtTime, TheoryWindow

__all__ = ["AtTime", "NetworkRegressor", "TheoryWindow"]

# Imported on first use: some of these rooms compile, some need torch or matplotlib.
_ROOMS = ("baselines", "datasets", "dynamics", "experiments", "nn", "plots", "theory")
_NAMES = {"AtTime": "stopping", "NetworkRegressor": "regressor", "TheoryWindow": "stopping"}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"covey.paper.{name}")
    if name in _NAMES:
        return getattr(import_module(f"covey.paper.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'covey.paper' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_ROOMS, *_NAMES])
