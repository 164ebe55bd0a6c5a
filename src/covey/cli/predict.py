"""``covey predict``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from covey.cli.console import complaints, stages, write
from covey.cli.options import Data, Json

__all__ = ["predict"]


def predict(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A folder of `covey fit`, or a .skops file.", show_default=False),
    ],
    data: Data,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="A .csv, .tsv, .parquet or .feather; standard output if not given."
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep", metavar="COL", help="Copy a column beside the predictions, such as an identifier. Repeat it."
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", metavar="COL", help="The true values: also print R^2 and the error.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Predict every row of a table with a fitted model.

    The table is the raw one: columns are found by name, expanded and filled as
    at the fit; others are ignored. A model file is data, not a program: nothing
    in it is run.

    \b
    Examples:
      covey predict fit new.csv > predictions.csv
      covey predict fit new.parquet --keep id --out predictions.parquet
      covey predict fit/model.skops test.csv --target y --json
    """
    with complaints():
        from covey.persistence import import_skops

        import_skops()  # the model's file needs it, and it is quickest to import first
        from covey.workflow import predict_table

        with stages(["loading", "reading", "predicting"], quiet=as_json) as told:
            made = predict_table(model, data, target=target, keep=keep or (), told=told)
        if out is not None:
            write(made.table, out)
        if as_json:
            shown = {"r2": made.r2, "rmse": made.rmse} if target is not None else {}
            content: Any = (
                {"out": str(out)}
                if out is not None
                else made.table.astype(object).where(made.table.notna(), None).to_dict("list")
            )
            typer.echo(json.dumps({"rows": len(made.table), **shown, **content}, ensure_ascii=False, default=str))
            return
        if out is None:
            made.table.to_csv(sys.stdout, index=False)
        else:
            typer.echo(f"{len(made.table)} predictions: {out}", err=True)
        if target is not None:
            typer.echo(f"R^2 {made.r2:.4f}, root mean squared error {made.rmse:.4g}", err=True)
