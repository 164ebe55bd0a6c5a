"""Where data that is not ours to ship is looked for.

`COVEY_DATA` names a folder; each loader says which file it wants in it, checks that it is the right one, and says
how to get it when it is not there.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

__all__ = ["ENVIRONMENT", "DataNotFoundError", "data_folder", "find_file", "sha256"]

ENVIRONMENT = "COVEY_DATA"


class DataNotFoundError(FileNotFoundError):
    """A data set is not where it is looked for; the message says how to get it."""


def data_folder() -> Path | None:
    """The folder that `COVEY_DATA` names, or None when it names none."""
    named = os.environ.get(ENVIRONMENT, "").strip()
    return Path(named).expanduser() if named else None


def sha256(content: bytes) -> str:
    """The SHA-256 of some bytes, in hexadecimal.

    >>> sha256(b"")[:8]
    'e3b0c442'
    """
    return hashlib.sha256(content).hexdigest()


def find_file(name: str, *, path: str | os.PathLike[str] | None, how: str) -> Path:
    """The file to read: `path` where given, else `name` in the folder of `COVEY_DATA`.

    Raises `DataNotFoundError` with `how`, the way to get the file, where there is none.
    """
    if path is not None:
        wanted = Path(path).expanduser()
    else:
        folder = data_folder()
        if folder is None:
            raise DataNotFoundError(
                f"{name} is looked for in the folder that the environment variable {ENVIRONMENT} names, "
                f"which is not set. {how}"
            )
        wanted = folder / name
    if not wanted.is_file():
        raise DataNotFoundError(f"There is no file {wanted}. {how}")
    return wanted
