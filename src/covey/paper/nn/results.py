"""The results of a study as small files: measures, singular values, pictures. This file needs only numpy."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.files import write_atomically

__all__ = ["GRIDS", "MEASURES", "SPECTRA", "StudyResults"]

MEASURES, SPECTRA, GRIDS = "measures.csv", "singular_values.csv", "interpolations.npz"
DECIDED = 1e-7  # singular values below this share of the largest are round-off error of float32 codes


@dataclass
class StudyResults:
    """The results of a study, by model and seed: `measures` by name, and `spectra`, largest singular value first.

    `grids` has the pictures of the first seed of every model, bytes of shape (pairs, steps, 28, 28).
    """

    measures: dict[tuple[str, int], dict[str, float]] = field(default_factory=dict)
    spectra: dict[tuple[str, int], NDArray[Any]] = field(default_factory=dict)
    grids: dict[str, NDArray[np.uint8]] = field(default_factory=dict)

    def add(
        self, model: str, seed: int, numbers: dict[str, float], values: NDArray[Any], grid: NDArray[np.uint8]
    ) -> None:
        """Add the results of one trained model."""
        self.measures[model, seed] = numbers
        self.spectra[model, seed] = values
        self.grids.setdefault(model, grid)

    def merge(self, other: StudyResults) -> None:
        """Add the results of another study."""
        self.measures |= other.measures
        self.spectra |= other.spectra
        self.grids = {**other.grids, **self.grids}

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write three small files into the folder."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        measures, spectra = ["model,seed,measure,value"], ["model,seed,index,value"]
        for (model, seed), row in self.measures.items():
            measures += [f"{model},{seed},{name},{value:.8g}" for name, value in row.items()]
        for (model, seed), values in self.spectra.items():
            decided = values[values > DECIDED * values[0]]
            spectra += [f"{model},{seed},{i},{value:.5g}" for i, value in enumerate(decided)]
        for name, lines in ((MEASURES, measures), (SPECTRA, spectra)):
            write_atomically(place / name, ("\n".join(lines) + "\n").encode())
        buffer, arrays = io.BytesIO(), dict[str, Any](self.grids)
        np.savez_compressed(buffer, **arrays)
        write_atomically(place / GRIDS, buffer.getvalue())
        return [place / name for name in (MEASURES, SPECTRA, GRIDS)]

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> StudyResults:
        """Read the files of `write`."""
        place = Path(folder)
        absent = [name for name in (MEASURES, SPECTRA, GRIDS) if not (place / name).is_file()]
        if absent:
            raise FileNotFoundError(f"There are no results of a study in {place}: {', '.join(absent)} not found.")
        out = cls()
        for model, seed, name, value in _read_csv(place / MEASURES):
            out.measures.setdefault((model, int(seed)), {})[name] = float(value)
        spectra: dict[tuple[str, int], list[float]] = {}
        for model, seed, _, value in _read_csv(place / SPECTRA):
            spectra.setdefault((model, int(seed)), []).append(float(value))
        out.spectra = {key: np.array(values) for key, values in spectra.items()}
        with np.load(place / GRIDS) as grids:
            out.grids = {name: grids[name] for name in grids.files}
        return out

    def summary(self, name: str) -> dict[str, tuple[float, float, int]]:
        """Mean, standard error (NaN for a single seed) and number of seeds of one measure, by model."""
        found: dict[str, list[float]] = {}
        for (model, _), row in self.measures.items():
            if name in row:
                found.setdefault(model, []).append(row[name])
        n = {model: len(values) for model, values in found.items()}
        error = {m: float(np.std(v, ddof=1) / np.sqrt(n[m])) if n[m] > 1 else np.nan for m, v in found.items()}
        return {model: (float(np.mean(values)), error[model], n[model]) for model, values in found.items()}


def _read_csv(file: Path) -> list[list[str]]:
    with file.open(newline="") as stream:
        return [row for row in csv.reader(stream) if row][1:]
