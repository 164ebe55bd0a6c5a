"""What the experiments with networks of torch need: torch, a GPU, or saved results."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import covey
from covey.datasets import DataNotFoundError

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
