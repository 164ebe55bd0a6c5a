"""Every measure of one trained autoencoder, and the study that compares several over seeds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from covey.paper.nn import latent
from covey.paper.nn.classifier import Classifier, train_classifier
from covey.paper.nn.images import as_images, as_shares
from covey.paper.nn.latent import decode_all, encode_all, interpolate, midpoint_ratio, random_pairs
from covey.paper.nn.models import MODELS, Autoencoder, build
from covey.paper.nn.training import CHECKPOINT, choose_device, load_model, read_checkpoint, train

if TYPE_CHECKING:  # this room needs only torch and numpy
    import pandas as pd

    from covey.paper.datasets import DigitImages

STEPS = 9  # points on an interpolation, ends included
GRID_ROWS = 6  # pairs of digits in the pictures


@dataclass
class Judge:
    """Images of shape (n, 1, 28, 28), labels, classifier and the number of lines with which every model is measured."""

    train: torch.Tensor
    train_labels: torch.Tensor
    test: torch.Tensor
    test_labels: torch.Tensor
    classifier: Classifier
    pairs: int = 1000

    @classmethod
    def of(
        cls, data: DigitImages, *, device: torch.device | str = "auto", pairs: int = 1000, epochs: int = 2,
        classifier: Classifier | None = None,
    ) -> Judge:  # fmt: skip
        """Copy the data to the device and, unless one is given, train a classifier for this many epochs."""
        place = choose_device(device)
        train_labels, test_labels = (torch.tensor(one, device=place) for one in (data.train_labels, data.test_labels))
        if classifier is None:
            classifier = train_classifier(data.train_images, data.train_labels, epochs=epochs, device=place)
        train_images, test_images = as_images(data.train_images, place), as_images(data.test_images, place)
        return cls(train_images, train_labels, test_images, test_labels, classifier.to(place).eval(), pairs)

    def blend_ratio(self) -> float:
        """The midpoint ratio of blended pixels, without any model: the baseline for interpolation."""
        first, second = random_pairs(len(self.test), self.pairs)
        a, b = (as_shares(self.test[i.to(self.test.device)]) for i in (first, second))
        return midpoint_ratio(torch.stack([a, (a + b) / 2, b], dim=1).squeeze(2), self.train)


def measure(model: Autoencoder, judge: Judge) -> tuple[dict[str, float], torch.Tensor]:
    """All measures of a model by name, and the singular values of the covariance of its codes.

    ========================== ==================================================================== ========
    ``reconstruction_error``   mean squared error of the pixels of the test images                  lower
    ``effective_rank``         of the covariance of the codes of the test images
    ``components_99``          principal components of the codes with 99% of the variance
    ``midpoint_ratio``         distance of interpolation midpoints to the data, ends = 1            lower
    ``confidence_middle``      the classifier's mean confidence at the midpoints                    higher
    ``confidence_least``       the mean over lines of the least confidence along each               higher
    ``confidence_0`` ...       mean confidence at each point of the lines
    ``frechet``                squared Frechet distance of Gaussian samples to test images          lower
    ``probe_accuracy``         logistic regression on 100 labelled codes, test accuracy             higher
    ========================== ==================================================================== ========
    """
    model.eval()
    place = next(model.parameters()).device
    test = judge.test
    codes, test_codes = encode_all(model, judge.train), encode_all(model, test)
    out = {"reconstruction_error": float((decode_all(model, test_codes) - as_shares(test)).square().mean())}
    values = latent.spectrum(test_codes)
    out["effective_rank"], out["components_99"] = latent.effective_rank(values), float(latent.components(values))

    first, second = (index.to(place) for index in random_pairs(len(test), judge.pairs))
    path = interpolate(model, test[first], test[second], STEPS).to(place)
    out["midpoint_ratio"] = midpoint_ratio(path, judge.train)
    confidence = judge.classifier.confidence(path.flatten(0, 1).unsqueeze(1)).reshape(path.shape[:2])
    out["confidence_middle"] = float(confidence[:, STEPS // 2].mean())
    out["confidence_least"] = float(confidence.min(1).values.mean())
    out |= {f"confidence_{k}": float(c) for k, c in enumerate(confidence.mean(0))}

    drawn = decode_all(model, latent.gaussian_samples(codes, len(test)))
    features = judge.classifier.features
    out["frechet"] = latent.frechet_distance(features(drawn), features(test))
    out["probe_accuracy"] = latent.probe_accuracy(codes, judge.train_labels, test_codes, judge.test_labels)
    return out, values


def grid(model: Autoencoder, images: Any, labels: Any, rows: int = GRID_ROWS, steps: int = STEPS) -> np.ndarray:
    """Interpolations as bytes (rows, steps, 28, 28), in row r from the first image of digit r to that of r + 3."""
    _, firsts = np.unique(labels, return_index=True)
    a, b = (images[np.roll(firsts, -shift)[np.arange(rows) % len(firsts)]] for shift in (0, 3))
    return (255 * interpolate(model, a, b, steps)).round().to(torch.uint8).numpy()


def run_study(
    data: DigitImages, *, models: Iterable[str] = MODELS, seeds: Iterable[int] = (0, 1, 2),
    device: torch.device | str = "auto", judge: Judge | None = None, folder: Path | None = None,
    options: dict[str, Any] | None = None, report: Callable[[str], None] = lambda line: None, **training: Any,
) -> pd.DataFrame:  # fmt: skip
    """Train each model (a name for `build`, with `options`) from each seed: the table of `covey.paper.results`.

    Training has the parameters of `train`; with a `folder`, runs are stored in ``MODEL-SEED/``, and the same call
    resumes from there. `report` is called with a line of text after each model.
    """
    from covey.paper.results import combined, table

    judge = Judge.of(data, device=device) if judge is None else judge
    parts = []
    for seed in seeds:
        for name in models:
            start = time.perf_counter()
            model = build(name, seed=seed, **(options or {}))
            place = None if folder is None else folder / f"{model.title}-{seed}"
            run = train(model, data.train_images, seed=seed, device=device, folder=place, **training)
            trained = time.perf_counter() - start
            numbers, *more = _measured(run.model, run.history, judge)
            numbers |= {"training_seconds": round(trained, 2), "seconds": round(time.perf_counter() - start, 2)}
            parts.append(table(model.title, seed, numbers, *more))
            report(
                f"{model.title} seed {seed}: error {numbers['reconstruction_error']:.5f}, "
                f"effective rank {numbers['effective_rank']:.1f}, midpoint ratio {numbers['midpoint_ratio']:.3f}, "
                f"{numbers['seconds']:.1f} s"
            )
    return combined(parts)


def measure_folder(folder: Path, judge: Judge, report: Callable[[str], None] = lambda line: None) -> pd.DataFrame:
    """Measure every checkpoint ``*/checkpoint.pt`` of a folder again, from its saved weights."""
    from covey.paper.results import combined, table

    files = sorted(Path(folder).glob(f"*/{CHECKPOINT}"))
    if not files:
        raise FileNotFoundError(f"There are no checkpoints in {folder}: {CHECKPOINT} is expected one folder below it.")
    parts = []
    for file in files:
        saved = read_checkpoint(file)
        model = load_model(file).to(judge.test.device)
        parts.append(table(model.title, saved["run"]["seed"], *_measured(model, saved["history"], judge)))
        report(f"{file}: {model.title}, seed {saved['run']['seed']}, {saved['epoch']} epochs")
    return combined(parts)


def _measured(model: Autoencoder, history: list[Any], judge: Judge) -> tuple[dict[str, float], np.ndarray, np.ndarray]:
    """The numbers, singular values and pictures of a trained model."""
    numbers, values = measure(model, judge)
    numbers["latent_parameters"] = float(model.latent_parameter_count())
    numbers |= {"training_loss": history[-1]["loss"], "epochs": float(len(history))}
    return numbers, values.numpy(), grid(model, judge.test, judge.test_labels.cpu())
