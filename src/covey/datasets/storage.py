"""Find data files that are not shipped with covey.

`COVEY_DATA` names a folder. Each loader looks for its file there, checks that it is the right one, and explains how to
get it if it is missing.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

__all__ = ["ENVIRONMENT", "DataNotFoundError", "data_folder", "find_file", "sha256"]

ENVIRONMENT = "COVEY_DATA"


class DataNotFoundError(FileNotFoundError):
    """A data set was not found; the message says how to get it."""


def data_folder() -> Path | None:
    """The folder named by `COVEY_DATA`, or None if it is not set."""
    named = os.environ.get(ENVIRONMENT, "").strip()
    return Path(named).expanduser() if named else None


def sha256(content: bytes) -> str:
    """The SHA-256 of some bytes, in hexadecimal.

    >>> sha256(b"")[:8]
    'e3b0c442'
    """
    return hashlib.sha256(content).hexdigest()


def find_file(name: str, *, path: str | os.PathLike[str] | None, how: str) -> Path:
    """The file to read: `path` if given, otherwise `name` in the folder of `COVEY_DATA`.

    Raises `DataNotFoundError` with `how`, the instructions for getting the file, if it is missing.
    """
    if path is not None:
        wanted = Path(path).expanduser()
    else:
        folder = data_folder()
        if folder is None:
            raise DataNotFoundError(
                f"{name} is expected in the folder named by the environment variable {ENVIRONMENT}, "
                f"which is not set. {how}"
            )
        wanted = folder / name
    if not wanted.is_file():
        raise DataNotFoundError(f"There is no file {wanted}. {how}")
    return wanted
