"""A progress line on the terminal: steps done, the loss, and the time left."""

from __future__ import annotations

import sys
import time
from typing import TextIO

__all__ = ["Progress"]


class Progress:
    """A line that is overwritten as the work proceeds; silent if the stream is not a terminal, unless `shown`.

    Parameters
    ----------
    title : str
    total : int
        The total number of steps.
    done : int
        Steps done in earlier runs, which are ignored in the estimate of the time left.
    stream : text stream, optional
        Standard error by default.
    shown : bool or None
        None shows it only on a terminal.
    """

    def __init__(
        self, title: str, total: int, *, done: int = 0, stream: TextIO | None = None, shown: bool | None = None
    ) -> None:
        self.title, self.total, self.done, self.first = title, total, done, done
        self.stream = sys.stderr if stream is None else stream
        self.shown = self.stream.isatty() if shown is None else shown
        self.start = self.last = time.perf_counter()

    def advance(self, epoch: int, loss: float | None = None, note: str = "") -> None:
        """Count one more step."""
        self.done += 1
        now = time.perf_counter()
        if not self.shown or (now - self.last < 0.2 and self.done < self.total):
            return
        self.last = now
        left = (now - self.start) / (self.done - self.first) * (self.total - self.done)
        filled = 24 * self.done // max(self.total, 1)
        value = "" if loss is None else f" loss {loss:.5f}"
        line = f"{self.title} [{'#' * filled}{'.' * (24 - filled)}] epoch {epoch}{value}{note} {clock(left)} left"
        self.stream.write(f"\r{line:<79}")
        self.stream.flush()

    def wants_loss(self) -> bool:
        """Whether the next `advance` would show the loss; reading it from a GPU is not free."""
        return self.shown and time.perf_counter() - self.last >= 0.2

    def close(self) -> None:
        """End the line."""
        if self.shown and self.done > self.first:
            self.stream.write("\n")
            self.stream.flush()


def clock(seconds: float) -> str:
    """A duration in readable form.

    >>> clock(75), clock(3700)
    ('1:15', '1:01:40')
    """
    minutes, seconds_left = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds_left:02d}" if hours else f"{minutes}:{seconds_left:02d}"
