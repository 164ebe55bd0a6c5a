"""``covey diagnose`` on a terminal: the theorems' conditions, one by one, and a picture of the coherence."""

from __future__ import annotations

import io
import json
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from covey.files import check_writable, write_atomically
from covey.plots import CoherenceDisplay
from covey.tables import read_grouped
from covey.theory import AssumptionReport, check_assumptions

__all__ = ["diagnose_and_print"]

BAD_INPUT = 2


def diagnose_and_print(data: Path, target: str, groups: str | None, out: Path | None, as_json: bool) -> int:
    """Check, print and draw; returns the exit code of the command."""
    console, complaints = Console(), Console(stderr=True, soft_wrap=True, highlight=False)
    try:
        if out is not None:
            check_writable(out / "coherence.png")
        table = read_grouped(data, target, groups)
        X = table.X - table.X.mean()
        report = check_assumptions(X, table.y - table.y.mean(), table.groups)
        picture = None if out is None else out / "coherence.png"
        if picture is not None:
            display = CoherenceDisplay.from_design(X, table.groups, bounds=report.bounds)
            stream = io.BytesIO()
            display.figure_.savefig(stream, format="png", dpi=150)
            write_atomically(picture, stream.getvalue())
    except (ValueError, OSError) as reason:
        complaints.print(f"[red]error:[/] {escape(str(reason))}")
        return BAD_INPUT
    if as_json:
        frame = report.to_frame()
        print(json.dumps({"guaranteed": report.guaranteed, "conditions": frame.to_dict("records")}, default=str))
        return 0
    print_report(report, console)
    if picture is not None:
        console.print(f"Picture: {escape(str(picture))}")
    return 0


def print_report(report: AssumptionReport, console: Console) -> None:
    """The verdict, one row per condition, and what each failure means."""
    b = report.bounds
    console.print(
        f"{b.n} rows, {b.p} columns, {b.L} groups; a pilot fit finds {b.s} groups with signal, "
        f"norms {b.u_min**2:.3g} to {b.u_max**2:.3g}.",
        highlight=False,
    )
    table = Table("condition", "measured", "", "required", "", title="What the convergence theorem asks for")
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
