"""Convergence of Algorithm 2, and incremental learning: the strongest group is learned first.

Like figure 2, with entries 5 to 13 on the support. The text switches to the small direction step once magnitudes have
settled (tolerance 0.01). The authors' code starts its rule from a previous magnitude of 1 and therefore switches after
one step and never uses the large direction step, which does no harm here. The published figure is the code's.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pandas as pd

from covey.datasets import GroupSparseData, legacy_paper_data
from covey.paper.experiments.claim import Claim, judge
from covey.paper.experiments.convergence import algorithm_2, convergence_claims, draw_convergence, wake_times
from covey.paper.experiments.parallel import each
from covey.paper.experiments.settings import Scale
from covey.paper.experiments.style import Figure, styled
from covey.paper.experiments.traces import CODE, TEXT, TRUTH, series, trace, truth

TITLE = "Convergence of Algorithm 2"


@dataclass(frozen=True)
class Settings(Scale):
    """The published run, with a meaningful tolerance (0.1 is met before anything has moved)."""

    step_size: float = 1e-3
    direction_step: float = 1e-3
    tol: float = 0.01
    text_steps: int = 2000
    code_steps: int = 1000
    seed: int = 6

    def data(self) -> GroupSparseData:
        """The published draw."""
        return legacy_paper_data(support=range(5, 14), seed=self.seed)


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """Traces of the text and of the code."""
    data = settings.data()

    def one(mode: str) -> pd.DataFrame:
        path = algorithm_2(
            data,
            mode,
            step_size=settings.step_size,
            direction_step=settings.direction_step,
            tol=settings.tol,
            n_steps=settings.code_steps if mode == CODE else settings.text_steps,
        )
        return trace(path, data, mode, points=150)

    return pd.concat([*each(one, (TEXT, CODE), 1), truth(data)], ignore_index=True)


@styled
def plot(frame: pd.DataFrame) -> Figure:
    """Entries, magnitudes, directions."""
    return draw_convergence(frame, group_size=3)


def claims(frame: pd.DataFrame) -> list[Claim]:
    """Convergence, and the order in which groups are learned."""
    order, detail = {}, {}
    for mode in (TEXT, CODE):
        woke = wake_times(frame, mode)
        strongest_first = sorted(woke, key=lambda l: -series(frame, TRUTH, "magnitude", l)[1][0])
        times = [woke[l] for l in strongest_first]
        order[mode] = all(a < b for a, b in pairwise(times))
        detail[mode] = ", ".join(f"{t:.0f}" for t in times)
    return [
        *convergence_claims(frame),
        Claim(
            "Learning is incremental: stronger groups are learned before weaker ones.",
            "half of the true norm is reached in order of strength",
            f"strongest to weakest at steps {detail[TEXT]} (text), {detail[CODE]} (code)",
            judge(order[TEXT], order[CODE]),
        ),
    ]
