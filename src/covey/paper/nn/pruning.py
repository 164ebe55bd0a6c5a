"""A small convolutional network from which channels can be deleted, and the order of deletion.

The network has two convolutions, a hidden layer and an output layer. Every output channel of a convolution and every
hidden unit is a group; without biases, a group of zero weights contributes nothing to the next layer and is removable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from covey.paper.nn.factored import DGatedConv2d, DGatedLinear, GroupedPowerConv2d, GroupedPowerLinear
from covey.validation import one_of, whole

KERNEL = 5
MAP = 16  # 28 x 28 after two convolutions of kernel 5 and two poolings is 4 x 4
CLASSES = 10
LAYERS: dict[str, Any] = {
    "plain": (nn.Conv2d, nn.Linear, ""), "power": (GroupedPowerConv2d, GroupedPowerLinear, "depth"),
    "gates": (DGatedConv2d, DGatedLinear, "factors"),
}  # fmt: skip


class ChannelNet(nn.Module):
    """Two convolutions of kernel 5 with pooling, a hidden layer, ten outputs; images of 28 x 28.

    `kind` is "plain", "power" (with N = `depth`) or "gates" (with D = `depth` factors); the output layer is plain.
    `init_scale` is the start of the grouped layers, relative to torch's.
    """

    def __init__(
        self, widths: Sequence[int] = (16, 32, 64), kind: str = "plain", depth: int = 2, init_scale: float = 1.0
    ) -> None:
        super().__init__()
        self.widths = tuple(whole(width, "a width") for width in widths)
        if len(self.widths) != 3:
            raise ValueError(f"widths must be three numbers (two convolutions, one hidden layer), not {widths!r}.")
        a, b, c = self.widths
        conv, linear, factors = LAYERS[one_of(kind, tuple(LAYERS), "kind")]
        options = {factors: depth, "init_scale": init_scale} if factors else {}
        self.first: nn.Module = conv(1, a, KERNEL, bias=False, **options)
        self.second: nn.Module = conv(a, b, KERNEL, bias=False, **options)
        self.hidden: nn.Module = linear(MAP * b, c, bias=False, **options)
        self.output = nn.Linear(c, CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        h = F.max_pool2d(F.relu(self.first(images)), 2)
        h = F.max_pool2d(F.relu(self.second(h)), 2)
        return self.output(F.relu(self.hidden(h.flatten(1))))

    def grouped(self) -> list[nn.Module]:
        """The three layers whose channels are groups."""
        return [self.first, self.second, self.hidden]

    def weights(self) -> list[torch.Tensor]:
        return [layer.weight.detach() for layer in (*self.grouped(), self.output)]


def shrink_groups(weight: torch.Tensor, amount: float) -> None:
    """The proximal step of the group lasso on the rows, in place: ``w_l <- w_l max(0, 1 - amount/norm(w_l))``."""
    with torch.no_grad():
        norms = weight.flatten(1).norm(dim=1)
        scale = (1 - amount / norms.clamp_min(torch.finfo(weight.dtype).tiny)).clamp_min(0)
        weight.mul_(scale.reshape(-1, *[1] * (weight.ndim - 1)))


@torch.no_grad()
def channel_scores(net: ChannelNet) -> list[torch.Tensor]:
    """The contribution of each channel of the three layers, relative to the largest of its layer.

    The root of the sum, over all paths through the channel from the image to the outputs, of the squared products of
    their weights. With ReLU, scaling a channel up and the weights that read it down has no effect; sums over paths are
    invariant to it.
    """
    # the scale of a layer is arbitrary: its largest weight is set to 1, so that no product underflows
    tiny = torch.finfo(net.output.weight.dtype).tiny
    first, second, hidden, output = ((w / w.abs().max().clamp_min(tiny)).square() for w in net.weights())
    second, hidden = second.sum((2, 3)), hidden.reshape(len(hidden), -1, MAP).sum(2)
    a = first.sum((1, 2, 3))
    b = second @ a
    z = output.sum(0)
    y = z @ hidden
    scores = [(a * (y @ second)).sqrt(), (b * y).sqrt(), (hidden @ b * z).sqrt()]
    return [score / score.max().clamp_min(tiny) for score in scores]


@torch.no_grad()
def take_out(net: ChannelNet, kept: Sequence[torch.Tensor]) -> ChannelNet:
    """The plain network with only the kept channels; one mask per layer, each with at least one channel."""
    if len(kept) != 3 or any(len(mask) != width for mask, width in zip(kept, net.widths, strict=True)):
        raise ValueError(f"kept must be three masks of lengths {net.widths}.")
    if not all(bool(mask.any()) for mask in kept):
        raise ValueError("Every layer must keep at least one channel: otherwise the network computes nothing.")
    a, b, c = kept
    first, second, hidden, output = net.weights()
    small = ChannelNet([int(mask.sum()) for mask in kept]).to(first.device, first.dtype)
    readers = hidden.reshape(len(hidden), -1, MAP)[c][:, b].flatten(1)
    weights = first[a], second[b][:, a], readers, output[:, c]
    for layer, weight in zip((*small.grouped(), small.output), weights, strict=True):
        layer.weight.copy_(weight)
    small.output.bias.copy_(net.output.bias)
    return small.eval()


@torch.no_grad()
def accuracy(net: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    """The share of correctly classified images."""
    right = [(net(part).argmax(1) == y).sum() for part, y in zip(images.split(2000), labels.split(2000), strict=True)]
    return float(torch.stack(right).sum()) / len(labels)


def largest_channels(scores: Sequence[torch.Tensor], count: int) -> list[torch.Tensor]:
    """Masks of the `count` channels with the largest scores over all layers, including the best of every layer."""
    total = sum(len(score) for score in scores)
    if not 1 <= whole(count, "count") <= total:
        raise ValueError(f"count must lie between 1 and the {total} channels, not {count}.")
    order = torch.cat(list(scores)).argsort(descending=True, stable=True)
    chosen = torch.zeros(total, dtype=torch.bool, device=order.device)
    chosen[order[:count]] = True
    masks = list(chosen.split([len(score) for score in scores]))
    for mask, score in zip(masks, scores, strict=True):
        mask[score.argmax()] = True
    return masks
