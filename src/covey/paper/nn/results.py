"""The results of a study as small files: measures, singular values, pictures."""

from __future__ import annotations

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
        self.measures[model, seed] = numbers
        self.spectra[model, seed] = values
        self.grids.setdefault(model, grid)

    def merge(self, other: StudyResults) -> None:
        self.measures |= other.measures
        self.spectra |= other.spectra
        self.grids = {**other.grids, **self.grids}

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write three small files into the folder."""
        import pandas as pd

        place = Path(folder)
        measures = [(*key, name, value) for key, row in self.measures.items() for name, value in row.items()]
        spectra = [(*key, i, v) for key, s in self.spectra.items() for i, v in enumerate(s[s > DECIDED * s[0]])]
        for name, third, rows, digits in (
            (MEASURES, "measure", measures, "%.8g"), (SPECTRA, "index", spectra, "%.5g"),
        ):  # fmt: skip
            table = pd.DataFrame(rows, columns=["model", "seed", third, "value"])
            write_atomically(place / name, table.to_csv(index=False, float_format=digits).encode())
        buffer, arrays = io.BytesIO(), dict[str, Any](self.grids)
        np.savez_compressed(buffer, **arrays)
        write_atomically(place / GRIDS, buffer.getvalue())
        return [place / name for name in (MEASURES, SPECTRA, GRIDS)]

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> StudyResults:
        """Read the files of `write`."""
        import pandas as pd

        place = Path(folder)
        absent = [name for name in (MEASURES, SPECTRA, GRIDS) if not (place / name).is_file()]
        if absent:
            raise FileNotFoundError(f"There are no results of a study in {place}: {', '.join(absent)} not found.")
        by_key: Any = [pd.read_csv(place / name).groupby(["model", "seed"], sort=False) for name in (MEASURES, SPECTRA)]
        measures = {key: dict(zip(part["measure"], part["value"], strict=True)) for key, part in by_key[0]}
        spectra = {key: part["value"].to_numpy() for key, part in by_key[1]}
        with np.load(place / GRIDS) as grids:
            return cls(measures, spectra, {name: grids[name] for name in grids.files})

    def summary(self, name: str) -> dict[str, tuple[float, float, int]]:
        """Mean, standard error (NaN for a single seed) and number of seeds of one measure, by model."""
        found: dict[str, list[float]] = {}
        for (model, _), row in self.measures.items():
            if name in row:
                found.setdefault(model, []).append(row[name])
        error = {m: float(np.std(v, ddof=1) / np.sqrt(len(v))) if len(v) > 1 else np.nan for m, v in found.items()}
        return {model: (float(np.mean(values)), error[model], len(values)) for model, values in found.items()}
