"""The registry of experiments. To add one, write its file and add its id to `MODULES`.

A module has a docstring, a ``TITLE``, a frozen dataclass ``Settings`` with class methods ``quick()`` and ``full()``,
and three functions: ``run(settings, jobs) -> DataFrame``, ``plot(frame) -> Figure`` and ``claims(frame)``, which yields
every `Claim`. The last two see only the saved table.
"""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Literal

import pandas as pd

from covey.paper.experiments.base import Claim, Scale
from covey.paper.experiments.style import Figure

Mode = Literal["quick", "full"]

# In the order of the paper, then our extensions.
MODULES = {
    id: f"covey.paper.experiments.{id}"
    for id in (
        *(f"fig{k}" for k in range(1, 13)), *(f"table{k}" for k in range(1, 4)),
        "mirror", "rates", "phase", "powers", "delta", "noise", "channels",
    )
}  # fmt: skip


class UnknownExperimentError(KeyError, ValueError):
    """No experiment has this id; the message suggests the closest."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class Experiment:
    """One figure or table of the paper: its id, and the module with its settings, table, figure and claims."""

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

    def settings(self, mode: Mode) -> Scale:
        """The quick or the full settings."""
        return getattr(self.module.Settings, mode)()

    def run(self, settings: Scale, jobs: int = 1) -> pd.DataFrame:
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
    return list(MODULES)


def find(id: str) -> Experiment:
    """The experiment with this id.

    >>> find("fig2").title
    'Convergence of Algorithm 1'
    >>> find("fgi2")
    Traceback (most recent call last):
    ...
    covey.paper.experiments.registry.UnknownExperimentError: There is no experiment 'fgi2'; did you mean 'fig2'? ...
    """
    if id not in MODULES:
        near = difflib.get_close_matches(id.lower().replace(" ", "").replace("figure", "fig"), MODULES, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise UnknownExperimentError(f"There is no experiment {id!r}{hint} There are: {', '.join(MODULES)}.")
    return Experiment(id, importlib.import_module(MODULES[id]))
