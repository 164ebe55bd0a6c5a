"""The results of a study of autoencoders: a tidy table with columns ``model, seed, quantity, index, value, data``.

| quantity | index | value | data |
| --- | --- | --- | --- |
| a measure of `covey.paper.nn.measure` | 0 | its value | |
| ``singular_value`` | 0, 1, ... | of the covariance of the codes | |
| ``image`` | 100 row + step | | an interpolated image, packed |

Rows of model ``pixels`` are for blended pixels, without any model. On disk it is three small files, which can be read
without torch.
"""

from __future__ import annotations

import base64
import io
import os
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covey.files import write_atomically
from covey.validation import FloatArray

MEASURES, SPECTRA, GRIDS = "measures.csv", "singular_values.csv", "interpolations.npz"
COLUMNS = ["model", "seed", "quantity", "index", "value", "data"]
DECIDED = 1e-7  # singular values below this share of the largest are round-off error of float32 codes


def table(
    model: str, seed: int, measures: Mapping[str, float], spectrum: FloatArray, images: NDArray[np.uint8]
) -> pd.DataFrame:
    """The results of one trained model; the spectrum is its singular values, `images` are (rows, steps, 28, 28)."""
    decided = spectrum[spectrum > DECIDED * spectrum.max(initial=0.0)]
    found: list[tuple[Any, ...]] = [(name, 0, value, "") for name, value in measures.items()]
    found += [("singular_value", i, value, "") for i, value in enumerate(decided)]
    found += [("image", 100 * r + k, np.nan, _pack(images[r, k])) for r, k in np.ndindex(images.shape[:2])]
    return pd.DataFrame([(model, seed, *row) for row in found], columns=COLUMNS)


def blended(ratio: float) -> pd.DataFrame:
    """The midpoint ratio of blended pixels."""
    return pd.DataFrame([("pixels", 0, "midpoint_ratio", 0, ratio, "")], columns=COLUMNS)


def combined(parts: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Several tables as one, with the images of one seed per model."""
    frame = pd.concat(parts, ignore_index=True)
    images = frame["quantity"] == "image"
    first = frame["seed"] == frame.groupby("model")["seed"].transform("min")
    return frame[~images | first].reset_index(drop=True)


def write(frame: pd.DataFrame, folder: str | os.PathLike[str]) -> list[Path]:
    """Write measures, singular values and images into the folder."""
    place, named = Path(folder), frame.rename(columns={"quantity": "measure"})
    spectra, images = (frame["quantity"] == quantity for quantity in ("singular_value", "image"))
    for name, part, digits in (
        (MEASURES, named.loc[~spectra & ~images, ["model", "seed", "measure", "value"]], "%.8g"),
        (SPECTRA, named.loc[spectra, ["model", "seed", "index", "value"]], "%.5g"),
    ):
        write_atomically(place / name, part.to_csv(index=False, float_format=digits).encode())
    buffer = io.BytesIO()
    pictures: dict[str, Any] = {model: grids(frame, model) for model in frame.loc[images, "model"].unique()}
    np.savez_compressed(buffer, **pictures)
    write_atomically(place / GRIDS, buffer.getvalue())
    return [place / name for name in (MEASURES, SPECTRA, GRIDS)]


def read(folder: str | os.PathLike[str]) -> pd.DataFrame:
    """Read the files of `write`, and the ratio of blended pixels from ``about.json``, if there is one."""
    place, nothing = Path(folder), np.empty(0)
    absent = [name for name in (MEASURES, SPECTRA, GRIDS) if not (place / name).is_file()]
    if absent:
        raise FileNotFoundError(f"There are no results of a study in {place}: {', '.join(absent)} not found.")
    measures = pd.read_csv(place / MEASURES).rename(columns={"measure": "quantity"}).assign(index=0, data="")
    spectra = pd.read_csv(place / SPECTRA).assign(quantity="singular_value", data="")
    with np.load(place / GRIDS) as saved:
        parts = [measures, spectra, *(table(model, 0, {}, nothing, saved[model]) for model in saved.files)]
    if (place / "about.json").is_file():
        ratio = pd.read_json(place / "about.json", typ="series").get("blend_midpoint_ratio")
        parts += [] if ratio is None else [blended(float(ratio))]
    return pd.concat([part[COLUMNS] for part in parts], ignore_index=True)


def values(frame: pd.DataFrame, model: str, quantity: str) -> FloatArray:
    """One measure of one model, one entry per seed."""
    chosen = frame[(frame["model"] == model) & (frame["quantity"] == quantity) & (frame["index"] == 0)]
    return chosen.sort_values("seed")["value"].to_numpy(dtype=float)


def grids(frame: pd.DataFrame, model: str) -> NDArray[np.uint8]:
    """The interpolations of a model, (rows, steps, 28, 28)."""
    chosen = frame[(frame["model"] == model) & (frame["quantity"] == "image")].sort_values("index")
    content = b"".join(zlib.decompress(base64.b85decode(text)) for text in chosen["data"])
    return np.frombuffer(content, dtype=np.uint8).reshape(len(set(chosen["index"] // 100)), -1, 28, 28)


def _pack(image: NDArray[np.uint8]) -> str:
    return base64.b85encode(zlib.compress(np.ascontiguousarray(image).tobytes(), 9)).decode()
