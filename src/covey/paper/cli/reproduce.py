"""``covey reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from covey.cli.console import complaints


def reproduce(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[IDS]...", help="What to run, such as fig2 table3; all by default.")
    ] = None,
    full: Annotated[
        bool,
        typer.Option("--full/--quick", help="The paper's 30 repeats (minutes), or only a few.", show_default="quick"),
    ] = False,
    out: Annotated[Path, typer.Option(help="The folder for tables, figures and the report.")] = Path("reproduction"),
    jobs: Annotated[int, typer.Option(help="How many repeats to run at a time; -1 for one per core.")] = -1,
) -> None:
    """Reproduce the paper's figures and tables, and check its claims.

    Writes ID/data.csv and ID/figure.svg|png for each, claims.csv, claims.md, and
    index.html, which shows everything on one page. Results are kept, so that the
    same command resumes where it stopped.

    \b
    Examples:
      covey reproduce
      covey reproduce fig2 table3 --full --jobs 4 --out elsewhere
    """
    with complaints():
        from covey.paper.report.console import reproduce_and_print

        code = reproduce_and_print(ids or [], "full" if full else "quick", out, jobs)
    raise typer.Exit(code)
