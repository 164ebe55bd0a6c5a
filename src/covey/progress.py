"""Progress of work that takes longer than a second: a bar if rich is installed, else lines.

The caller that wants progress shown opens `showing`, or `listening` to show it in its own way; the work calls `tell`,
which does nothing otherwise, and `enter` where it has parts that tell about themselves; `finished` runs such parts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

__all__ = ["Progress", "enter", "finished", "listening", "showing", "tell"]

# Called with the number of finished parts of the work and their total number.
Progress = Callable[[int, int], None]

# Seconds before progress is first shown, and between two lines.
PATIENCE = 1.0

# Seconds between two changes of a bar.
BLINK = 0.1


class Shown:
    """Progress of one task, as a bar or as lines, or told to a caller that shows it."""

    def __init__(self, what: str, hear: Callable[[str, float], None] | None = None) -> None:
        self.what, self.hear = what, hear
        self.part = ("", 1, 1)  # the part that the work is in: what it is called, its number, and how many there are
        self.last = time.perf_counter()
        self.bar: Bar | None = None

    def update(self, text: str, share: float) -> None:
        """Show the progress, a share of the part, unless it was shown a moment ago."""
        now = time.perf_counter()
        begins = self.hear is not None and not text  # the caller hears of every part
        if not begins and now - self.last < (PATIENCE if self.bar is None else BLINK):
            return
        self.last = now
        unit, number, total = self.part
        before = f"{unit} {number} of {total}" if total > 1 else unit
        text, share = ": ".join(filter(None, (before, text))), (number - 1 + share) / total
        if self.hear is not None:
            self.hear(text, share)
        elif (bar := self._open()) is None:
            print(f"[covey] {self.what}: {text} ({share:.0%})", flush=True)
        else:
            bar.update(bar.task_ids[0], description=text, completed=share, total=1.0)

    def _open(self) -> Bar | None:
        """The bar, started if needed; None where none can be drawn, and without rich."""
        if self.bar is None and _interactive():
            try:
                from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
            except ModuleNotFoundError:
                return None
            columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
            self.bar = Progress(*columns, transient=True)
            self.bar.add_task(self.what, total=None)
            self.bar.start()
        return self.bar


_SHOWN: ContextVar[Shown | None] = ContextVar("_SHOWN", default=None)


@contextmanager
def showing(what: str, verbose: int | None) -> Iterator[None]:
    """Show the progress of the enclosed work if `verbose`; of nested calls, only the outermost has an effect.

    If `verbose` is None, it is shown where a bar can be drawn, which is gone in the end: a terminal or a notebook.
    """
    wanted = _interactive() if verbose is None else verbose
    with _open_for(Shown(what)) if wanted and _SHOWN.get() is None else nullcontext():
        yield


def listening(hear: Callable[[str, float], None]) -> AbstractContextManager[None]:
    """Call `hear` with the progress of the enclosed work, as text and as a share; nothing else is shown of it."""
    return _open_for(Shown("", hear))


@contextmanager
def _open_for(shown: Shown) -> Iterator[None]:
    token = _SHOWN.set(shown)
    try:
        yield
    finally:
        _SHOWN.reset(token)
        if shown.bar is not None:
            shown.bar.stop()


def tell(stage: str, unit: str, done: int, total: int) -> None:
    """Report the progress of a stage: `done` of `total` units, such as folds."""
    shown = _SHOWN.get()
    if shown is not None:
        shown.update(f"{stage}, {unit} {done} of {total}", done / total)


def enter(unit: str, number: int = 1, total: int = 1) -> None:
    """Begin a part of the work, such as an outer fold; what it tells is shown after its name and number."""
    shown = _SHOWN.get()
    if shown is not None and number <= total:
        shown.part = (unit, number, total)
        shown.update("", 0.0)


def finished(
    tasks: list[Any], unit: str, n_jobs: int | None, progress: Progress | None = None, *, total: int | None = None
) -> Iterator[Any]:
    """The results of joblib's tasks in their order, as they are finished; `total` counts work after them too."""
    from joblib import Parallel

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


def _interactive() -> bool:
    """Whether a bar can be drawn: on a terminal, or in a notebook."""
    return sys.stdout.isatty() or "ipykernel" in sys.modules
