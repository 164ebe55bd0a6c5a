"""Repeats in parallel through joblib, with the active backend (processes by default; threads, Dask)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

from joblib import Parallel, delayed, wrap_non_picklable_objects
from threadpoolctl import threadpool_limits

__all__ = ["each", "keeping", "kept_in", "watched"]

Item = TypeVar("Item")
Result = TypeVar("Result")
Watcher = Callable[[int, int], Any]

_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)
_folder: ContextVar[Path | None] = ContextVar("folder", default=None)


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Call ``watcher(done, total)`` for every repeat that ends inside the block."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


@contextmanager
def keeping(folder: Path) -> Iterator[None]:
    """Store the finished tasks of `covey.paper.experiments.tasks` in this folder inside the block."""
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


def kept_in() -> Path | None:
    """The folder in which finished tasks are stored, if any."""
    return _folder.get()


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
