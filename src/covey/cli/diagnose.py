"""``covey diagnose``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from covey.cli.options import Json

__all__ = ["diagnose"]


def diagnose(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A table: .csv, .tsv, .parquet or .feather.")],
    target: Annotated[str, typer.Option("--target", "-t", help="The column to predict.", show_default=False)],
    groups: Annotated[
        str | None,
        typer.Option(
            "--groups", "-g", help="A file of (column, group), a size, a separator such as _, or regex:PATTERN."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A folder for a picture of the coherence.")] = None,
    as_json: Json = False,
) -> None:
    """Check whether a table meets the conditions of the convergence theorem, and what it means if it does not.

    The theorem is on squared loss: the target is numbers, and not classes, counts
    or survival times.

    \b
    Examples:
      covey diagnose bardet.csv --target TRIM32 --groups _ --out diagnosis
    """
    from covey.report.diagnosis import diagnose_and_print

    raise typer.Exit(diagnose_and_print(data, target, groups, out, as_json))
