"""``covey demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from covey.cli.console import complaints, stages


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder to write.")] = Path("covey-demo"),
) -> None:
    """Show what covey does, on bundled data: what is LDL cholesterol computed from?

    The table has nine other variables of 442 people. LDL was computed from three
    of them, one of them curved, but covey does not know which. Writes the table,
    fits it as it is, prints what matters and how well the model predicts next to
    a lasso and a ridge, and shows the command that does the same. It works
    offline and takes a few seconds.

    \b
    Examples:
      covey demo
      covey demo --out somewhere
    """
    with complaints():
        from covey.cli.fit import print_fit
        from covey.demo import COMMAND, TRUTH, run
        from covey.workflow.scores import FOLD_STAGES

        with stages(["reading", "fitting", *FOLD_STAGES, "writing"]) as show:
            result = run(out, show)
        print_fit(result, out / "fit")
        typer.echo(f"{TRUTH}\nThe table: {out / 'blood.csv'}. To do the same by hand:\n  {COMMAND.format(out=out)}")
