"""The study of the five autoencoders as one tidy table: columns ``model, seed, quantity, index, value, data``.

| quantity | index | value | data |
| --- | --- | --- | --- |
| a measure of `covey.paper.nn.measure` | 0 | its value | |
| ``singular_value`` | 0, 1, ... | of the covariance of the codes | |
| ``image`` | 100 row + step | | an interpolated image, packed |

Rows of model ``pixels`` are for blended pixels, without any model.
"""

from __future__ import annotations

import base64
import os
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import covey
from covey.datasets import DataNotFoundError
from covey.paper.experiments import base
from covey.paper.experiments.base import where

__all__ = ["MODELS", "grids", "has_gpu", "mean_and_error", "needs_torch", "read_saved", "saved_file", "table", "values"]

MODELS = ("AE", "VAE", "GAE8", "GAE4", "IRMAE")  # from top to bottom, as in the paper's figure
COLUMNS = ["model", "seed", "quantity", "index", "value", "data"]
SIDE = 28
TORCH = find_spec("torch") is not None


def needs_torch() -> None:
    """Raise the error that ``covey reproduce`` reports if torch is missing."""
    if not TORCH:
        raise DataNotFoundError("Autoencoders need torch, which is not installed: pip install 'covey[torch]'")


def has_gpu() -> bool:
    """Whether torch is installed and finds a CUDA GPU."""
    if not TORCH:
        return False
    import torch

    return bool(torch.cuda.is_available())


def saved_file(folder: str, name: str, networks: str) -> Path:
    """A file of results of a full run on a GPU: next to the source, or in the folder of `COVEY_DATA`."""
    places = [Path(covey.__file__).parents[2] / "docs" / "results"]
    if os.environ.get("COVEY_DATA"):
        places.append(Path(os.environ["COVEY_DATA"]))
    for place in places:
        if (place / folder / name).is_file():
            return place / folder / name
    raise DataNotFoundError(
        f"The full setting trains {networks} on all of MNIST and needs torch with a CUDA GPU, which is not here, and "
        f"there are no saved results of benchmarks/{folder}_full.py in docs/results/{folder} or in COVEY_DATA. The "
        "quick setting runs anywhere."
    )


def table(
    measures: dict[tuple[str, int], dict[str, float]],
    spectra: dict[tuple[str, int], NDArray[Any]],
    pictures: dict[str, NDArray[np.uint8]],
    blend: float | None = None,
) -> pd.DataFrame:
    """The tidy table of a study's results."""
    found: list[tuple[Any, ...]] = [(*key, name, 0, v, "") for key, one in measures.items() for name, v in one.items()]
    found += [(*key, "singular_value", i, v, "") for key, column in spectra.items() for i, v in enumerate(column)]
    for model, picture in pictures.items():
        for r, line in enumerate(picture):
            found += [(model, 0, "image", 100 * r + k, np.nan, _pack(image)) for k, image in enumerate(line)]
    if blend is not None:
        found.append(("pixels", 0, "midpoint_ratio", 0, blend, ""))
    return pd.DataFrame(found, columns=COLUMNS)


def read_saved(folder: str | os.PathLike[str]) -> pd.DataFrame:
    """The table of results written by ``benchmarks/autoencoder_full.py``; torch is not needed."""
    place = Path(folder)
    measures = pd.read_csv(place / "measures.csv").rename(columns={"measure": "quantity"})
    spectra = pd.read_csv(place / "singular_values.csv").assign(quantity="singular_value")
    with np.load(place / "interpolations.npz") as saved:
        pictures = table({}, {}, {name: saved[name] for name in saved.files})
    parts = [measures.assign(index=0, data=""), spectra.assign(data=""), pictures]
    if (place / "about.json").is_file():
        blend = pd.read_json(place / "about.json", typ="series").get("blend_midpoint_ratio")
        if blend is not None:
            parts.append(table({}, {}, {}, float(blend)))
    return pd.concat([part[COLUMNS] for part in parts], ignore_index=True)


def values(frame: pd.DataFrame, model: str, quantity: str) -> NDArray[np.float64]:
    """One measure of one model, one entry per seed."""
    chosen = where(frame, model=model, quantity=quantity, index=0)
    return chosen.sort_values("seed")["value"].to_numpy(dtype=float)


def mean_and_error(frame: pd.DataFrame, model: str, quantity: str) -> tuple[float, float]:
    """Mean over seeds and its standard error; zero for a single seed."""
    v = values(frame, model, quantity)
    if not v.size:
        raise ValueError(f"The table has no {quantity!r} of {model}.")
    return base.mean_and_error(v)


def grids(frame: pd.DataFrame, model: str) -> NDArray[np.uint8]:
    """The interpolations of a model, (rows, steps, 28, 28)."""
    chosen = where(frame, model=model, quantity="image").sort_values("index")
    places = chosen["index"].to_numpy(dtype=int)
    content = b"".join(zlib.decompress(base64.b85decode(text)) for text in chosen["data"])
    return np.frombuffer(content, dtype=np.uint8).reshape(len(set(places // 100)), -1, SIDE, SIDE)


def _pack(image: NDArray[np.uint8]) -> str:
    return base64.b85encode(zlib.compress(np.ascontiguousarray(image).tobytes(), 9)).decode()
