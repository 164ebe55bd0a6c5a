"""Algorithm 2 (and Algorithm 1) with Gaussian measurements.

Like figure 3 with standard normal entries in X, seed 42; and Algorithm 1 on the data of figure 2 with a Gaussian
design, noise 0.1, seed 6. The published figure shows Algorithm 2 as in the code.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from covey.datasets import GroupSparseData, legacy_paper_data
from covey.paper.dynamics import normalized_descent
from covey.paper.experiments.claim import Claim, judge
from covey.paper.experiments.convergence import algorithm_2, convergence_claims, draw_convergence
from covey.paper.experiments.parallel import each
from covey.paper.experiments.settings import Scale
from covey.paper.experiments.style import Figure, styled
from covey.paper.experiments.traces import CODE, TEXT, best, last, rows, trace, truth

TITLE = "Gaussian measurements"
ALGORITHM_1 = "algorithm 1"


@dataclass(frozen=True)
class Settings(Scale):
    """The published run; Algorithm 1 for twice as long."""

    step_size: float = 1e-3
    direction_step: float = 1e-3
    tol: float = 0.01
    text_steps: int = 2000
    code_steps: int = 1000
    algorithm_1_steps: int = 4000
    seed: int = 42

    def data(self) -> GroupSparseData:
        """The published draw."""
        return legacy_paper_data(support=range(5, 14), seed=self.seed, design="gaussian")


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """Traces of the text and of the code, and Algorithm 1's error."""
    data = settings.data()

    def one(mode: str) -> pd.DataFrame:
        if mode == ALGORITHM_1:
            other = legacy_paper_data(sigma=0.1, design="gaussian")
            path = normalized_descent(
                other.X,
                other.y,
                other.groups,
                step_size=settings.step_size,
                n_steps=settings.algorithm_1_steps,
                w_star=other.w_star,
            )
            return rows(ALGORITHM_1, "error", 0, path.t, path.error)
        path = algorithm_2(
            data,
            mode,
            step_size=settings.step_size,
            direction_step=settings.direction_step,
            tol=settings.tol,
            n_steps=settings.code_steps if mode == CODE else settings.text_steps,
        )
        return trace(path, data, mode, points=150)

    return pd.concat([*each(one, (TEXT, CODE, ALGORITHM_1), 1), truth(data)], ignore_index=True)


@styled
def plot(frame: pd.DataFrame) -> Figure:
    """Entries, magnitudes, directions."""
    return draw_convergence(frame, group_size=3)


def claims(frame: pd.DataFrame) -> list[Claim]:
    """Convergence with Gaussian rows, by both algorithms."""
    least, at = best(frame, ALGORITHM_1)
    end = last(frame, ALGORITHM_1)
    return [
        *convergence_claims(frame, " with Gaussian measurements"),
        Claim(
            "Algorithm 1 works with Gaussian measurements as well (entries 10, noise 0.1).",
            "least error below 0.1% of norm(w*)^2 = 900, and no worse than twice that at the end",
            f"{least:.5f} at step {at}, last {end:.5f}",
            judge(least < 0.9 and end <= 2 * least),
        ),
    ]
