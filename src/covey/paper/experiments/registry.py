"""The registry of experiments. To add one, write its file and add one line to `MODULES`.

A module has a docstring, a ``TITLE``, a frozen dataclass ``Settings`` with class methods ``quick()`` and ``full()``,
and three functions: ``run(settings, jobs) -> DataFrame``, ``plot(frame) -> Figure`` and
``claims(frame) -> list of Claim``. The last two see only the saved table.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from covey.paper.experiments.claim import Claim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MODULES", "Experiment", "Mode", "UnknownExperimentError", "available", "find"]

Mode = Literal["quick", "full"]

# In the order of the paper; missing modules are skipped.
MODULES: dict[str, str] = {
    "fig1": "covey.paper.experiments.fig1",
    "fig2": "covey.paper.experiments.fig2",
    "fig3": "covey.paper.experiments.fig3",
    "fig4": "covey.paper.experiments.fig4",
    "fig5": "covey.paper.experiments.fig5",
    "fig6": "covey.paper.experiments.fig6",
    "fig7": "covey.paper.experiments.fig7",
    "fig8": "covey.paper.experiments.fig8",
    "fig9": "covey.paper.experiments.fig9",
    "fig10": "covey.paper.experiments.fig10",
    "fig11": "covey.paper.experiments.fig11",
    "fig12": "covey.paper.experiments.fig12",
    "table1": "covey.paper.experiments.table1",
    "table2": "covey.paper.experiments.table2",
    "table3": "covey.paper.experiments.table3",
    "mirror": "covey.paper.experiments.mirror",
    "rates": "covey.paper.experiments.rates",
    "phase": "covey.paper.experiments.phase",
    "powers": "covey.paper.experiments.powers",
    "delta": "covey.paper.experiments.delta",
    "noise": "covey.paper.experiments.noise",
    "channels": "covey.paper.experiments.channels",
}


class UnknownExperimentError(KeyError):
    """No experiment has this id; the message suggests the closest."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class Experiment:
    """One figure or table of the paper."""

    id: str
    module: ModuleType

    @property
    def title(self) -> str:
        """A one-line description."""
        return str(self.module.TITLE)

    @property
    def about(self) -> str:
        """The description in the module's docstring."""
        return (self.module.__doc__ or "").strip()

    def settings(self, mode: Mode) -> Any:
        """The quick or the full settings."""
        kind = self.module.Settings
        return kind.quick() if mode == "quick" else kind.full()

    def run(self, settings: Any, jobs: int = 1) -> pd.DataFrame:
        """Compute the tidy table behind the figure."""
        return self.module.run(settings, jobs)

    def plot(self, frame: pd.DataFrame) -> Figure:
        """Draw the figure from its table."""
        return self.module.plot(frame)

    def claims(self, frame: pd.DataFrame) -> list[Claim]:
        """Judge the paper's claims from the table."""
        return [replace(claim, id=self.id) for claim in self.module.claims(frame)]


def available() -> list[str]:
    """The ids of all experiments, in the order of the paper."""
    return [id for id, module in MODULES.items() if importlib.util.find_spec(module) is not None]


def find(id: str) -> Experiment:
    """The experiment with this id.

    >>> find("fig2").title
    'Convergence of Algorithm 1'
    >>> find("fgi2")
    Traceback (most recent call last):
    ...
    covey.paper.experiments.registry.UnknownExperimentError: There is no experiment 'fgi2'; did you mean 'fig2'? ...
    """
    known = available()
    if id not in known:
        near = difflib.get_close_matches(id.lower().replace(" ", "").replace("figure", "fig"), known, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}" + "?" if near else "."
        raise UnknownExperimentError(f"There is no experiment {id!r}{hint} There are: {', '.join(known)}.")
    return Experiment(id, importlib.import_module(MODULES[id]))
