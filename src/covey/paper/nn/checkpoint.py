"""Checkpoints: written atomically and read safely."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import torch

from covey.files import write_atomically
from covey.paper.nn.models import Autoencoder, rebuild

__all__ = ["CheckpointError", "load_model", "read_checkpoint", "write_checkpoint"]

FORMAT = "covey autoencoder 1"


class CheckpointError(ValueError):
    """A file that is not a checkpoint, or one of another model or run; the message says what to do."""


def write_checkpoint(file: Path, model: Autoencoder, **rest: Any) -> None:
    """Save the model with its settings, and everything else needed to resume a run."""
    buffer = io.BytesIO()
    torch.save({"format": FORMAT, "settings": model.settings, "model": model.state_dict(), **rest}, buffer)
    write_atomically(file, buffer.getvalue())


def read_checkpoint(file: str | os.PathLike[str]) -> dict[str, Any]:
    """Everything in a checkpoint, on the CPU; no code in it is executed."""
    path = Path(file)
    if not path.is_file():
        raise FileNotFoundError(f"There is no checkpoint {path}.")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, zipfile.BadZipFile, KeyError, ValueError) as reason:
        why = (str(reason) or type(reason).__name__).splitlines()[0]
        raise CheckpointError(f"{path} is not a checkpoint, or it is damaged: {why}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CheckpointError(f"{path} is not a checkpoint of covey.paper.nn.train.")
    return content


def load_model(file: str | os.PathLike[str], *, best: bool = True) -> Autoencoder:
    """The model of a checkpoint, ready for inference, on the CPU.

    Parameters
    ----------
    file : path
    best : bool
        If the run used early stopping, load the weights with the least validation loss instead of the last ones.
    """
    content = read_checkpoint(file)
    model = rebuild(content["settings"])
    model.load_state_dict(content["best_model"] if best and content.get("best_model") else content["model"])
    return model.eval()


def check_same(path: Path, kind: str, saved: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Refuse to resume from a checkpoint of another `kind` (model, run)."""
    names = sorted({*saved, *wanted}, key=str)
    different = [f"{n} {saved.get(n)!r} there, {wanted.get(n)!r} here" for n in names if saved.get(n) != wanted.get(n)]
    if different:
        raise CheckpointError(
            f"{path} is a checkpoint of another {kind}: {'; '.join(different)}. "
            "Use another folder, or resume=False to start again."
        )
