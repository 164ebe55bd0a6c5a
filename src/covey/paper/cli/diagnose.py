"""``covey diagnose``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from covey.cli.console import check_there, complaints, notice, progress_bar
from covey.cli.options import Json, takes
from covey.settings import SURVIVAL, TableSettings

WITHOUT = [one.name for one in TableSettings.table().values() if one.panel == SURVIVAL]


@takes(TableSettings, "family", "quantile", "power", "order", "offset", *WITHOUT)
def diagnose(
    settings: TableSettings,
    target: Annotated[
        str, typer.Option("--target", "-t", metavar="COL", help="The column to predict.", show_default=False)
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="A folder for the plot of the coherence.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check whether a table meets the conditions of the convergence theorem, and what it means if it does not.

    The theorem is about squared loss, so the target must be numeric: no classes,
    counts or survival times.

    \b
    Examples:
      covey diagnose bardet.csv --target TRIM32 --groups _ --out diagnosis
      covey diagnose patients.csv --target y
    """
    with complaints():
        check_there(*settings.data)
        from covey.files import check_writable
        from covey.paper.report.diagnosis import diagnose_and_print
        from covey.workflow.problem import pose

        if out is not None:
            check_writable(out / "coherence.png")
        with progress_bar(quiet=as_json):
            problem = pose(replace(settings, target=(target,)), squared="covey diagnose")
        diagnose_and_print(problem.columns, problem.y, problem.groups, problem.weight, out, as_json)
        for message in problem.notices:
            notice(message)
