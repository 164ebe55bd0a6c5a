"""Tables from standard input and other pipes, which can be read only once."""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path
from typing import TextIO

__all__ = ["STANDARD", "pipe_content"]

# The name of standard input and output.
STANDARD = "-"


def pipe_content(path: Path) -> bytes | None:
    """The content of standard input or of another pipe, however often it is asked for; None for other files."""
    if str(path) == STANDARD:
        return _read(sys.stdin)
    if path.is_fifo() or str(path) == "/dev/stdin":
        return _read(path, path.stat().st_ino)
    return None


@lru_cache(maxsize=4)
def _read(source: Path | TextIO, _number: int = 0) -> bytes:
    """Read a stream, or a pipe, whose number tells it from another of the same name."""
    content: bytes = source.read_bytes() if isinstance(source, Path) else source.buffer.read()
    return content
