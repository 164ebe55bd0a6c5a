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

from joblib import delayed, wrap_non_picklable_objects
from threadpoolctl import threadpool_limits

from covey.files import write_atomically
from covey.paper.experiments.base import Record
from covey.progress import finished

Item = TypeVar("Item")
Result = TypeVar("Result")

_running: ContextVar[tuple[str, Path | None]] = ContextVar("running", default=("", None))


@contextmanager
def running(id: str, folder: Path | None = None) -> Iterator[None]:
    """Inside, progress has the id of the experiment, and the repeats of `records` are stored in the folder."""
    token = _running.set((f"{id}, ", folder))
    try:
        yield
    finally:
        _running.reset(token)


def each(function: Callable[[Item], Result], items: Iterable[Item], jobs: int = 1) -> list[Result]:
    """``[function(item) for item in items]``, `jobs` at a time; matrices are small here, so each has one thread."""
    task = wrap_non_picklable_objects(function, keep_wrapper=True)
    return list(finished([delayed(_single)(task, item) for item in items], f"{_running.get()[0]}repeat", jobs))


def _single(function: Callable[[Item], Result], item: Item) -> Result:
    with threadpool_limits(1):
        return function(item)


def records(function: Callable[[Item], list[Record]], items: Iterable[Item], jobs: int = 1) -> list[Record]:
    """The records of all items, in their order. Each item's are stored in one file, and used again after a stop.

    The function must be deterministic and its records plain values. Results are stored under the function's name and
    the text of the item, which must say all that they depend on; the result in a damaged file is computed again.
    """
    stored = partial(_stored, function, _running.get()[1])
    return [record for part in each(stored, items, jobs) for record in part]


def _stored(function: Callable[[Item], list[Record]], folder: Path | None, item: Item) -> list[Record]:
    if folder is None:
        return function(item)
    title = f"{function.__module__}.{function.__qualname__} {item!r}"
    file = folder / f"{sha256(title.encode())[:24]}.json"
    try:
        saved = json.loads(file.read_bytes())
        if saved["sha256"] == sha256((title + saved["records"]).encode()):
            return list(json.loads(saved["records"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass  # absent or damaged
    found = function(item)
    text = json.dumps(found)
    write_atomically(file, json.dumps({"records": text, "sha256": sha256((title + text).encode())}).encode())
    return found


def sha256(content: bytes) -> str:
    """The checksum of a file, as text."""
    return hashlib.sha256(content).hexdigest()
