"""Progress of work that takes longer than a second: a bar if rich is installed, else lines.

The caller that wants progress shown opens `showing`; the work calls `tell`, which does nothing otherwise.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["showing", "tell"]

# Seconds before progress is first shown, and between two lines.
PATIENCE = 1.0


class Shown:
    """Progress of one task, as a bar or as lines."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.last = time.perf_counter()
        self.bar: Progress | None = None
        self.lines = not _interactive()

    def update(self, stage: str, unit: str, done: int, total: int) -> None:
        """Show the progress, unless it was shown less than a second ago."""
        if self.bar is None and time.perf_counter() - self.last < PATIENCE:
            return
        bar = None if self.lines else self._open()
        if bar is None:
            self.last = time.perf_counter()
            print(f"[covey] {self.what}: {stage}, {unit} {done} of {total} ({done / total:.0%})", flush=True)
        else:
            bar.update(bar.task_ids[0], description=f"{stage}, {unit} {done} of {total}", completed=done, total=total)

    def _open(self) -> Progress | None:
        """The bar, started if needed; None without rich."""
        if self.bar is None:
            try:
                from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
            except ModuleNotFoundError:
                self.lines = True
                return None
            columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
            self.bar = Progress(*columns, transient=True)
            self.bar.add_task(self.what, total=None)
            self.bar.start()
        return self.bar

    def close(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.stop()


_SHOWN: ContextVar[Shown | None] = ContextVar("_SHOWN", default=None)


@contextmanager
def showing(what: str, verbose: int) -> Iterator[None]:
    """Show the progress of the enclosed work if `verbose`; of nested calls, only the outermost has an effect."""
    if not verbose or _SHOWN.get() is not None:
        yield
        return
    shown = Shown(what)
    token = _SHOWN.set(shown)
    try:
        yield
    finally:
        _SHOWN.reset(token)
        shown.close()


def tell(stage: str, unit: str, done: int, total: int) -> None:
    """Report the progress of a stage: `done` of `total` units, such as folds."""
    shown = _SHOWN.get()
    if shown is not None:
        shown.update(stage, unit, done, total)


def _interactive() -> bool:
    """Whether a bar can be drawn: on a terminal, or in a notebook."""
    return sys.stdout.isatty() or "ipykernel" in sys.modules
