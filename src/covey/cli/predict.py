"""``covey predict``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from covey.cli.console import check_out, check_there, complaints, notice, plain, stages, write
from covey.cli.options import Json, takes
from covey.settings import PredictSettings

# The scores in words, with the digits to print.
SCORES = {
    "r2": ("R^2", ".4f"),
    "rmse": ("root mean squared error", ".4g"),
    "log_loss": ("log loss", ".4g"),
    "accuracy": ("accuracy", ".4f"),
    "deviance_explained": ("share of the deviance explained", ".4f"),
    "deviance": ("mean deviance", ".4g"),
    "concordance": ("concordance", ".4f"),
}


@takes(PredictSettings)
def predict(
    settings: PredictSettings,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="A .csv, .tsv, .parquet or .feather file; standard output by default."
        ),
    ] = None,
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
        check_there(settings.model, what="model file")
        check_there(*settings.data)
        check_out(out)
        from covey.persistence import import_skops

        import_skops()  # needed to read the model; importing it first is fastest
        from covey.workflow import predict_table

        with stages(["loading", "reading", "predicting"], quiet=as_json) as show:
            prediction = predict_table(settings, show)
        table, scores = prediction.table, prediction.scores
        for message in prediction.notices:
            notice(message)
        if out is not None:
            write(table, out)
        if as_json:
            content: Any = {"out": str(out)}
            if out is None:
                content = table.astype(object).where(table.notna(), None).to_dict("list")
            typer.echo(json.dumps({"rows": len(table), **scores, **content}, ensure_ascii=False, default=str))
            return
        if out is None:
            from covey.tables.spreadsheet import guarded

            guarded(table).to_csv(sys.stdout, index=False)
        else:
            typer.echo(f"{len(table)} predictions: {out}", err=True)
        if scores:
            typer.echo(", ".join(_in_words(name, value) for name, value in scores.items()), err=True)


def _in_words(name: str, value: float) -> str:
    """A score in words, such as ``R^2 of y 0.9000`` for the key ``r2_y``."""
    kind = next(kind for kind in SCORES if name == kind or name.startswith(f"{kind}_"))
    words, digits = SCORES[kind]
    response = plain(name.removeprefix(kind).removeprefix("_"))
    return f"{words}{f' of {response}' if response else ''} {value:{digits}}"
