"""Repeats in parallel through joblib, with the active backend; an interrupted run is resumed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TypeVar

from joblib import Parallel, delayed, wrap_non_picklable_objects
from threadpoolctl import threadpool_limits

from covey.files import write_atomically
from covey.paper.experiments.base import Record

__all__ = ["Record", "each", "records", "watched"]

Item = TypeVar("Item")
Result = TypeVar("Result")
Watcher = Callable[[int, int], object]

_watch: ContextVar[tuple[Watcher | None, Path | None]] = ContextVar("watch", default=(None, None))


@contextmanager
def watched(watcher: Watcher | None = None, folder: Path | None = None) -> Iterator[None]:
    """Inside, call ``watcher(done, total)`` for every repeat that ends, and store those of `records` in the folder."""
    token = _watch.set((watcher, folder))
    try:
        yield
    finally:
        _watch.reset(token)


def each(function: Callable[[Item], Result], items: Iterable[Item], jobs: int = 1) -> list[Result]:
    """``[function(item) for item in items]``, with `jobs` at a time; results are in the order of the items.

    Matrices are small here, so each repeat uses one thread and the repeats share the cores.
    """
    work, (watcher, _) = list(items), _watch.get()
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


def records(function: Callable[[Item], list[Record]], items: Iterable[Item], jobs: int = 1) -> list[Record]:
    """The records of all items, in their order. Each item's are stored in one file, and used again after a stop.

    The function must be deterministic and its records plain values. Results are stored under the function's name and
    the text of the item, which must say all that they depend on; the result in a damaged file is computed again.
    """
    stored = partial(_stored, function, _watch.get()[1])
    return [record for part in each(stored, items, jobs) for record in part]


def _stored(function: Callable[[Item], list[Record]], folder: Path | None, item: Item) -> list[Record]:
    if folder is None:
        return function(item)
    title = f"{function.__module__}.{function.__qualname__} {item!r}"
    file = folder / f"{_sha256(title)[:24]}.json"
    try:
        saved = json.loads(file.read_bytes())
        if saved["sha256"] == _sha256(title + saved["records"]):
            return list(json.loads(saved["records"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass  # absent or damaged
    found = function(item)
    text = json.dumps(found)
    write_atomically(file, json.dumps({"records": text, "sha256": _sha256(title + text)}).encode())
    return found


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
