"""The path of a table: the order in which its groups wake up, without choosing a model."""

from __future__ import annotations

import io
from pathlib import Path as File

import pandas as pd

from covey.files import write_atomically
from covey.path import Path
from covey.search.limit_path import limit_path
from covey.settings import TableSettings
from covey.workflow.problem import Problem, Show, pose, show_nothing

PICTURES = (".png", ".svg", ".pdf")


def trace_table(settings: TableSettings, *, most: int, show: Show = show_nothing) -> tuple[Path, Problem]:
    """Read a table and compute its path until `most` groups or variables are awake, or nothing is left to explain.

    Uses squared loss, or the Cox partial likelihood for survival times.
    """
    problem = pose(settings, show, squared="covey path")
    show("running")
    path = limit_path(
        problem.columns, problem.y, problem.groups, sample_weight=problem.weight, max_groups=most,
        loss=problem.response.loss,
    )  # fmt: skip
    return path, problem


def order_table(path: Path) -> pd.DataFrame:
    """The groups in the order in which they woke up, with their strength at the end of the path."""
    assert path.strengths is not None
    order = [l for l, _ in path.entered]
    return pd.DataFrame(
        {
            "group": [path.groups.names[l] for l in order],
            "size": path.groups.sizes[order],
            "woke_up": [t for _, t in path.entered],
            "strength": path.strengths[[len(path) - 1]].toarray().ravel()[order],
        }
    )


def draw(path: Path, file: File) -> None:
    """Plot the path to a file, written completely or not at all."""
    from covey.plots import GroupPathDisplay

    stream = io.BytesIO()
    GroupPathDisplay.from_path(path).figure_.savefig(stream, format=file.suffix.lower().removeprefix("."), dpi=150)
    write_atomically(file, stream.getvalue())
