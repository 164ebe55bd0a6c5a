"""``covey predict``."""

from __future__ import annotations

import json
from collections.abc import Hashable
from pathlib import Path
from typing import Annotated

import typer

from covey.cli.console import STANDARD, check_out, check_there, complaints, notice, plain, progress_bar, write
from covey.cli.options import Json, Overwrite, takes, to
from covey.settings import PredictSettings

# The scores in words, with the digits to print.
SCORES = {
    "r2": ("R^2", ".3f"),
    "rmse": ("root mean squared error", ".4g"),
    "log_loss": ("log loss", ".3f"),
    "accuracy": ("accuracy", ".1%"),
    "always_commonest": ("accuracy of always saying the commonest class", ".1%"),
    "base_rate": ("base rate", ".1%"),
    "auc": ("AUC", ".3f"),
    "average_precision": ("average precision", ".3f"),
    "brier": ("Brier score", ".3f"),
    "slope": ("calibration slope", ".2f"),
    "intercept": ("calibration intercept", ".2f"),
    "lift": ("lift", ".1f"),
    "deviance_explained": ("D^2", ".3f"),
    "deviance": ("mean deviance", ".4g"),
    "concordance": ("concordance", ".3f"),
}


@takes(PredictSettings)
def predict(
    settings: PredictSettings,
    out: Annotated[
        Path | None, to("FILE", "A .csv, .tsv, .parquet or .feather file; standard output (-) by default.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Predict every row of a table with a fitted model.

    Give the raw table: columns are found by name, in any order, and only those
    that the model uses are needed. A level that was not in the fit is predicted
    as the mean of the known ones, and a notice says so.
    The column `prediction` is the mean. For classes it is the class, followed by
    columns probability_CLASS; several responses get one column
    prediction_RESPONSE each. For survival times it is the log risk, followed by
    columns survival_TIME, the probability of no event by then. With --interval,
    columns lower and upper follow, the ends of an interval that contains the
    response of this share of new rows; for classes it is the column set, such as
    a|b, and for survival times a lower bound of the time alone. A model with an
    offset needs the offset column here too. A model file is data: nothing in it
    is executed.

    \b
    Examples:
      covey predict fit new.csv > predictions.csv
      covey predict fit new.parquet --keep id --out predictions.parquet
      covey predict fit/model.skops test.csv --target y --json
      covey predict fit new.csv --interval 0.9
      covey predict fit new.csv --at 1,2,5 --keep patient
      covey predict fit test.csv --target months --target dead
    """
    with complaints() as written:
        check_there(settings.model, what="model file")
        check_there(*settings.data)
        out = None if out == STANDARD else out
        if out is not None or not as_json:
            check_out(out, overwrite=overwrite)
        from covey.persistence import import_skops

        import_skops()  # needed to read the model; importing it first is fastest
        from covey.workflow.predict import predict_table

        with progress_bar(quiet=as_json):
            prediction = predict_table(settings)
        table, scores = prediction.table, prediction.scores
        for message in prediction.notices:
            notice(message)
        if out is not None:
            write(table, out)
            written.append(out)
        if as_json:
            content: dict[Hashable, object] = {"out": str(out)}
            if out is None:
                content = table.astype(object).where(table.notna(), None).to_dict("list")
            typer.echo(json.dumps({"rows": len(table), **scores, **content}, ensure_ascii=False, default=str))
            return
        if out is None:
            write(table, STANDARD)
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
