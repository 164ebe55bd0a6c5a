"""A toy experiment, put into the registry by tests."""

import importlib.machinery
import sys
import types
from dataclasses import dataclass

import pandas as pd

from covey.paper.experiments import Claim, Verdict, registry
from covey.paper.experiments.style import grid, styled


@dataclass(frozen=True)
class Settings:
    repeats: int = 3

    @classmethod
    def quick(cls):
        return cls()

    @classmethod
    def full(cls):
        return cls(30)


def install(monkeypatch, id="toy", title="A toy", run=None, claim=None):
    """A toy under this id; the list that comes back grows by one with every run."""
    runs = []

    def counted(settings, jobs=1):
        runs.append(settings)
        return run(settings) if run else pd.DataFrame({"i": range(settings.repeats), "value": 0.1})

    @styled
    def plot(frame):
        figure, ((axes,),) = grid(1, 1)
        axes.plot(frame["i"], frame["value"])
        return figure

    def claims(frame):
        return [claim or Claim("Toys work.", "three rows", f"{len(frame)} rows", Verdict.HOLDS)]

    module = types.ModuleType(f"covey_test_{id}", doc="What the toy shows.")
    module.__spec__ = importlib.machinery.ModuleSpec(module.__name__, None)
    module.__dict__.update(TITLE=title, Settings=Settings, run=counted, plot=plot, claims=claims)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(registry.MODULES, id, module.__name__)
    return runs
