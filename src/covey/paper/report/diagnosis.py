"""Terminal output of ``covey diagnose``: the conditions of the theorem, and a plot of the coherence."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.markup import escape

from covey.files import write_atomically
from covey.groups import Groups
from covey.paper.plots import CoherenceDisplay
from covey.paper.theory import AssumptionReport, check_assumptions, coherence
from covey.validation import FloatArray

# Correlations vary by chance too: up to this factor, groups are no more alike than shuffled ones.
ALIKE = 1.5


def diagnose_and_print(
    X: pd.DataFrame, y: FloatArray, groups: Groups, weight: FloatArray | None, out: Path | None, as_json: bool
) -> None:
    """Check the conditions for squared loss with these row weights, print them and plot the coherence."""
    console = Console()
    X, y = X - np.average(X, axis=0, weights=weight), y - np.average(y, weights=weight)
    if weight is not None:
        root = np.sqrt(weight / weight.mean())
        X, y = X.mul(root, axis=0), y * root
    report = check_assumptions(X, y, groups)
    picture = None if out is None else out / "coherence.png"
    if picture is not None:
        display = CoherenceDisplay.from_design(X, groups, bounds=report.bounds)
        stream = io.BytesIO()
        display.figure_.savefig(stream, format="png", dpi=150)
        write_atomically(picture, stream.getvalue())
    if as_json:
        frame = report.to_frame()
        print(json.dumps({"guaranteed": report.guaranteed, "conditions": frame.to_dict("records")}, default=str))
        return
    console.print(str(report), highlight=False, markup=False)
    verdict = "applies" if report.guaranteed else "does not apply as it stands"
    console.print(f"The guarantee {verdict}.", style="bold")
    if not report.guaranteed:
        console.print(in_plain_words(report, by_chance(X, groups)), highlight=False, markup=False)
    if picture is not None:
        console.print(f"Picture: {escape(str(picture))}")


def by_chance(X: pd.DataFrame, groups: Groups) -> float:
    """The largest correlation between groups, delta_out, after the rows of every group are shuffled: chance alone."""
    rng, shuffled = np.random.default_rng(0), X.to_numpy(copy=True)
    for name in groups.names:
        columns = groups[name]
        shuffled[:, columns] = shuffled[rng.permutation(len(X))][:, columns]
    return coherence(shuffled, groups).delta_out


def in_plain_words(report: AssumptionReport, chance: float) -> str:
    """What it means for a reader who is no theorist that the conditions are not met."""
    condition, pair = report["delta_out"], report.coherence.worst_pair
    text = (
        "What this means: the theorem promises that the paper's algorithm finds the right groups on any data that meet "
        "these conditions, however unlucky. Hardly any table does, and that is no fault of the table: groups without "
        f"any correlation would have a delta_out of about {chance:.2g} on {report.bounds.n} rows by chance alone, and "
        f"the theorem wants {condition.required:.2g}. It says nothing against a fit: `covey fit` does not rely on it, "
        "and measures on held-out rows how well its model predicts."
    )
    if pair is None:
        return text
    if condition.measured <= ALIKE * chance:
        return f"{text} Here the groups are no more alike than by chance ({condition.measured:.2g})."
    return (
        f"{text} Worth a look is that {pair[0]} and {pair[1]} are more alike ({condition.measured:.2g}) than by "
        "chance: where groups resemble each other, one may be selected in place of the other."
    )
