"""Repeats in parallel through joblib, with the active backend, and many small simulations that can be resumed.

A task is a dictionary of plain values; its result is a list of records, also plain. Each finished task is written to
one file, completely or not at all, so that an interrupted run can be resumed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from joblib import Parallel, delayed, wrap_non_picklable_objects
from threadpoolctl import threadpool_limits

from covey.files import write_atomically
from covey.paper.experiments.base import Record

__all__ = ["Record", "each", "resumable", "run_tasks", "watched"]

Task = Mapping[str, Any]
Item = TypeVar("Item")
Result = TypeVar("Result")
Watcher = Callable[[int, int], object]

_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)
_folder: ContextVar[Path | None] = ContextVar("folder", default=None)


def watched(watcher: Watcher) -> AbstractContextManager[None]:
    """Call ``watcher(done, total)`` for every repeat that ends inside the block."""
    return _set(_watcher, watcher)


def resumable(folder: Path) -> AbstractContextManager[None]:
    """Store the finished tasks of `run_tasks` in this folder inside the block."""
    return _set(_folder, folder)


@contextmanager
def _set(variable: ContextVar[Any], value: object) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def each(function: Callable[[Item], Result], items: Iterable[Item], jobs: int = 1) -> list[Result]:
    """``[function(item) for item in items]``, with `jobs` at a time; results are in the order of the items.

    Matrices are small here, so each repeat uses one thread and the repeats share the cores.
    """
    work = list(items)
    watcher = _watcher.get()
    results: list[Result] = []
    try:
        parallel = Parallel(n_jobs=jobs, return_as="generator")
    except ValueError:  # joblib's multiprocessing returns all results at once
        parallel = Parallel(n_jobs=jobs)
    task = wrap_non_picklable_objects(function, keep_wrapper=True)
    for done, result in enumerate(parallel(delayed(_single)(task, item) for item in work), start=1):
        results.append(result)
        if watcher is not None:
            watcher(done, len(work))
    return results


def _single(function: Callable[[Item], Result], item: Item) -> Result:
    with threadpool_limits(1):
        return function(item)


def run_tasks(function: Callable[..., list[Record]], tasks: Sequence[Task], jobs: int = 1) -> list[Record]:
    """Call ``function(**task)`` for every task and return all records, in the order of the tasks.

    The function must be importable, because it is sent to worker processes, and deterministic; the values of a task
    must be JSON-compatible. Inside `resumable`, finished tasks are stored by the function's name and the task; the
    result in a damaged file is computed again.
    """
    parent = _folder.get()
    one = partial(_one, function, None if parent is None else parent / function.__name__)
    return [record for part in each(one, tasks, jobs) for record in part]


def _one(function: Callable[..., list[Record]], folder: Path | None, task: Task) -> list[Record]:
    """The records of a task, from its file if that is intact."""
    if folder is None:
        return function(**task)
    title = json.dumps(dict(task), sort_keys=True)
    file = folder / f"{_sha256(title)[:24]}.json"
    try:
        saved = json.loads(file.read_bytes())
        if saved == _stored(title, saved["records"]):
            return list(json.loads(saved["records"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass  # absent or damaged
    records = function(**task)
    write_atomically(file, json.dumps(_stored(title, json.dumps(records))).encode())
    return records


def _stored(title: str, records: str) -> dict[str, str]:
    """What the file of a task holds: its records as text, with a checksum."""
    return {"task": title, "records": records, "sha256": _sha256(f"{title}\n{records}")}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
