"""Parameters of the linear layers in latent space, counted from the modules.

The paper gives 786K, 196K and 98K without the corresponding sizes. Latent dimension 512 and three bias-free layers give
exactly these numbers: ``3 x 512^2``, ``3 x 4 x 128^2`` and ``3 x 8 x 64^2``. The last convolution, which is grouped
too, and the entire network are also counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from covey.paper.experiments.autoencoders import needs_torch
from covey.paper.experiments.base import Claim, Claims, Scale, judge
from covey.paper.experiments.style import COLOURS, Axes, panel, panels

TITLE = "Parameters in the latent space"
PUBLISHED = {"IRMAE": "786K", "GAE4": "196K", "GAE8": "98K"}


@dataclass(frozen=True)
class Settings(Scale):
    latent: int = 512
    layers: int = 3


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    needs_torch()
    from covey.paper.nn.models import build

    counts = []
    for title in PUBLISHED:
        model = build(title, latent=settings.latent, layers=settings.layers)
        last, every = (sum(p.numel() for p in part.parameters()) for part in (model.encoder.last, model))
        counts.append((title, model.latent_parameter_count(), last, every))
    return pd.DataFrame(counts, columns=["model", "latent", "last_convolution", "all"])


@panels(height=1.9, width=5.0)
def plot(frame: pd.DataFrame, axes: Axes) -> None:
    for i, (title, count) in enumerate(zip(frame["model"], frame["latent"], strict=True)):
        axes.barh(-i, count, color=COLOURS[0], height=0.6)
        axes.text(count, -i, f"  {count:,} (published {PUBLISHED[title]})".replace(",", " "), va="center")
    axes.set_yticks([-i for i in range(len(frame))], list(frame["model"]))
    axes.grid(axis="y", visible=False)
    end = 1.6 * float(frame["latent"].max())
    panel(axes, "a", "linear layers in latent space", xlim=(0, end), xlabel="parameters")


def claims(frame: pd.DataFrame) -> Claims:
    counts = {title: int(count) for title, count in zip(frame["model"], frame["latent"], strict=True)}
    yield Claim(
        "The linear layers in latent space have 786K (IRMAE), 196K (GAE4) and 98K (GAE8) parameters.",
        "the counts of the built modules, cut off at thousands, are these",
        ", ".join(f"{title} {count}" for title, count in counts.items())
        + " (latent dimension 512, three layers without bias)",
        judge(all(f"{counts[title] // 1000}K" == wanted for title, wanted in PUBLISHED.items())),
    )
