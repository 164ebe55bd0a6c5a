"""``covey demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from covey.cli.console import complaints, stages

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder to write.")] = Path("covey-demo"),
) -> None:
    """Show everything on data that come along: which variables drive the progression of diabetes.

    Writes the table, fits it with a spline for each variable, prints those that
    matter, and says with which command to do the same by hand. It needs no
    network, and takes a few seconds.

    \b
    Examples:
      covey demo
      covey demo --out somewhere
    """
    with complaints():
        from covey.cli.fit import print_fit
        from covey.demo import COMMAND, run
        from covey.workflow.nested import N_FOLDS, fold_stage

        with stages(["reading", "expanding", "fitting", *map(fold_stage, range(1, N_FOLDS + 1)), "writing"]) as told:
            result = run(out, told)
        print_fit(result, out / "fit")
        typer.echo(f"The table: {out / 'diabetes.csv'}. The same by hand:\n  {COMMAND.format(out=out)}")
