"""Comparison of structured pruning methods, with the same network, training loop and order of deletion for all.

| method | layers | what makes channels small | strength |
| --- | --- | --- | --- |
| plain | plain | nothing (weight decay) | |
| group lasso | plain | a proximal step of the group norm after each gradient step | its weight |
| power 2, power 3 | ``u^N v`` | training alone, from a smaller start | the start, over torch's |
| D-gating 2, D-gating 3 | D factors | weight decay on the factors: the group norm, or its power 2/3 | its weight |

After training, channels are deleted in order of their scores (`covey.paper.nn.pruning.channel_scores`), and the
accuracy of the remaining network is recorded, without further training.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import TYPE_CHECKING

import torch
from torch.nn import functional as F

from covey.paper.nn.factored import factor_penalty
from covey.paper.nn.pruning import ChannelNet, accuracy, channel_scores, largest_channels, shrink_groups, take_out
from covey.paper.nn.training import choose_device, shuffled_batches
from covey.validation import one_of, positive, whole

if TYPE_CHECKING:  # the images need only numpy, but their package has loaders that need more
    from covey.paper.datasets import DigitImages

# name: (kind of layers, power N or number of factors D)
METHODS: dict[str, tuple[str, int]] = {
    "plain": ("plain", 2), "group lasso": ("plain", 2), "power 2": ("power", 2), "power 3": ("power", 3),
    "D-gating 2": ("gates", 2), "D-gating 3": ("gates", 3),
}  # fmt: skip
COLUMNS = (
    "method", "strength", "learning_rate", "seed", "rule", "channels", "first", "second", "hidden", "weights",
    "validation", "test",
)  # fmt: skip
Row = dict[str, str | int | float]
MOMENTUM = 0.9
DECAY = 5e-4  # weight decay of the output layer and of the plain network
WARM_UP = 0.1  # the share of steps in which the learning rate rises, before its cosine decay
CLIP = 1.0  # the largest norm of a gradient: products of factors can have large gradients
AWAKE = 1e-3  # a channel with a score below this share of its layer's largest is asleep


@dataclass(frozen=True)
class ChannelRun:
    """One network to train by a method of `METHODS`; `strength` is the start of a power, or the weight of a penalty."""

    method: str
    strength: float
    learning_rate: float
    seed: int

    def __post_init__(self) -> None:
        one_of(self.method, tuple(METHODS), "method")
        positive(self.strength, "strength", zero=METHODS[self.method][0] != "power")
        positive(self.learning_rate, "learning_rate")


@dataclass(frozen=True)
class Digits:
    """Images as numbers from 0 to 1, of shape (n, 1, 28, 28), and labels, on one device, in three sets."""

    train: tuple[torch.Tensor, torch.Tensor]
    validation: tuple[torch.Tensor, torch.Tensor]
    test: tuple[torch.Tensor, torch.Tensor]

    @classmethod
    def of(cls, data: DigitImages, validation: int, device: torch.device | str = "auto") -> Digits:
        """Split off the last `validation` training images."""
        place = choose_device(device)
        if not 0 < validation < len(data.train_images):
            raise ValueError(f"validation must leave images to train on: {validation} of {len(data.train_images)}.")

        def tensors(images: object, labels: object) -> tuple[torch.Tensor, torch.Tensor]:
            x = torch.tensor(images, device=place).float().div_(255).unsqueeze(1)
            return x, torch.tensor(labels, device=place)

        x, y = tensors(data.train_images, data.train_labels)
        held_out = x[-validation:], y[-validation:]
        return cls((x[:-validation], y[:-validation]), held_out, tensors(data.test_images, data.test_labels))


def train_channels(
    run: ChannelRun, data: Digits, *, widths: Sequence[int] = (32, 64, 128), epochs: int = 10, batch_size: int = 128
) -> ChannelNet:
    """Train one network by SGD with momentum on the cross entropy; a seed fixes the start and the order."""
    kind, depth = METHODS[run.method]
    images, labels = data.train
    power = kind == "power"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        net = ChannelNet(widths, kind, depth, run.strength if power else 1.0).to(images.device)
    inner = [p for layer in net.grouped() for p in layer.parameters()]
    parts = [
        {"params": inner, "weight_decay": DECAY if run.method == "plain" else 0.0},
        {"params": list(net.output.parameters()), "weight_decay": DECAY},
    ]
    optimizer = torch.optim.SGD(parts, lr=run.learning_rate, momentum=MOMENTUM)
    steps = whole(epochs, "epochs") * math.ceil(len(labels) / whole(batch_size, "batch_size"))
    for step, chosen in enumerate(shuffled_batches(len(labels), batch_size, epochs, run.seed, images.device)):
        done = step / steps
        rise, fall = (done + 1e-3) / WARM_UP, 0.5 * (1 + math.cos(math.pi * (done - WARM_UP) / (1 - WARM_UP)))
        rate = run.learning_rate * (rise if done < WARM_UP else fall)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net(images[chosen]), labels[chosen])
        if kind == "gates":
            loss = loss + run.strength * factor_penalty(net)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), CLIP)
        optimizer.step()
        if run.method == "group lasso":
            # momentum multiplies a constant gradient by 1/(1 - momentum), so the penalty's step is scaled likewise
            for layer in net.grouped():
                shrink_groups(layer.weight, rate * run.strength / (1 - MOMENTUM))
    return net.eval()


def ladder(total: int, rungs: int = 24, least: int = 6) -> list[int]:
    """Numbers of channels from all down to a few, evenly spaced on a log scale.

    >>> ladder(100, 4)
    [100, 39, 15, 6]
    """
    ratio = (least / total) ** (1 / (rungs - 1))
    return sorted({round(total * ratio**k) for k in range(rungs)}, reverse=True)


def measure_channels(run: ChannelRun, net: ChannelNet, data: Digits, rungs: int = 24) -> list[Row]:
    """Accuracy as channels are deleted: a row per rung and one for the awake channels; only one if it diverged."""
    scores = channel_scores(net)

    def row(rule: str, small: ChannelNet) -> Row:
        a, b, c = small.widths
        return {
            **asdict(run), "rule": rule, "channels": a + b + c, "first": a, "second": b, "hidden": c,
            "weights": sum(p.numel() for p in small.parameters()),
            "validation": accuracy(small, *data.validation), "test": accuracy(small, *data.test),
        }  # fmt: skip

    if not all(bool(torch.isfinite(score).all()) for score in scores):
        return [row("ladder", take_out(net, [torch.ones(width, dtype=torch.bool) for width in net.widths]))]
    masks = [largest_channels(scores, count) for count in ladder(sum(net.widths), rungs)]
    awake = row("awake", take_out(net, [score >= AWAKE for score in scores]))
    return [awake, *(row("ladder", take_out(net, mask)) for mask in masks)]


def all_runs(
    strengths: Mapping[str, Iterable[float]], learning_rates: Iterable[float], seeds: Iterable[int]
) -> list[ChannelRun]:
    settings = [(method, strength) for method, values in strengths.items() for strength in values]
    return [ChannelRun(*setting, rate, seed) for seed, setting, rate in product(seeds, settings, learning_rates)]
