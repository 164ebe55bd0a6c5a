"""Many small simulations: in parallel, resumable, with progress.

A task is a dictionary of plain values; its result is a list of rows, also plain. Each finished task is written to the
cache as one file, whole or not at all, so an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config

__all__ = ["Row", "Task", "run_tasks"]

Task = Mapping[str, Any]
Row = dict[str, Any]


def run_tasks(
    function: Callable[..., list[Row]],
    tasks: Sequence[Task],
    *,
    cache: str | os.PathLike[str] | None = None,
    n_jobs: int | None = -1,
    progress: bool = False,
) -> list[Row]:
    """Call ``function(**task)`` for every task and return all rows, in the order of the tasks.

    Parameters
    ----------
    function : callable
        Importable (it is sent to worker processes), deterministic given its task.
    tasks : sequence of dict
        Values that JSON can hold. The cache is keyed by the function's name and the task.
    cache : directory, optional
        Where finished tasks are kept. A damaged file is computed again.
    n_jobs : int
        As in joblib; each worker uses one thread.
    progress : bool
        Show a line on stderr.
    """
    folder = None if cache is None else Path(cache) / function.__name__
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    began = shown = time.monotonic()
    with parallel_config(backend="loky", inner_max_num_threads=1):
        results = Parallel(n_jobs=n_jobs, return_as="generator")(
            delayed(_one)(function, task, folder) for task in tasks
        )
        for done, result in enumerate(results, start=1):
            rows.extend(result)
            now = time.monotonic()
            if progress and (now - shown > 1 or done == len(tasks)):
                shown = now
                _show(function.__name__, done, len(tasks), now - began)
    return rows


def _one(function: Callable[..., list[Row]], task: Task, folder: Path | None) -> list[Row]:
    if folder is None:
        return function(**task)
    file = folder / f"{_key(task)}.json"
    try:
        stored = json.loads(file.read_text())
        if stored["task"] == json.loads(json.dumps(dict(task))):
            return list(stored["rows"])
    except (OSError, ValueError, KeyError, TypeError):
        # not there, or cut off by an older crash: compute it
        pass
    rows = function(**task)
    _write_atomically(file, json.dumps({"task": dict(task), "rows": rows}))
    return rows


def _key(task: Task) -> str:
    return hashlib.sha256(json.dumps(dict(task), sort_keys=True).encode()).hexdigest()[:24]


def _write_atomically(file: Path, text: str) -> None:
    """Write beside the target and rename: a reader sees the whole file or none."""
    handle, name = tempfile.mkstemp(dir=file.parent, suffix=".part")
    try:
        with os.fdopen(handle, "w") as part:
            part.write(text)
        os.replace(name, file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _show(name: str, done: int, total: int, seconds: float) -> None:
    left = seconds / done * (total - done)
    end = "\n" if done == total else ""
    sys.stderr.write(f"\r{name}: {done}/{total}, {seconds:.0f} s, about {left:.0f} s left   {end}")
    sys.stderr.flush()
