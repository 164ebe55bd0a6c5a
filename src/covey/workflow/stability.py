"""Stability selection and knockoffs on a table, and a folder with the results."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

import covey
from covey.evidence import KnockoffSelection, StabilitySelection, knockoffs, stability_selection
from covey.evidence.stability import Progress
from covey.files import check_folder, whole_folder
from covey.losses import Cox, get_loss
from covey.tables import TableError
from covey.workflow.always import read_always
from covey.workflow.problem import Problem, pose
from covey.workflow.settings import TableSettings, Told, silent
from covey.workflow.survival import check_ties

__all__ = [
    "STABILITY_FILES",
    "Believed",
    "StabilitySettings",
    "believe_table",
    "check_stability_out",
    "describe_stability",
    "select_by_halves",
    "write_stability",
]

STABILITY_FILES = frozenset({"groups.csv", "run.json"})

# The options of each method; any other has no effect on it.
OPTIONS = {
    "half-samples": ("max_false", "threshold", "n_pairs", "assumption"),
    "knockoffs": ("fdr", "kind", "construction", "n_draws"),
}


@dataclass(frozen=True)
class StabilitySettings:
    """A table, and the method that selects its groups.

    Attributes
    ----------
    table : TableSettings
    method : {"half-samples", "knockoffs"}
    always : tuple of str
        Groups, terms or columns that are in every model.
    seed : int
    n_jobs : int, optional
    ties : {"efron", "breslow"}, optional
        How tied events are handled, for survival times.
    options : mapping
        Further parameters of `covey.stability_selection` or `covey.evidence.knockoffs`.
    """

    table: TableSettings
    method: Literal["half-samples", "knockoffs"] = "half-samples"
    always: tuple[str, ...] = ()
    seed: int = 0
    n_jobs: int | None = None
    ties: Literal["efron", "breslow"] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Believed:
    """The groups selected from a table."""

    settings: StabilitySettings
    problem: Problem
    found: StabilitySelection | KnockoffSelection
    seconds: float

    def groups_table(self) -> pd.DataFrame:
        """All groups, selected ones first."""
        return self.found.to_frame().reset_index()


def believe_table(settings: StabilitySettings, told: Told = silent, progress: Progress | None = None) -> Believed:
    """Read the table, expand it, and select groups."""
    for name in settings.options:
        if name not in OPTIONS[settings.method]:
            raise TableError(f"--{FLAGS.get(name, name)} has no effect with --method {settings.method}.")
    check_ties(settings.table, settings.ties)
    problem = pose(settings.table, told)
    always = read_always(settings.always, problem)
    told("selecting")
    begin = time.perf_counter()
    found: StabilitySelection | KnockoffSelection
    if settings.method == "half-samples":
        found = select_by_halves(
            problem, always, settings.seed, settings.n_jobs, progress, settings.ties, **settings.options
        )
    else:
        shared = _shared(problem, always, settings.seed, settings.n_jobs, settings.ties)
        found = knockoffs(problem.X, problem.y, problem.groups, **shared, **settings.options)
    return Believed(settings, problem, found, time.perf_counter() - begin)


def select_by_halves(
    problem: Problem,
    always: list[Any],
    seed: int,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    ties: Literal["efron", "breslow"] | None = None,
    **options: Any,
) -> StabilitySelection:
    """Stability selection on a table's problem."""
    shared = _shared(problem, always, seed, n_jobs, ties)
    return stability_selection(problem.X, problem.y, problem.groups, progress=progress, **shared, **options)


def _shared(problem: Problem, always: list[Any], seed: int, n_jobs: int | None, ties: Any) -> dict[str, Any]:
    return {
        "loss": Cox(ties) if ties is not None else get_loss(problem.response.family),
        "always": always,
        "sample_weight": problem.weight,
        "offset": problem.offset,
        "n_jobs": n_jobs,
        "random_state": seed,
    }


# Options of the command that are spelt differently from the parameters.
FLAGS = {"max_false": "max-false", "n_pairs": "pairs", "n_draws": "draws"}


def check_stability_out(folder: Path, overwrite: bool) -> None:
    """Refuse a folder that cannot be written, before the work starts."""
    check_folder(folder, STABILITY_FILES, overwrite=overwrite)


def write_stability(believed: Believed, folder: Path, *, overwrite: bool = False) -> None:
    """Write the table of groups and everything needed to repeat the run to a folder, completely or not at all."""
    check_stability_out(folder, overwrite)
    with whole_folder(folder, STABILITY_FILES) as draft:
        (draft / "groups.csv").write_bytes(believed.groups_table().to_csv(index=False).encode())
        text = json.dumps(describe_stability(believed), indent=2, ensure_ascii=False)
        (draft / "run.json").write_bytes(text.encode())


def describe_stability(believed: Believed) -> dict[str, Any]:
    """A selection as plain values: its results, and everything needed to repeat it."""
    found, problem, settings = believed.found, believed.problem, believed.settings
    table = believed.groups_table()
    own: dict[str, Any]
    if isinstance(found, StabilitySelection):
        own = {
            "half_samples": len(found.orders),
            "groups_per_half_sample": found.n_first,
            "threshold": found.threshold,
            "expected_false": found.expected_false,
            "assumption": found.assumption,
        }
    else:
        own = {
            "kind": found.kind,
            "draws": found.n_draws,
            "fdr": found.fdr,
            "threshold": found.threshold if np.isfinite(found.threshold) else None,
            "distance": found.distance,
        }
    return {
        "target": list(problem.response.targets),
        "family": problem.response.family,
        "rows": len(problem.y),
        "columns": problem.X.shape[1],
        "groups": found.n_groups,
        "method": settings.method,
        **own,
        "promise": found.promise(),
        "remarks": list(found.remarks),
        "always": [str(name) for name in found.always_groups],
        "selected_groups": table[table["selected"]].drop(columns="selected").to_dict("records"),
        "seed": settings.seed,
        "settings": {name: value for name, value in asdict(settings.table).items() if name != "data"},
        "inputs": [asdict(file) for file in problem.inputs],
        "versions": {"covey": covey.__version__, "python": platform.python_version()},
        "seconds": round(believed.seconds, 3),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
    }
