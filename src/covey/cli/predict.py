"""``covey predict``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from covey.cli.console import check_out, check_there, complaints, notice, plain, stages, write
from covey.cli.options import Data, Decimal, Json, Sep

__all__ = ["predict"]


def predict(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A folder written by `covey fit`, or a .skops file.", show_default=False),
    ],
    data: Data,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="A .csv, .tsv, .parquet or .feather file; standard output by default."
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="COL",
            help="Copy a column next to the predictions, such as an identifier. Repeat it, or give a list.",
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            "-t",
            metavar="COL",
            help="The column with the true values, to score the predictions. Repeat it for several responses; for "
            "survival times give the time and then the event.",
        ),
    ] = None,
    at: Annotated[
        list[str] | None,
        typer.Option(
            "--at",
            metavar="TIMES",
            help="Times at which to predict survival, such as 1,2,5; by default the quartiles of the times in the fit.",
        ),
    ] = None,
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave out rows that lack a value the model needs.")
    ] = False,
    handle_unknown: Annotated[
        Literal["error", "ignore"] | None,
        typer.Option(
            "--handle-unknown",
            help="How to treat a category that was not in the fit: refuse it, or treat it as none of the known ones. "
            "By default as set at the fit.",
            show_default=False,
        ),
    ] = None,
    sep: Sep = None,
    decimal: Decimal = ".",
    as_json: Json = False,
) -> None:
    """Predict every row of a table with a fitted model.

    Give the raw table: columns are found by name, then expanded and imputed as in
    the fit. Only the columns of selected groups are needed; others are ignored.
    The column `prediction` is the mean. For classes it is the class, followed by
    columns probability_CLASS; several responses get one column
    prediction_RESPONSE each. For survival times it is the log risk, followed by
    columns survival_TIME, the probability of no event by then. A model with an
    offset needs the offset column here too. A model file is data: nothing in it
    is executed.

    \b
    Examples:
      covey predict fit new.csv > predictions.csv
      covey predict fit new.parquet --keep id --out predictions.parquet
      covey predict fit/model.skops test.csv --target y --json
      covey predict fit new.csv --at 1,2,5 --keep patient
      covey predict fit test.csv --target months --target dead
    """
    with complaints():
        check_there(model, what="model file")
        check_there(*data)
        check_out(out)
        from covey.persistence import import_skops

        import_skops()  # needed to read the model; importing it first is fastest
        from covey.workflow import predict_table

        with stages(["loading", "reading", "predicting"], quiet=as_json) as told:
            made = predict_table(
                model, data, target=target or (), keep=keep or (), at=at or (), drop_missing=drop_missing,
                handle_unknown=handle_unknown, sep=sep, decimal=decimal, told=told,
            )  # fmt: skip
        for message in made.notices:
            notice(message)
        if out is not None:
            write(made.table, out)
        if as_json:
            content: Any = (
                {"out": str(out)}
                if out is not None
                else made.table.astype(object).where(made.table.notna(), None).to_dict("list")
            )
            typer.echo(json.dumps({"rows": len(made.table), **made.scores, **content}, ensure_ascii=False, default=str))
            return
        if out is None:
            from covey.tables.spreadsheet import guarded

            guarded(made.table).to_csv(sys.stdout, index=False)
        else:
            typer.echo(f"{len(made.table)} predictions: {out}", err=True)
        if made.scores:
            typer.echo(_told(made.scores), err=True)


def _told(scores: dict[str, float]) -> str:
    """The scores of the predictions, in one line."""
    words = {"r2": "R^2", "rmse": "root mean squared error", "log_loss": "log loss", "accuracy": "accuracy"}
    words |= {"deviance_explained": "share of the deviance explained", "deviance": "mean deviance"}
    shown = []
    for name, value in scores.items():
        kind = next((kind for kind in words if name == kind or name.startswith(f"{kind}_")), name)
        of = plain(name.removeprefix(kind).removeprefix("_"))
        digits = ".4g" if kind in ("rmse", "deviance", "log_loss") else ".4f"
        shown.append(f"{words.get(kind, kind)}{f' of {of}' if of else ''} {value:{digits}}")
    return ", ".join(shown)
