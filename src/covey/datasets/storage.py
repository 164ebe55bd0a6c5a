"""Find data files that are not shipped with covey.

`COVEY_DATA` names a folder. Each loader looks for its file there, checks that it is the right one, and explains how to
get it if it is missing.
"""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path

import pandas as pd

__all__ = ["ENVIRONMENT", "DataNotFoundError", "find_file", "read_table"]

ENVIRONMENT = "COVEY_DATA"


class DataNotFoundError(FileNotFoundError):
    """A data set was not found; the message says how to get it."""


def read_table(name: str, *, path: str | os.PathLike[str] | None, checksum: str, how: str) -> pd.DataFrame:
    """Read a CSV file if its SHA-256 is the expected one: with other data, results would differ from published ones."""
    file = find_file(name, path=path, how=how)
    content = file.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != checksum:
        raise ValueError(f"{file} is not the expected data set: SHA-256 {found}, expected {checksum}. {how}")
    return pd.read_csv(io.BytesIO(content))


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
