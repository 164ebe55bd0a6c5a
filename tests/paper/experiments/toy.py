"""A toy experiment, put into the registry by tests, and helpers for tables and verdicts."""

import io
import sys
import types
from dataclasses import dataclass

import numpy as np
import pandas as pd

from covey.paper.experiments import Claim, Verdict, rates, registry
from covey.paper.experiments.base import Scale, scaled
from covey.paper.experiments.runner import as_csv
from covey.paper.experiments.style import panels, render


@dataclass(frozen=True)
class Settings(Scale):
    repeats: int = scaled(30, quick=3)


def install(monkeypatch, id="toy", title="A toy", run=None, claim=None):
    """A toy under this id; the list that comes back grows by one with every run."""
    runs = []

    def counted(settings, jobs=1):
        runs.append(settings)
        return run(settings) if run else pd.DataFrame({"i": range(settings.repeats), "value": 0.1})

    @panels()
    def plot(frame, axes):
        axes.plot(frame["i"], frame["value"])

    def claims(frame):
        yield claim or Claim("Toys work.", "three rows", f"{len(frame)} rows", Verdict.HOLDS)

    module = types.ModuleType(f"covey_test_{id}", doc="What the toy shows.")
    module.__dict__.update(TITLE=title, Settings=Settings, run=counted, plot=plot, claims=claims)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(registry.MODULES, id, module.__name__)
    return runs


def through_disk(frame):
    """A table as it is read back."""
    return pd.read_csv(io.BytesIO(as_csv(frame)))


def assert_complete(experiment, frame):
    """The table survives the disk, and has a figure with labels and claims that say something; returns the claims."""
    saved = through_disk(frame)
    assert len(saved) == len(frame) > 0
    claims = experiment.claims(saved)
    assert claims
    assert all(isinstance(one, Claim) and one.id == experiment.id and one.verdict in Verdict for one in claims)
    assert all(one.claim and one.expected and one.measured for one in claims)
    assert len({one.claim for one in claims}) == len(claims)
    figure = experiment.plot(saved)
    files = render(figure, experiment.id)
    assert files["png"].startswith(b"\x89PNG")
    assert b"<svg" in files["svg"]
    drawn = [axes for axes in figure.axes if axes.axison and axes.get_label() != "<colorbar>"]
    assert all(axes.get_title(loc="left") and axes.get_xlabel() for axes in drawn)
    return claims


def verdicts(module, frame):
    return [claim.verdict for claim in module.claims(through_disk(frame))]


def failing(module, frame):
    """The positions of the claims that do not hold."""
    return [k for k, verdict in enumerate(verdicts(module, frame)) if verdict is Verdict.FAILS]


def errors_along(exponents, spread, *, repeats=20, seed=0, scale=1.0, **columns):
    """A table of `rates`: log errors on lines of these slopes by axis, with this spread; all methods alike."""
    rng = np.random.default_rng(seed)
    columns = {"part": "rates", **columns}
    return pd.DataFrame(
        {"axis": axis, "value": value, "repeat": r, "method": method, "minimax": line, **columns}
        | {"error": scale * line * np.exp(spread * rng.standard_normal())}
        for axis, exponent in exponents.items()
        for value in (2.0, 4.0, 8.0, 16.0)
        for line in [(np.log(value) if axis == "p" else value) ** exponent]
        for r in range(repeats)
        for method in rates.METHODS
    )
