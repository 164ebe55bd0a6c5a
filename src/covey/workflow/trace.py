"""The whole path of a table: in which order its groups wake up, with no time chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from covey.engine import Snapshot, group_path
from covey.path import Path
from covey.workflow.problem import Problem, pose
from covey.workflow.settings import TableSettings, Told, silent

__all__ = ["order_table", "trace_table"]


def trace_table(
    settings: TableSettings, *, most: int, options: Mapping[str, Any], told: Told = silent
) -> tuple[Problem, Path]:
    """Read a table and run its path until `most` groups are awake, or nothing is left to explain."""
    problem = pose(settings, told)
    told("running")

    def enough(snapshot: Snapshot) -> bool:
        return snapshot.n_woken >= most

    path = group_path(
        problem.X, problem.y, problem.groups, sample_weight=problem.weight, stop=enough, **options
    )
    return problem, path


def order_table(path: Path) -> pd.DataFrame:
    """The groups in the order in which they woke up, with their strength at the end of the path."""
    assert path.strengths is not None
    last = path.strengths[[len(path) - 1]].toarray().ravel()
    order = [l for l, _ in path.entered]
    return pd.DataFrame(
        {
            "group": [path.groups.names[l] for l in order],
            "size": path.groups.sizes[order],
            "woke_up": [int(t) for _, t in path.entered],
            "strength": last[order],
        }
    )
