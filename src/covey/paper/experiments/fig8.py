"""The implicit rank-minimising autoencoder: extra linear layers between encoder and decoder.

Drawn from a list of boxes. The weights of the linear layers are counted from the same list: three layers of
512 x 512 make the paper's 786K.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from covey.paper.experiments.claim import Claim, judge
from covey.paper.experiments.drawing import draw, item, number, numbers, table
from covey.paper.experiments.settings import Scale
from covey.paper.experiments.style import Figure, grid, styled

TITLE = "Implicit rank-minimising autoencoder"


@dataclass(frozen=True)
class Settings(Scale):
    """Latent dimension and number of linear layers."""

    latent: int = 512
    layers: int = 3
    groups: int = 1


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """Boxes and arrows, from the image to its copy."""
    return table(boxes(settings))


def boxes(settings: Settings) -> list[dict[str, object]]:
    """Encoder, convolution, linear layers in parallel groups, decoder."""
    g, layers = settings.groups, settings.layers
    width = settings.latent // g
    gap, height = 0.14, max(0.5, 1.9 / g - 0.14)
    total = g * height + (g - 1) * gap
    items = [
        item("box", 0, 0, 0.55, 0.8, total - 0.55 if total > 1.6 else total - 0.45, "image\n$32 \\times 32$", "input")
    ]
    items.append(item("box", 0, 1.25, 0, 2.35, total, "encoder\nconvolutions", "layer"))
    items.append(item("arrow", 0, 0.8, total / 2, 1.25, total / 2))
    count = 0
    left = 3.0
    for l in range(g):
        y = l * (height + gap)
        role = f"group{l % 4}" if g > 1 else "magnitude"
        before = 2.35
        for k in range(layers + 1):
            x = left + 1.25 * k
            text = (
                f"conv to\n{width}"
                if k == 0
                else f"linear\n{width} × {width}"
                if height >= 0.5 and g < 8
                else f"{width} × {width}"
            )
            if k == 0 and g >= 8:
                text = f"{width}"
            items.append(item("box", 0, x, y, x + 0.95, y + height, text, role))
            items.append(item("arrow", 0, before, y + height / 2, x, y + height / 2))
            before = x + 0.95
            count += width * width if k > 0 else 0
        items.append(item("arrow", 0, before, y + height / 2, left + 1.25 * (layers + 1), y + height / 2))
    end = left + 1.25 * (layers + 1)
    items.append(item("box", 0, end, 0, end + 1.1, total, "decoder\nconvolutions", "layer"))
    items.append(
        item(
            "box",
            0,
            end + 1.55,
            0.55,
            end + 2.35,
            total - 0.55 if total > 1.6 else total - 0.45,
            "copy\n$32 \\times 32$",
            "output",
        )
    )
    items.append(item("arrow", 0, end + 1.1, total / 2, end + 1.55, total / 2))
    items.append(item("note", 0, left + 1.25 * (layers + 1) / 2 + 0.6, total + 0.22,
                      text=f"{layers} linear layers without biases: {count:,} weights".replace(",", " ")))  # fmt: skip
    items.append(number("weights", count))
    return items


@styled
def plot(frame: pd.DataFrame) -> Figure:
    """One row of boxes."""
    figure, ((axes,),) = grid(1, 1, height=2.1)
    draw(axes, frame, 0, fontsize=7)
    return figure


def claims(frame: pd.DataFrame) -> list[Claim]:
    """The number of weights in the linear layers."""
    weights = numbers(frame)["weights"]
    return [
        Claim(
            "The linear layers of the rank-minimising autoencoder have 786K weights.",
            "786K, cut off to thousands",
            f"{weights:.0f} in the network as drawn, with latent dimension 512 and 3 layers (the paper states neither)",
            judge(int(weights) // 1000 == 786),
        )
    ]
