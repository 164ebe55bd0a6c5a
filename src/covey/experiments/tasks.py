"""Many small simulations: in parallel, and resumable one by one.

A task is a dictionary of plain values; its result is a list of rows, also plain. Each finished task is written to one
file, completely or not at all, so that an interrupted run can be resumed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from covey.checkpoint import read_piece, write_piece
from covey.experiments.parallel import each, kept_in

__all__ = ["Row", "Task", "run_tasks"]

Task = Mapping[str, Any]
Row = dict[str, Any]


def run_tasks(function: Callable[..., list[Row]], tasks: Sequence[Task], jobs: int = 1) -> list[Row]:
    """Call ``function(**task)`` for every task and return all rows, in the order of the tasks.

    Parameters
    ----------
    function : callable
        Importable (it is sent to worker processes), deterministic given its task.
    tasks : sequence of dict
        JSON-compatible values. Inside `covey.experiments.parallel.keeping` finished tasks are stored, by the function's
        name and the task; the result in a damaged file is computed again.
    jobs : int
        The number of tasks to run at a time.
    """
    kept = kept_in()
    folder = None if kept is None else kept / function.__name__
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    return [row for rows in each(partial(_one, function, folder), tasks, jobs) for row in rows]


def _one(function: Callable[..., list[Row]], folder: Path | None, task: Task) -> list[Row]:
    if folder is None:
        return function(**task)
    file = folder / f"{_key(task)}.json"
    title = json.dumps(dict(task), sort_keys=True)
    rows: list[Row] | None = read_piece(file, title, _are_rows)
    if rows is None:
        rows = function(**task)
        write_piece(file, title, rows)
    return rows


def _are_rows(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(row, dict) for row in value)


def _key(task: Task) -> str:
    return hashlib.sha256(json.dumps(dict(task), sort_keys=True).encode()).hexdigest()[:24]
