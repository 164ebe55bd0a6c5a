"""Long computations as tasks, in parallel with joblib and with progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from joblib import Parallel

from covey.progress import enter

# Called with the number of finished tasks and their total number.
Progress = Callable[[int, int], None]


def finished(
    tasks: list[Any], unit: str, n_jobs: int | None, progress: Progress | None = None, *, total: int | None = None
) -> Iterator[Any]:
    """The results of tasks in their order, as they are finished; `total` counts work that comes after them too."""
    total = len(tasks) if total is None else total
    enter(unit, 1, total)
    try:
        results = Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
    except ValueError:  # the backend has no generators
        results = Parallel(n_jobs=n_jobs)(tasks)
    for number, result in enumerate(results, start=1):
        yield result
        enter(unit, number + 1, total)
        if progress is not None:
            progress(number, total)
