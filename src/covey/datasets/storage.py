"""Find data files that are not shipped with covey.

`COVEY_DATA` names a folder. Each loader looks for its file there, and explains how to get it if it is missing.
"""

from __future__ import annotations

import os
from pathlib import Path

ENVIRONMENT = "COVEY_DATA"


class DataNotFoundError(FileNotFoundError):
    """A data set was not found; the message says how to get it."""


def find_file(name: str, *, path: str | os.PathLike[str] | None, how: str) -> Path:
    """The file to read: `path` if given, otherwise `name` in the folder of `COVEY_DATA`.

    Raises `DataNotFoundError` with `how`, the instructions for getting the file, if it is missing.
    """
    folder = os.environ.get(ENVIRONMENT, "").strip()
    if path is None and not folder:
        raise DataNotFoundError(
            f"{name} is expected in the folder named by the environment variable {ENVIRONMENT}, which is not set. {how}"
        )
    wanted = (Path(folder) / name if path is None else Path(path)).expanduser()
    if not wanted.is_file():
        raise DataNotFoundError(f"There is no file {wanted}. {how}")
    return wanted
