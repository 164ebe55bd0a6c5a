"""Stability selection and knockoffs on a table."""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from covey.evidence import KnockoffSelection, StabilitySelection, knockoffs, stability_selection
from covey.progress import enter
from covey.settings import HALVES, KNOCKOFFS, StabilitySettings
from covey.tables.complaint import TableError
from covey.workflow.problem import Problem, pose


@dataclass(frozen=True)
class TableSelection:
    """The groups selected from a table."""

    settings: StabilitySettings
    problem: Problem
    found: StabilitySelection | KnockoffSelection
    seconds: float

    @property
    def what(self) -> str:
        """What the groups are called: they are variables without --groups."""
        return "groups" if self.settings.groups else "variables"

    def groups_table(self) -> pd.DataFrame:
        """All groups, selected ones first."""
        return self.found.to_frame().reset_index()

    def facts(self) -> dict[str, object]:
        """The results of the method as plain values."""
        found = self.found
        if isinstance(found, StabilitySelection):
            return {
                "half_samples": len(found.orders),
                "groups_per_half_sample": found.n_first,
                "threshold": found.threshold,
                "expected_false": found.expected_false,
                "assumption": found.assumption,
            }
        return {
            "kind": found.kind,
            "draws": found.n_draws,
            "fdr": found.fdr,
            "threshold": found.threshold if np.isfinite(found.threshold) else None,
            "distance": found.distance,
        }


def select_table(settings: StabilitySettings) -> TableSelection:
    """Read the table, and select groups, or variables with all of their columns."""
    for one in settings.table().values():
        idle = one.panel in (HALVES, KNOCKOFFS) and one.panel.lower() != settings.method
        if idle and getattr(settings, one.name) is not None:
            raise TableError(f"{one.flag} has no effect with --method {settings.method}.")
    problem = pose(settings)
    always = problem.find_groups(settings.always)
    options = {n: v for n, v in settings.parameters().items() if n not in ("always", "offset", "ties")}
    enter("selecting")
    begin = time.perf_counter()
    method: Any = stability_selection if settings.method == "half-samples" else knockoffs
    found = method(**arguments_of(problem, always), **options)
    return TableSelection(settings, problem, found, time.perf_counter() - begin)


def arguments_of(problem: Problem, always: list[Hashable]) -> dict[str, Any]:
    """What both methods take of a table's problem."""
    return {
        "X": problem.columns, "y": problem.y, "groups": problem.groups, "loss": problem.response.loss,
        "always": always, "sample_weight": problem.weight, "offset": problem.offset,
    }  # fmt: skip
