"""``covey diagnose``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from covey.cli.console import check_there, complaints, notice, stages
from covey.cli.options import (
    Data,
    Date,
    Decimal,
    Drop,
    DropMissing,
    GroupsOption,
    Impute,
    Json,
    OneHot,
    Sep,
    Spline,
    Weights,
    table_settings,
)

__all__ = ["diagnose"]


def diagnose(
    context: typer.Context,
    data: Data,
    target: Annotated[
        str, typer.Option("--target", "-t", metavar="COL", help="The column to predict.", show_default=False)
    ],
    groups: GroupsOption = None,
    spline: Spline = None,
    onehot: OneHot = None,
    drop: Drop = None,
    date: Date = None,
    impute: Impute = None,
    drop_missing: DropMissing = False,
    sep: Sep = None,
    decimal: Decimal = ".",
    weights: Weights = None,
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
      covey diagnose patients.csv --target y --spline '*:5' --onehot sex --drop id
    """
    with complaints():
        check_there(*data)
        from covey.files import check_writable
        from covey.paper.report.diagnosis import diagnose_and_print
        from covey.workflow import pose

        if out is not None:
            check_writable(out / "coherence.png")
        with stages(["reading", "expanding"], quiet=as_json) as told:
            problem = pose(table_settings(context), told, squared="covey diagnose")
        diagnose_and_print(problem.X, problem.y, problem.groups, problem.weight, out, as_json)
        for message in problem.notices:
            notice(message)
