"""Train an autoencoder, with seeds, early stopping, a log, and checkpoints that are read without running any code."""

from __future__ import annotations

import csv
import hashlib
import io
import math
import os
import pickle
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch

from covey.files import write_atomically
from covey.paper.nn.images import as_images, prepare
from covey.paper.nn.models import Autoencoder, rebuild
from covey.progress import showing, tell
from covey.validation import positive, whole

CHECKPOINT, LOG = "checkpoint.pt", "log.csv"
FORMAT = "covey autoencoder 1"
VALIDATION_BATCH = 1000
# What changes from epoch to epoch, besides the weights and the state of the optimiser.
PROGRESS = ("epoch", "status", "history", "best_epoch", "best_model")


class CheckpointError(ValueError):
    """A file that is not a checkpoint, or one of another model or run; the message says what to do."""


@dataclass
class TrainingResult:
    """The trained model, in evaluation mode on its device; with early stopping, with the best weights.

    `history` has one row per epoch: epoch, loss, validation_loss, seconds. `status` is ``"completed"``, ``"stopped
    early"`` or ``"diverged"``, and `best_epoch` the epoch with the least validation loss, if there is one.
    """

    model: Autoencoder
    history: list[dict[str, Any]] = field(default_factory=list)
    status: str = "completed"
    best_epoch: int | None = None


def train(
    model: Autoencoder, images: object, *, validation: object = None, epochs: int = 10, batch_size: int = 128,
    learning_rate: float = 1e-3, seed: int = 0, device: str | torch.device = "auto",
    amp: bool | Literal["auto"] = "auto", patience: int | None = None, folder: str | os.PathLike[str] | None = None,
    resume: bool = True, progress: bool | None = None,
) -> TrainingResult:  # fmt: skip
    """Minimise the model's loss with Adam, at a constant learning rate; the model is trained in place.

    Parameters
    ----------
    images, validation : arrays of shape (n, 28, 28)
        Bytes, or numbers from 0 to 1, all of which are kept on the device. The loss on the second, which early stopping
        needs, is logged after each epoch.
    seed : int
        Seed for the order of the images and for the noise in a variational loss; the weights are drawn when the model
        is built (see `build`).
    device : str or torch.device
        ``"auto"`` is CUDA, else Apple's, else the CPU.
    amp : bool or "auto"
        Mixed precision (bfloat16, or float16 with scaled losses on older cards). ``"auto"`` uses it on CUDA only.
    patience : int, optional
        Stop after this many epochs without a better validation loss.
    folder : path, optional
        Where ``checkpoint.pt`` and ``log.csv`` are written after every epoch, each atomically.
    resume : bool
        Resume from the folder's checkpoint. On the CPU the weights are the same, to the bit, as without the
        interruption. `epochs` may be larger than before; everything else must be the same.
    progress : bool, optional
        Show the loss of the last epoch and how much is done; by default only on a terminal or in a notebook.
    """
    epochs, batch_size = whole(epochs, "epochs"), whole(batch_size, "batch_size")
    if patience is not None:
        whole(patience, "patience")
        if validation is None:
            raise ValueError("patience needs validation images, which determine when to stop.")
    place = choose_device(device)
    data = as_images(images, place)
    held_out = None if validation is None else as_images(validation, place)
    settings = {
        "batch_size": batch_size, "learning_rate": positive(learning_rate, "learning_rate"),
        "seed": whole(seed, "seed", least=0), "patience": patience, "images": _fingerprint(data),
        "validation": None if held_out is None else _fingerprint(held_out),
    }  # fmt: skip
    use_amp = place.type == "cuda" if amp == "auto" else bool(amp)
    file = None if folder is None else Path(folder) / CHECKPOINT
    run = _Run(model=model.to(place), place=place, settings=settings, amp=use_amp, file=file)
    if resume and run.file is not None and run.file.is_file():
        run.restore()
    with showing(f"training {model.title}", progress):
        while run.epoch < epochs and run.status == "completed":
            run.one_epoch(data, held_out, epochs)
            run.save()
    if run.best_model is not None:
        model.load_state_dict(run.best_model)
    return TrainingResult(model.eval(), run.history, run.status, run.best_epoch)


def choose_device(device: str | torch.device = "auto") -> torch.device:
    """The device with this name; ``"auto"`` is the fastest one available."""
    if str(device) != "auto":
        place = torch.device(device)
        if place.type == "cuda" and not torch.cuda.is_available():
            raise ValueError(f"device={str(device)!r}, but torch sees no CUDA device here; use device='cpu' or 'auto'.")
        return place
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def shuffled_batches(n: int, batch_size: int, epochs: int, seed: int, device: torch.device) -> Iterator[torch.Tensor]:
    """The positions of the images of every batch, in a new order each epoch; a seed fixes all of them."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(whole(epochs, "epochs")):
        yield from torch.randperm(n, generator=generator).to(device).split(batch_size)


@dataclass(kw_only=True)
class _Run(TrainingResult):
    """The state of a training run between two epochs, all of which is saved in the checkpoint."""

    place: torch.device
    settings: dict[str, Any]
    amp: bool
    file: Path | None
    epoch: int = 0
    best_model: dict[str, torch.Tensor] | None = None

    def __post_init__(self) -> None:
        on_gpu = self.place.type == "cuda"
        weights, rate = list(self.model.parameters()), self.settings["learning_rate"]
        try:  # fused, if this torch has that for the device (on the CPU: a fifth of the time of a step)
            self.optimizer = torch.optim.Adam(weights, lr=rate, fused=True)
        except RuntimeError:
            self.optimizer = torch.optim.Adam(weights, lr=rate)
        half = torch.float16 if on_gpu and not torch.cuda.is_bf16_supported() else torch.bfloat16
        self.autocast = torch.autocast(self.place.type, dtype=half, enabled=self.amp)
        self.scaler = torch.amp.GradScaler(self.place.type, enabled=self.amp and half == torch.float16)

    def one_epoch(self, data: torch.Tensor, held_out: torch.Tensor | None, epochs: int) -> None:
        """Train on every image once, in an order that depends only on the seed and the epoch."""
        start = time.perf_counter()
        self.model.train()
        # one generator per epoch, so that an interrupted run needs no random state to resume
        mixed = 1_000_003 * self.settings["seed"] + self.epoch
        order = torch.randperm(len(data), generator=torch.Generator().manual_seed(mixed)).to(self.place)
        noise = torch.Generator(self.place).manual_seed(mixed)
        total = torch.zeros((), device=self.place)
        batches = order.split(self.settings["batch_size"])
        stage = f"loss {self.history[-1]['loss']:.5f}" if self.history else "first epoch"
        for done, chosen in enumerate(batches, start=1 + self.epoch * len(batches)):
            self.optimizer.zero_grad(set_to_none=True)
            with self.autocast:
                loss = self.model.loss(prepare(data[chosen]), noise)
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            total += loss.detach() * len(chosen)
            tell(stage, "batch", done, epochs * len(batches))
        self.epoch += 1
        row: dict[str, Any] = {"epoch": self.epoch, "loss": float(total) / len(data)}
        row["validation_loss"] = None if held_out is None else self.validate(held_out)
        row["seconds"] = round(time.perf_counter() - start, 3)
        self.history.append(row)
        if not math.isfinite(row["loss"]):
            self.status = "diverged"
        elif self.settings["patience"] is not None:  # keep the best weights, and stop when the patience is exhausted
            values = [row["validation_loss"] for row in self.history]
            if self.best_model is None or values[-1] < min(values[:-1]):
                self.best_epoch = self.epoch
                self.best_model = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}
            elif self.best_epoch is not None and self.epoch - self.best_epoch >= self.settings["patience"]:
                self.status = "stopped early"

    @torch.no_grad()
    def validate(self, held_out: torch.Tensor) -> float:
        """The loss on the validation images; random losses use the same noise after every epoch."""
        self.model.eval()
        noise = torch.Generator(self.place).manual_seed(0)
        total = 0.0
        for part in held_out.split(VALIDATION_BATCH):
            with self.autocast:
                total += float(self.model.loss(prepare(part), noise)) * len(part)
        return total / len(held_out)

    def save(self) -> None:
        if self.file is None:
            return
        content = {"format": FORMAT, "settings": self.model.settings, "run": self.settings}
        content |= {name: getattr(self, name).state_dict() for name in ("model", "optimizer", "scaler")}
        buffer = io.BytesIO()
        torch.save({**content, **{name: getattr(self, name) for name in PROGRESS}}, buffer)
        write_atomically(self.file, buffer.getvalue())
        text = io.StringIO()
        table = csv.DictWriter(text, ["epoch", "loss", "validation_loss", "seconds"], lineterminator="\n")
        table.writeheader()
        table.writerows(self.history)
        write_atomically(self.file.parent / LOG, text.getvalue().encode())

    def restore(self) -> None:
        assert self.file is not None
        saved = read_checkpoint(self.file)
        for kind, there, here in (
            ("model", saved["settings"], self.model.settings), ("run", saved["run"], self.settings),
        ):  # fmt: skip
            names = sorted({*there, *here}, key=str)
            other = [f"{n} {there.get(n)!r} there, {here.get(n)!r} here" for n in names if there.get(n) != here.get(n)]
            if other:
                raise CheckpointError(
                    f"{self.file} is a checkpoint of another {kind}: {'; '.join(other)}. "
                    "Use another folder, or resume=False to start again."
                )
        for name in ("model", "optimizer", "scaler"):
            getattr(self, name).load_state_dict(saved[name])
        for name in PROGRESS:
            setattr(self, name, saved[name])


def _fingerprint(images: torch.Tensor) -> str:
    """A fingerprint of a data set: its shape and some of its images."""
    some = images[:: max(1, len(images) // 64)].contiguous().cpu().numpy()
    return f"{len(images)} images {hashlib.sha256(some.tobytes()).hexdigest()[:16]}"


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
    """A checkpoint's model on the CPU, ready for inference; after early stopping, that of least validation loss."""
    content = read_checkpoint(file)
    model = rebuild(content["settings"])
    model.load_state_dict(content["best_model"] if best and content.get("best_model") else content["model"])
    return model.eval()
