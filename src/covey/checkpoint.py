"""Checkpoint: results kept in a folder, so that work that was cut off goes on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from covey.designs import DenseDesign, Design
from covey.files import write_atomically

__all__ = ["Checkpoint", "fingerprint", "kept"]


@dataclass(frozen=True)
class Checkpoint:
    """Finished pieces of one piece of work, each in a file of its own that is whole or not there.

    Parameters
    ----------
    folder : Path
        May serve any number of pieces of work.
    key : str
        Of everything that the results depend on: data, settings, version.
    """

    folder: Path
    key: str

    @classmethod
    def of(cls, folder: Any, *parts: Any) -> Checkpoint | None:
        """The checkpoint of a piece of work that is determined by these parts; None without a folder."""
        if folder is None:
            return None
        try:
            made = Path(folder)
            made.mkdir(parents=True, exist_ok=True)
        except (OSError, TypeError) as reason:
            raise ValueError(
                f"checkpoint must be a folder that can be written to, not {folder!r} ({reason})."
            ) from None
        key = joblib.hash(parts)
        assert key is not None
        return cls(made, key)

    def load(self, name: str) -> Any:
        """A finished piece; None where it is not there, or damaged."""
        try:
            return json.loads(self._file(name).read_text())
        except (OSError, ValueError):
            return None

    def save(self, name: str, value: Any) -> None:
        """Keep a finished piece, made of lists, numbers and text."""
        write_atomically(self._file(name), json.dumps(value).encode())

    def _file(self, name: str) -> Path:
        return self.folder / self.key / f"{name}.json"


def kept(checkpoint: Checkpoint | None, name: str, function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)``, or what it gave before; tuples come back as lists."""
    found = None if checkpoint is None else checkpoint.load(name)
    if found is not None:
        return found
    value = function(*args)
    if checkpoint is not None:
        checkpoint.save(name, value)
    return value


def fingerprint(design: Design, *rows: Any) -> tuple[Any, ...]:
    """What tells one design, with vectors over its rows, from another.

    A dense array is told by its bytes; other kinds by two products with vectors of random signs, to ten digits, which
    takes one reading.
    """
    vectors = [np.asarray(vector.cpu() if hasattr(vector, "cpu") else vector) for vector in rows]
    if isinstance(design, DenseDesign):
        return (design.X, *vectors)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (2, design.shape[0]))
    products = np.asarray(design.correlate(signs), dtype=float)
    return (design.shape, [f"{value:.10g}" for value in products.ravel()], *vectors)
