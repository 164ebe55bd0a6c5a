"""Convergence of Algorithm 2, and incremental learning: the strongest group is learned first.

Like figure 2, with entries 5 to 13 on the support. The text switches to the small direction step once magnitudes have
settled (tolerance 0.01). The authors' code starts its rule from a previous magnitude of 1 and therefore switches after
one step and never uses the large direction step, which does no harm here. The published figure is the code's.
"""

from __future__ import annotations

from itertools import pairwise

import pandas as pd

from covey.datasets import GroupSparseData, legacy_paper_data
from covey.paper.experiments.base import Claim, Claims, judge
from covey.paper.experiments.convergence import Algorithm2Settings, convergence_claims, draw_convergence, wake_times
from covey.paper.experiments.tasks import each
from covey.paper.experiments.traces import CODE, MODES, TEXT, stack, true_value, truth

TITLE = "Convergence of Algorithm 2"
Settings = Algorithm2Settings
plot = draw_convergence


def published() -> GroupSparseData:
    """The published draw."""
    return legacy_paper_data(support=range(5, 14))


def run(settings: Algorithm2Settings, jobs: int = 1) -> pd.DataFrame:
    """Traces of the text and of the code."""
    data = published()
    return stack(*each(lambda mode: settings.trace(data, mode), MODES), truth(data))


def claims(frame: pd.DataFrame) -> Claims:
    """Convergence, and the order in which groups are learned."""
    yield from convergence_claims(frame)
    times = {}
    for mode in MODES:
        woke = wake_times(frame, mode)
        times[mode] = [woke[l] for l in sorted(woke, key=lambda l: -true_value(frame, "magnitude", l))]
    order = {mode: all(a < b for a, b in pairwise(found)) for mode, found in times.items()}
    listed = {mode: ", ".join(f"{t:.0f}" for t in found) for mode, found in times.items()}
    yield Claim(
        "Learning is incremental: stronger groups are learned before weaker ones.",
        "half of the true norm is reached in order of strength",
        f"strongest to weakest at steps {listed[TEXT]} (text), {listed[CODE]} (code)",
        judge(order[TEXT], order[CODE]),
    )
