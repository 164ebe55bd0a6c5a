"""Terminal output of ``covey reproduce``: progress, notices and the table of claims."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from covey.cli import INTERRUPTED
from covey.cli.console import progress_bar
from covey.files import check_writable
from covey.paper.experiments import Verdict, available, find
from covey.paper.experiments.registry import Mode
from covey.paper.experiments.runner import Outcome, reproduce, write_claims
from covey.paper.report.reproduction import write_report

LOOKS = {Verdict.HOLDS: "green", Verdict.CODE_ONLY: "yellow", Verdict.FAILS: "red"}
FAILED = 1


def reproduce_and_print(ids: Sequence[str], mode: Mode, folder: Path, jobs: int) -> int:
    """Run the experiments, write the report and print the claims; returns the exit code."""
    if jobs == 0:
        raise ValueError("--jobs must be a positive number, or -1 for one per core, not 0.")
    wanted = [find(id).id for id in dict.fromkeys(ids)] or available()
    check_writable(folder / "index.html")
    console, start = Console(), time.perf_counter()
    outcomes: list[Outcome] = []
    try:
        stream = reproduce(wanted, mode, folder, jobs)
        for _ in wanted:
            with progress_bar():
                outcome = next(stream)
            outcomes.append(outcome)
            for notice in outcome.notices:
                console.print(f"[yellow]notice:[/] {escape(notice)}", soft_wrap=True)
            took = "kept" if outcome.reused else f"{outcome.seconds:.1f} s"
            if outcome.problem:
                took = "failed" if outcome.failed else "no data"
            line = f"{outcome.experiment.id:<8} {escape(outcome.experiment.title):<48} {took:>8}"
            console.print(line, highlight=False)
        frame = write_claims(outcomes, folder)
        page = write_report(outcomes, mode, folder)
    except KeyboardInterrupt:
        console.print(
            f"\nStopped. {len(outcomes)} of {len(wanted)} are finished and kept in {escape(str(folder))}; "
            "run the same command again to resume.",
            soft_wrap=True,
        )
        return INTERRUPTED
    print_claims(frame, console)
    for outcome in outcomes:
        if outcome.problem:
            console.print(f"[yellow]{outcome.experiment.id} did not run:[/] {escape(outcome.problem)}", soft_wrap=True)
    console.print(f"{time.perf_counter() - start:.0f} s in total. The report is {escape(str(page))}", soft_wrap=True)
    return FAILED if any(outcome.failed for outcome in outcomes) else 0


def print_claims(frame: pd.DataFrame, console: Console) -> None:
    """Print the claims with their verdicts, and the number of each verdict."""
    table = Table(title="The paper's claims", title_justify="left", pad_edge=False)
    table.add_column("id", no_wrap=True)
    table.add_column("claim", ratio=3)
    table.add_column("measured", ratio=4)
    table.add_column("verdict", min_width=13)
    for row in frame.to_dict("records"):
        verdict = f"[{LOOKS[Verdict(row['verdict'])]}]{escape(row['verdict'])}[/]"
        table.add_row(row["id"], escape(row["claim"]), escape(row["measured"]), verdict)
    console.print(table)
    counts = frame["verdict"].value_counts()
    console.print("; ".join(f"{counts.get(str(verdict), 0)} {verdict}" for verdict in Verdict), highlight=False)
