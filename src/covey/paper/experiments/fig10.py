"""Interpolation between digits in the latent spaces of five autoencoders, and properties of these latent spaces.

The paper shows one picture and published no code. Here is the picture, with measures: the reconstruction error, the
effective rank of the latent covariance, the distance of interpolated images from the data (of midpoints to the nearest
training image, relative to the decoded end points), a classifier's confidence along the lines, the Frechet distance of
samples from a Gaussian fitted to the codes, and the accuracy of logistic regression on 100 labelled codes. "Ahead" is
judged by the distance of midpoints, which is what the picture shows. The measure and thresholds were fixed before these
runs (but after a shorter one), for GAE4 and GAE8 together; the two are reported separately because they turned out to
differ.

The quick setting trains on 10 000 images for a few epochs with one seed. The full setting trains on all of MNIST with
three seeds; it needs a GPU, and without one the saved results of such a run are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covey.paper import results
from covey.paper.datasets import load_mnist
from covey.paper.experiments import base
from covey.paper.experiments.autoencoders import has_gpu, needs_torch, saved_file
from covey.paper.experiments.base import Claim, Claims, Scale, judge, scaled, where
from covey.paper.experiments.style import COLOURS, GREY, Figure, empty_figure, panel, styled
from covey.paper.experiments.tasks import each
from covey.paper.results import values

TITLE = "Interpolation in the latent space of autoencoders"
MODELS = ("AE", "VAE", "GAE8", "GAE4", "IRMAE")  # from top to bottom, as in the paper's figure
LOOK = dict(zip(MODELS, (GREY, COLOURS[3], COLOURS[2], COLOURS[0], COLOURS[1]), strict=True))
GROUPED, RIVALS = ("GAE4", "GAE8"), ("AE", "VAE")
RATIO, RANK, QUALITY = "midpoint_ratio", "effective_rank", "reconstruction_error"


@dataclass(frozen=True)
class Settings(Scale):
    """Training; latent dimension 512 and 3 linear layers throughout."""

    images: int = scaled(60_000, quick=10_000)
    test_images: int = scaled(10_000, quick=2000)
    epochs: int = scaled(30, quick=2)
    batch_size: int = scaled(128, quick=32)
    learning_rate: float = 1e-3
    seeds: tuple[int, ...] = scaled((0, 1, 2), quick=(0,))
    pairs: int = scaled(1000, quick=500)
    needs_gpu: bool = scaled(True, quick=False)
    width: int = 32
    latent: int = 512


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """Train and measure the five models, or read the saved results of the full setting."""
    if settings.needs_gpu and not has_gpu():
        return results.read(saved_file("autoencoder", "measures.csv", "five networks from three seeds").parent)
    needs_torch()
    from covey.paper.nn.study import Judge

    data = load_mnist().head(settings.images, settings.test_images)
    referee = Judge.of(data, pairs=settings.pairs)
    blend = results.blended(referee.blend_ratio())
    referee_state = referee.classifier.cpu().state_dict()
    work = [(model, seed) for seed in settings.seeds for model in MODELS]
    parts = each(lambda item: _one(settings, referee_state, *item), work, 1 if has_gpu() else jobs)
    return results.combined([*parts, blend])


def _one(settings: Settings, referee_state: dict[str, Any], model: str, seed: int) -> pd.DataFrame:
    """One model from one seed; all inputs and outputs can be sent between processes."""
    import torch

    from covey.paper.nn.classifier import Classifier
    from covey.paper.nn.study import Judge, run_study

    if not torch.cuda.is_available():
        torch.set_num_threads(1)
    classifier = Classifier()
    classifier.load_state_dict(referee_state)
    data = load_mnist().head(settings.images, settings.test_images)
    return run_study(
        data, models=[model], seeds=[seed], epochs=settings.epochs, batch_size=settings.batch_size,
        learning_rate=settings.learning_rate, judge=Judge.of(data, pairs=settings.pairs, classifier=classifier),
        progress=False, amp=False, options={"width": settings.width, "latent": settings.latent},
    )  # fmt: skip


@styled
def plot(frame: pd.DataFrame) -> Figure:
    figure = empty_figure(7.0, 9.0)
    parts: Any = figure.subfigures(2, 1, height_ratios=(1.6, 1))
    above, below = parts
    pictures, (spectra, confidence, *bars) = above.subplots(len(MODELS), 1), below.subplots(2, 3).flat
    titles = {
        RATIO: "distance of midpoints", QUALITY: "reconstruction error", "frechet": "Fréchet distance",
        "probe_accuracy": "accuracy, 100 labels",
    }  # fmt: skip
    steps = sum(f"confidence_{k}" in set(frame["quantity"]) for k in range(100))
    t = np.linspace(0, 1, steps)
    for i, (axes, model) in enumerate(zip(pictures, MODELS, strict=True)):
        colour = LOOK[model]
        axes.imshow(255 - _mosaic(results.grids(frame, model)), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        axes.set_ylabel(model, rotation=0, ha="right", va="center", color=colour)
        axes.set(xticks=[], yticks=[])
        axes.grid(False)
        axes.spines[:].set_visible(False)
        singular = where(frame, model=model, quantity="singular_value").sort_values("index")
        for k, (_, column) in enumerate(singular.groupby("seed")):
            s = column["value"].to_numpy(dtype=float)
            spectra.semilogy(np.arange(1, len(s) + 1), s / s[0], color=colour, lw=1, label=None if k else model)
        mean, error = np.array([mean_and_error(frame, model, f"confidence_{k}") for k in range(steps)]).T
        confidence.plot(t, mean, color=colour)
        confidence.fill_between(t, mean - error, mean + error, color=colour, alpha=0.2, lw=0)
        for one, quantity in zip(bars, titles, strict=True):  # seeds as dots, their mean as a line with its error
            v = values(frame, model, quantity)
            one.plot(np.full(len(v), i), v, "o", color=colour, ms=2.5, alpha=0.6)
            one.errorbar(i, *mean_and_error(frame, model, quantity), fmt="_", color=colour, ms=12, capsize=3)
    pictures[0].set_title("(a) linear interpolation between test digits", loc="left")
    panel(spectra, "b", "latent spectrum", xlim=(0, 64), ylim=(1e-5, 2), xlabel="component")
    spectra.legend(handlelength=1, labelspacing=0.2)
    panel(confidence, "c", "confidence", xlabel="along the line", xlim=(0, 1))
    for one, name, title in zip(bars, "defg", titles.values(), strict=True):
        one.set_xticks(range(len(MODELS)), MODELS, rotation=35, ha="right", rotation_mode="anchor")
        one.grid(axis="x", visible=False)
        panel(one, name, title)
    return figure


def _mosaic(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Lines of images as one picture, in two columns with a gap between them."""
    blocks = []
    for part in np.array_split(images, 2):
        lines, steps, height, width = part.shape
        blocks += [part.transpose(0, 2, 1, 3).reshape(lines * height, steps * width)]
        blocks += [np.zeros((lines * height, 14), dtype=np.uint8)]
    return np.concatenate(blocks[:-1], axis=1)


def claims(frame: pd.DataFrame) -> Claims:
    seeds = len(values(frame, "AE", RATIO))
    over = f"over {seeds} seeds" if seeds > 1 else "one seed"
    pixels = values(frame, "pixels", RATIO)
    blend = f"; blending pixels has {pixels[0]:.4f}" if pixels.size else ""
    for model in GROUPED:
        for rival in RIVALS:
            gap, error = _ahead(frame, RATIO, model, rival)
            yield Claim(
                f"{model} interpolates better than {rival}.",
                "midpoints nearer to the data, by more than 2 standard errors where there are several seeds",
                f"midpoint ratio {_listed(frame, RATIO, (model, rival))} ({over}{blend}); "
                f"{'ahead' if gap > 0 else 'behind'} by {abs(gap):.4f} ± {error:.4f}",
                judge(gap > 2 * error),
            )
        plain, rank, here = (mean_and_error(frame, m, RATIO)[0] for m in ("AE", "IRMAE", model))
        share = (plain - here) / (plain - rank) if plain != rank else float(here <= rank)
        yield Claim(
            f"{model} interpolates comparably with IRMAE.",
            "the midpoint ratio nearer to IRMAE's than to AE's, or below IRMAE's",
            f"midpoint ratio {_listed(frame, RATIO, ('IRMAE', model, 'AE'))} ({over}): {share:.0%} of the way from "
            "AE to IRMAE",
            judge(share >= 0.5),
        )
    ranks = [mean_and_error(frame, model, RANK)[0] for model in ("IRMAE", "GAE4", "GAE8", "AE")]
    yield Claim(
        "(Our check.) Fewer groups, lower rank: the linear layers penalise the rank within groups.",
        "effective rank of the latent covariance IRMAE < GAE4 < GAE8 < AE",
        f"effective rank {_listed(frame, RANK, MODELS, '.1f')} ({over})",
        judge(np.all(np.diff(ranks) > 0)),
    )
    for quantity, what, unit, sign, form in (
        ("frechet", "Samples from a Gaussian fitted to the codes are better", "Frechet distance", 1.0, ".1f"),
        ("probe_accuracy", "Linear probes on 100 labelled codes are better", "test accuracy", -1.0, ".3f"),
        ("confidence_middle", "A classifier's confidence at midpoints is higher", "mean confidence", -1.0, ".3f"),
    ):
        leads = [_ahead(frame, quantity, model, rival, sign) for model in GROUPED for rival in RIVALS]
        yield Claim(
            f"(Our check.) {what} for GAE than for AE and VAE.",
            "GAE4 and GAE8 ahead of both, by more than 2 standard errors where there are several seeds",
            f"{unit} {_listed(frame, quantity, MODELS, form)} ({over})",
            judge(all(gap > 2 * error for gap, error in leads)),
        )
    *errors, most = (mean_and_error(frame, model, QUALITY)[0] for model in (*GROUPED, "IRMAE"))
    yield Claim(
        "(Our check.) Grouping does not cost reconstruction.",
        "mean squared error of GAE4 and GAE8 at most that of IRMAE",
        f"test error {_listed(frame, QUALITY, MODELS, '.5f')} ({over})",
        judge(max(errors) <= most),
    )


def mean_and_error(frame: pd.DataFrame, model: str, quantity: str) -> tuple[float, float]:
    """Mean over seeds and its standard error; zero for a single seed."""
    v = values(frame, model, quantity)
    if not v.size:
        raise ValueError(f"The table has no {quantity!r} of {model}.")
    return base.mean_and_error(v)


def _ahead(frame: pd.DataFrame, quantity: str, model: str, rival: str, sign: float = 1.0) -> tuple[float, float]:
    """How much lower the model's value is than the rival's, with its standard error."""
    (a, error_a), (b, error_b) = (mean_and_error(frame, m, quantity) for m in (model, rival))
    return sign * (b - a), float(np.hypot(error_a, error_b))


def _listed(frame: pd.DataFrame, quantity: str, models: Sequence[str], form: str = ".4f") -> str:
    parts = []
    for model in models:
        mean, error = mean_and_error(frame, model, quantity)
        spread = f" ± {error:{form}}" if len(values(frame, model, quantity)) > 1 else ""
        parts.append(f"{model} {mean:{form}}{spread}")
    return ", ".join(parts)
