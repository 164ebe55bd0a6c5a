"""Checkpoint: results stored in a folder, so that interrupted work resumes where it stopped."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from covey.designs import Design
from covey.files import write_atomically

__all__ = ["Checkpoint", "fingerprint", "kept", "read_piece", "write_piece"]

FORMAT = "covey piece 1"

# The largest file that is read, in bytes: a thousand times more than any that is written.
LARGEST = 2**28


def anything(value: Any) -> bool:
    """Accept any value as a piece."""
    return True


@dataclass(frozen=True)
class Checkpoint:
    """Finished pieces of one task, each in its own atomically written file.

    Parameters
    ----------
    folder : Path
        May hold the pieces of any number of tasks.
    key : str
        A hash of everything that the results depend on: data, settings, version.
    holds : callable
        Returns whether a value can be a piece; must be importable, because other processes make pieces too.
    """

    folder: Path
    key: str
    holds: Callable[[Any], bool] = anything

    @classmethod
    def of(cls, folder: Any, *parts: Any, holds: Callable[[Any], bool] = anything) -> Checkpoint | None:
        """The checkpoint of a task that is determined by these parts; None without a folder."""
        if folder is None:
            return None
        try:
            made = Path(folder)
            made.mkdir(parents=True, exist_ok=True)
            if not os.access(made, os.W_OK | os.X_OK):
                raise PermissionError("no permission to write there")
        except (OSError, TypeError, ValueError) as reason:
            raise ValueError(
                f"checkpoint must be a folder that can be written to, not {folder!r} ({reason})."
            ) from None
        key = joblib.hash(parts)
        assert key is not None
        return cls(made, key, holds)

    def load(self, name: str) -> Any:
        """A finished piece; None if it is missing, damaged, or from another task."""
        return read_piece(self._file(name), f"{self.key}/{name}", self.holds)

    def save(self, name: str, value: Any) -> None:
        """Store a finished piece, made of lists, numbers and text."""
        try:
            write_piece(self._file(name), f"{self.key}/{name}", value)
        except OSError as reason:
            raise OSError(
                f"The checkpoint {self.folder} cannot be written to ({reason}); free some space, or choose another one."
            ) from reason

    def _file(self, name: str) -> Path:
        return self.folder / self.key / f"{name}.json"


def write_piece(file: Path, title: str, value: Any) -> None:
    """Write a value that JSON can hold, with its title and a checksum."""
    text = json.dumps(value)
    content = {"format": FORMAT, "title": title, "sha256": _checksum(title, text), "value": text}
    write_atomically(file, json.dumps(content).encode())


def read_piece(file: Path, title: str, holds: Callable[[Any], bool] = anything) -> Any:
    """The value that was written under this title; None if the file is anything else."""
    try:
        with file.open("rb") as stream:
            raw = stream.read(LARGEST + 1)
        content = json.loads(raw) if len(raw) <= LARGEST else {}
        if (content["format"], content["title"]) != (FORMAT, title):
            return None
        if content["sha256"] != _checksum(title, content["value"]):
            return None
        value = json.loads(content["value"])
        return value if holds(value) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _checksum(title: str, text: str) -> str:
    return hashlib.sha256(f"{title}\n{text}".encode()).hexdigest()


def kept(checkpoint: Checkpoint | None, name: str, function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)``, or its stored result; tuples come back as lists."""
    found = None if checkpoint is None else checkpoint.load(name)
    if found is not None:
        return found
    value = function(*args)
    if checkpoint is not None:
        checkpoint.save(name, value)
    return value


def fingerprint(design: Design, *rows: Any) -> tuple[Any, ...]:
    """Identifies a design and vectors over its rows, by a digest of every number in X.

    It takes one pass over X, about a second per GiB.
    """
    vectors = [np.asarray(vector.cpu() if hasattr(vector, "cpu") else vector) for vector in rows]
    return (design.digest(), *vectors)
