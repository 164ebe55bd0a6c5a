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

from covey.files import write_atomically
from covey.paper.experiments.parallel import each, kept_in

__all__ = ["Row", "Task", "run_tasks"]

Task = Mapping[str, Any]
Row = dict[str, Any]

FORMAT = "covey piece 1"

# The largest file that is read, in bytes: a thousand times more than any that is written.
LARGEST = 2**28


def run_tasks(function: Callable[..., list[Row]], tasks: Sequence[Task], jobs: int = 1) -> list[Row]:
    """Call ``function(**task)`` for every task and return all rows, in the order of the tasks.

    Parameters
    ----------
    function : callable
        Importable (it is sent to worker processes), deterministic given its task.
    tasks : sequence of dict
        JSON-compatible values. Inside `covey.paper.experiments.parallel.keeping` finished tasks are stored, by the
        function's name and the task; the result in a damaged file is computed again.
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
    rows = read_piece(file, title)
    if rows is None:
        rows = function(**task)
        write_piece(file, title, rows)
    return rows


def write_piece(file: Path, title: str, value: Any) -> None:
    """Write a value that JSON can hold, with its title and a checksum."""
    text = json.dumps(value)
    content = {"format": FORMAT, "title": title, "sha256": _checksum(title, text), "value": text}
    write_atomically(file, json.dumps(content).encode())


def read_piece(file: Path, title: str) -> list[Row] | None:
    """The rows that were written under this title; None if the file is anything else."""
    try:
        with file.open("rb") as stream:
            raw = stream.read(LARGEST + 1)
        content = json.loads(raw) if len(raw) <= LARGEST else {}
        if (content["format"], content["title"]) != (FORMAT, title):
            return None
        if content["sha256"] != _checksum(title, content["value"]):
            return None
        value = json.loads(content["value"])
        return value if _are_rows(value) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _checksum(title: str, text: str) -> str:
    return hashlib.sha256(f"{title}\n{text}".encode()).hexdigest()


def _are_rows(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(row, dict) for row in value)


def _key(task: Task) -> str:
    return hashlib.sha256(json.dumps(dict(task), sort_keys=True).encode()).hexdigest()[:24]
