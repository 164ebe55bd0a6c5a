"""A progress line on the terminal: steps done, the loss, and the time left."""

from __future__ import annotations

import sys
import time
from typing import TextIO

__all__ = ["Progress"]


class Progress:
    """A line that is overwritten as the work proceeds; unless `shown` is given, only if the stream is a terminal.

    `done` steps of earlier runs are ignored in the estimate of the time left.
    """

    def __init__(
        self, title: str, total: int, *, done: int = 0, stream: TextIO | None = None, shown: bool | None = None
    ) -> None:
        self.title, self.total, self.done, self.first = title, total, done, done
        self.stream = sys.stderr if stream is None else stream
        self.shown = self.stream.isatty() if shown is None else shown
        self.start = self.last = time.perf_counter()

    @property
    def due(self) -> bool:
        """Whether the next `advance` shows the loss; reading it from a GPU is not free."""
        return self.shown and (time.perf_counter() - self.last >= 0.2 or self.done + 1 >= self.total)

    def advance(self, epoch: int, loss: float | None = None) -> None:
        """Count one more step."""
        due, self.done = self.due, self.done + 1
        if not due:
            return
        self.last = time.perf_counter()
        left = round((self.last - self.start) / (self.done - self.first) * max(0, self.total - self.done))
        filled = 24 * self.done // max(self.total, 1)
        value = "" if loss is None else f" loss {loss:.5f}"
        clock = (
            f"{left // 3600}:{left // 60 % 60:02d}:{left % 60:02d}" if left >= 3600 else f"{left // 60}:{left % 60:02d}"
        )
        line = f"{self.title} [{'#' * filled}{'.' * (24 - filled)}] epoch {epoch}{value} {clock} left"
        self.stream.write(f"\r{line:<79}")
        self.stream.flush()

    def close(self) -> None:
        """End the line."""
        if self.shown and self.done > self.first:
            self.stream.write("\n")
            self.stream.flush()
