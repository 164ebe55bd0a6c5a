"""Algorithm 2 (and Algorithm 1) with Gaussian measurements.

Like figure 3 with standard normal entries in X, seed 42; and Algorithm 1 on the data of figure 2 with a Gaussian
design, noise 0.1, seed 6. The published figure shows Algorithm 2 as in the code.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from covey.paper.datasets import legacy_paper_data
from covey.paper.experiments import fig3
from covey.paper.experiments.base import Claim, Claims, judge
from covey.paper.experiments.curves import best, last
from covey.paper.experiments.tasks import each
from covey.paper.experiments.traces import MODES, descend, stack, trace, truth

TITLE = "Gaussian measurements"
ALGORITHM_1 = "algorithm 1"
plot = fig3.plot


@dataclass(frozen=True)
class Settings(fig3.Settings):
    """The published run; Algorithm 1 for twice as long."""

    algorithm_1_steps: int = 4000


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """Traces of the text and of the code, and Algorithm 1's error."""
    data = legacy_paper_data(support=range(5, 14), seed=42, design="gaussian")

    def one(mode: str) -> pd.DataFrame:
        if mode != ALGORITHM_1:
            return settings.trace(data, mode)
        other = legacy_paper_data(sigma=0.1, design="gaussian")
        path = descend(other, step_size=settings.step_size, n_steps=settings.algorithm_1_steps)
        return trace(path, other, ALGORITHM_1, ())

    return stack(*each(one, (*MODES, ALGORITHM_1)), truth(data))


def claims(frame: pd.DataFrame) -> Claims:
    yield from fig3.convergence_claims(frame, " with Gaussian measurements")
    (least, at), end = best(frame, ALGORITHM_1), last(frame, ALGORITHM_1)
    yield Claim(
        "Algorithm 1 works with Gaussian measurements as well (entries 10, noise 0.1).",
        "least error below 0.1% of norm(w*)^2 = 900, and no worse than twice that at the end",
        f"{least:.5f} at step {at}, last {end:.5f}",
        judge(least < 0.9 and end <= 2 * least),
    )
