"""The command line: parsing and printing only. Each command imports what it needs when it is called."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["interruptible", "main"]

INTERRUPTED = 130


def main() -> None:
    """Entry point of the ``covey`` command."""
    signal.signal(signal.SIGINT, _leave)  # before the imports, which take a good part of a second
    from covey.optional import MissingExtraError, optional

    try:
        with optional("The command line"):
            from covey.cli.app import run
    except MissingExtraError as reason:
        sys.exit(f"error: {reason}")
    if sys.stdout is None:  # closed, as by >&-
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  (open until the end)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    run()


def _leave(*_: object) -> None:
    """Handle Ctrl-C before any work has started."""
    os.write(2, b"\nStopped; nothing was written.\n")
    os._exit(INTERRUPTED)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise `KeyboardInterrupt` in this block, so that it can clean up."""
    if signal.getsignal(signal.SIGINT) is not _leave:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, _leave)
