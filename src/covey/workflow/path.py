"""The path of a table: the order in which its groups wake up, without choosing a model."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path as File

import numpy as np
import pandas as pd

from covey.estimators.group_views import column_names
from covey.files import write_atomically
from covey.path import Path
from covey.progress import enter
from covey.search.limit_path import limit_path
from covey.settings import TableSettings
from covey.terms import Expansion
from covey.workflow.problem import Problem, pose

PICTURES = (".png", ".svg", ".pdf")


def trace_table(settings: TableSettings, *, most: int) -> tuple[Path, Problem]:
    """Read a table and compute its path until `most` groups or variables are awake, or nothing is left to explain.

    Uses squared loss, or the Cox partial likelihood for survival times.
    """
    problem = pose(settings, "covey path")
    enter("running")
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


def coefficients_along(path: Path, outputs: Sequence[str] = (), expansion: Expansion | None = None) -> pd.DataFrame:
    """The path in long form: one row per time and awake column, plus one per time for the intercept.

    With several outputs, each has its rows, named by `outputs`. Columns of terms are named by their `expansion`.
    """
    p, n_times, n_outputs = path.groups.n_columns, len(path), path.n_outputs
    coefs = path.coefs.tocoo()
    output, column = np.divmod(coefs.col, p)
    used, place = np.unique(column, return_inverse=True)
    labels = path.groups.labels[used]
    groups = np.array([str(path.groups.names[l]) for l in labels], dtype=object)
    columns = np.array(column_names(path.groups, used.tolist(), expansion), dtype=object)
    no_name = np.full(n_times * n_outputs, None, dtype=object)
    position = np.concatenate([np.repeat(np.arange(n_times), n_outputs), coefs.row])
    which = np.concatenate([np.tile(np.arange(n_outputs), n_times), output])
    table = {
        "time": path.times[position],
        "group" if expansion is None else "term": np.concatenate([no_name, groups[place]]),
        "column": np.concatenate([no_name, columns[place]]),
        "coefficient": np.concatenate([path.intercepts.ravel(), coefs.data]),
    }
    if n_outputs > 1:
        table = {"time": table.pop("time"), "output": np.array(outputs, dtype=object)[which], **table}
    return pd.DataFrame(table).iloc[np.lexsort((which, position))].reset_index(drop=True)


def draw(path: Path, file: File) -> None:
    """Plot the path to a file, written completely or not at all."""
    from covey.plots import GroupPathDisplay

    stream = io.BytesIO()
    GroupPathDisplay.from_path(path).figure_.savefig(stream, format=file.suffix.lower().removeprefix("."), dpi=150)
    write_atomically(file, stream.getvalue())
