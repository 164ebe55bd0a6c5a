"""Terminal output of ``covey diagnose``: the conditions of the theorem, and a plot of the coherence."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from covey.files import write_atomically
from covey.groups import Groups
from covey.paper.plots import CoherenceDisplay
from covey.paper.theory import AssumptionReport, check_assumptions
from covey.validation import FloatArray

__all__ = ["diagnose_and_print"]


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
    print_report(report, console)
    if picture is not None:
        console.print(f"Picture: {escape(str(picture))}")


def print_report(report: AssumptionReport, console: Console) -> None:
    """Print the verdict, one row per condition, and the consequence of each violation."""
    b = report.bounds
    console.print(
        f"{b.n} rows, {b.p} columns, {b.L} groups; a pilot fit finds {b.s} groups with signal, "
        f"norms {b.u_min**2:.3g} to {b.u_max**2:.3g}.",
        highlight=False,
    )
    table = Table("condition", "measured", "", "required", "", title="Conditions of the convergence theorem")
    for c in report.conditions:
        verdict = "[green]met[/]" if c.passed else "[red]not met[/]"
        table.add_row(c.name, f"{c.measured:.3g}", c.relation, f"{c.required:.3g}", verdict)
    console.print(table)
    for c in report.conditions:
        if not c.passed:
            console.print(f"[bold]{escape(c.name)}[/]: {escape(c.meaning)}", highlight=False)
    console.print(
        "The guarantee applies." if report.guaranteed else "The guarantee does not apply as it stands.", style="bold"
    )
