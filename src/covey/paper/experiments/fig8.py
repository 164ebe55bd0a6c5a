"""The implicit rank-minimising autoencoder: extra linear layers between encoder and decoder.

Drawn from a list of boxes. The weights of the linear layers are counted from the same list: three layers of
512 x 512 make the paper's 786K.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from covey.paper.experiments.base import Claim, Claims, Record, Scale, judge
from covey.paper.experiments.drawing import draw, item, number, numbers, table
from covey.paper.experiments.style import Axes, panels

TITLE = "Implicit rank-minimising autoencoder"


@dataclass(frozen=True)
class Settings(Scale):
    latent: int = 512
    layers: int = 3


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    return table(boxes(settings.latent, settings.layers, groups=1))


def boxes(latent: int, layers: int, groups: int) -> list[Record]:
    """Encoder, convolution, linear layers in parallel groups, decoder."""
    width, step, left = latent // groups, 1.25, 3.0
    gap, height = 0.14, max(0.5, 1.9 / groups - 0.14)
    total, end = groups * height + (groups - 1) * gap, left + step * (layers + 1)
    top, middle = total - 0.55 if total > 1.6 else total - 0.45, total / 2
    square = f"{width} × {width}"
    names = [f"{width}"] + [square] * layers if groups >= 8 else [f"conv to\n{width}"] + [f"linear\n{square}"] * layers
    items = [
        item("box", 0, 0, 0.55, 0.8, top, "image\n$32 \\times 32$", "input"),
        item("box", 0, 1.25, 0, 2.35, total, "encoder\nconvolutions", "layer"),
        item("arrow", 0, 0.8, middle, 1.25, middle),
    ]
    for l in range(groups):
        y = l * (height + gap)
        role, before = f"group{l % 4}" if groups > 1 else "magnitude", 2.35
        for k, name in enumerate(names):
            x = left + step * k
            items.append(item("box", 0, x, y, x + 0.95, y + height, name, role))
            items.append(item("arrow", 0, before, y + height / 2, x, y + height / 2))
            before = x + 0.95
        items.append(item("arrow", 0, before, y + height / 2, end, y + height / 2))
    count = groups * layers * width * width
    note = f"{layers} linear layers without biases: {count:,} weights".replace(",", " ")
    return [
        *items,
        item("box", 0, end, 0, end + 1.1, total, "decoder\nconvolutions", "layer"),
        item("box", 0, end + 1.55, 0.55, end + 2.35, top, "copy\n$32 \\times 32$", "output"),
        item("arrow", 0, end + 1.1, middle, end + 1.55, middle),
        item("note", 0, left + step * (layers + 1) / 2 + 0.6, total + 0.22, text=note),
        number("weights", count),
    ]


def draw_boxes(frame: pd.DataFrame, axes: Axes) -> None:
    """One row of boxes per group between encoder and decoder."""
    draw(axes, frame, 0, fontsize=7)


plot = panels(height=2.1)(draw_boxes)


def claims(frame: pd.DataFrame) -> Claims:
    weights = numbers(frame)["weights"]
    yield Claim(
        "The linear layers of the rank-minimising autoencoder have 786K weights.",
        "786K, cut off to thousands",
        f"{weights:.0f} in the network as drawn, with latent dimension 512 and 3 layers (the paper states neither)",
        judge(int(weights) // 1000 == 786),
    )
