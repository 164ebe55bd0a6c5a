"""The path of a table: the order in which its groups wake up, without choosing a model."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path as File

import numpy as np
import pandas as pd
import scipy.sparse as sp

from covey.files import write_atomically
from covey.losses import Cox, Squared
from covey.path import Path
from covey.search.limit_path import limit_path
from covey.workflow.problem import pose
from covey.workflow.settings import TableSettings, Told, silent
from covey.workflow.survival import check_ties

__all__ = ["coefficients_along", "draw", "order_table", "trace_table"]

PICTURES = (".png", ".svg", ".pdf")


def trace_table(
    settings: TableSettings, *, most: int, ties: str | None = None, told: Told = silent, notice: Told = silent
) -> Path:
    """Read a table and compute its path until `most` groups are awake, or nothing is left to explain.

    Uses squared loss, or the Cox partial likelihood for survival times.
    """
    check_ties(settings, ties)
    problem = pose(settings, told, squared="covey path")
    for message in problem.notices:
        notice(message)
    told("running")
    loss = Cox(ties or "efron") if problem.response.family == "cox" else Squared()  # type: ignore[arg-type]
    return limit_path(problem.X, problem.y, problem.groups, sample_weight=problem.weight, max_groups=most, loss=loss)


def order_table(path: Path) -> pd.DataFrame:
    """The groups in the order in which they woke up, with their strength at the end of the path."""
    assert path.strengths is not None
    last = path.strengths[[len(path) - 1]].toarray().ravel()
    order = [l for l, _ in path.entered]
    return pd.DataFrame(
        {
            "group": [path.groups.names[l] for l in order],
            "size": path.groups.sizes[order],
            "woke_up": [t for _, t in path.entered],
            "strength": last[order],
        }
    )


def coefficients_along(path: Path, outputs: Sequence[str] = ()) -> pd.DataFrame:
    """The path in long form: one row per time and awake column, plus one per time for the intercept.

    With several outputs, each has its own rows, named by `outputs`.
    """
    if path.n_outputs > 1:
        return _of_every_output(path, outputs)
    coefs = path.coefs.tocoo()
    names = np.array([str(name) for name in path.groups.names], dtype=object)
    columns = np.array([path.groups.column_name(j) for j in range(path.groups.n_columns)], dtype=object)
    awake = {
        "time": path.times[coefs.row],
        "group": names[path.groups.labels[coefs.col]],
        "column": columns[coefs.col],
        "coefficient": coefs.data,
    }
    none = np.full(len(path), None, dtype=object)
    intercepts = {"time": path.times, "group": none, "column": none, "coefficient": path.intercepts}
    whole = pd.DataFrame({name: np.concatenate([intercepts[name], awake[name]]) for name in awake})
    return whole.sort_values("time", kind="stable", ignore_index=True)


def _of_every_output(path: Path, outputs: Sequence[str]) -> pd.DataFrame:
    """The long form with several outputs, in order of time."""
    p = path.groups.n_columns
    parts = [
        coefficients_along(
            replace(
                path, n_outputs=1, parts=None, intercepts=path.intercepts[:, k],
                coefs=sp.csr_array(path.coefs[:, k * p : (k + 1) * p]),
            )
        ).assign(output=name)
        for k, name in enumerate(outputs)
    ]  # fmt: skip
    whole = pd.concat(parts).sort_values("time", kind="stable", ignore_index=True)
    return whole[["time", "output", "group", "column", "coefficient"]]


def draw(path: Path, file: File) -> None:
    """Plot the path to a file, written completely or not at all."""
    from covey.plots import GroupPathDisplay

    stream = io.BytesIO()
    GroupPathDisplay.from_path(path).figure_.savefig(stream, format=file.suffix.lower().removeprefix("."), dpi=150)
    write_atomically(file, stream.getvalue())
