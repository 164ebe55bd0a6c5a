"""The grouped autoencoder: the linear layers of figure 8 split into groups of channels.

With g groups each layer has g blocks of (512/g) x (512/g), so the number of weights falls by a factor of g.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from covey.paper.experiments import fig8
from covey.paper.experiments.base import Claim, Claims, judge
from covey.paper.experiments.drawing import number, numbers, table
from covey.paper.experiments.style import panels

TITLE = "Grouped autoencoder"
plot = panels(height=2.5)(fig8.draw_boxes)


@dataclass(frozen=True)
class Settings(fig8.Settings):
    groups: int = 4
    more_groups: int = 8


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """Boxes and arrows, and the weights with more groups."""
    items, more = (fig8.boxes(settings.latent, settings.layers, g) for g in (settings.groups, settings.more_groups))
    return table([*items, number("weights, more groups", numbers(table(more))["weights"])])


def claims(frame: pd.DataFrame) -> Claims:
    measured = numbers(frame)
    four, eight = measured["weights"], measured["weights, more groups"]
    yield Claim(
        "Grouping saves weights: 196K with four groups, 98K with eight.",
        "196K and 98K, cut off to thousands",
        f"{four:.0f} and {eight:.0f} in the network as drawn",
        judge(int(four) // 1000 == 196 and int(eight) // 1000 == 98),
    )
