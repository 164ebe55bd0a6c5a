"""``covey path``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from covey.cli.console import check_out, check_there, complaints, notice, stages, table, write
from covey.cli.options import (
    Data,
    Date,
    Decimal,
    Drop,
    DropMissing,
    Event,
    EventValue,
    GroupsOption,
    Impute,
    Json,
    OneHot,
    Sep,
    Spline,
    Start,
    Strata,
    Target,
    Ties,
    Time,
    Weights,
    table_settings,
)

__all__ = ["path"]


def path(
    context: typer.Context,
    data: Data,
    target: Target = None,
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
    time: Time = None,
    event: Event = None,
    event_value: EventValue = None,
    start: Start = None,
    strata: Strata = None,
    ties: Ties = None,
    most: Annotated[int, typer.Option(min=1, help="Stop when this many groups have entered.")] = 20,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Coefficients along the path: .csv, .tsv, .parquet or .feather."
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="A plot of the path: .png, .svg or .pdf.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compute only the path: in which order do the groups enter? No model is chosen.

    \b
    Examples:
      covey path table.csv --target y --groups _
      covey path table.csv --target y --groups 3 --most 50 --plot path.png --out path.parquet
      covey path trial.csv --time months --event dead --groups _
    """
    with complaints():
        check_there(*data)
        from covey.workflow import trace_table
        from covey.workflow.trace import PICTURES, coefficients_along, order_table

        check_out(out)
        check_out(plot, PICTURES, "--plot")

        with stages(["reading", "expanding", "running"], quiet=as_json) as told:
            traced = trace_table(table_settings(context), most=most, ties=ties, told=told, notice=notice)
        order = order_table(traced)
        if out is not None:
            write(coefficients_along(traced), out)
        if plot is not None:
            from covey.workflow.trace import draw

            draw(traced, plot)
        if as_json:
            answer = {"status": traced.status, "groups": order.to_dict("records"), "groups_in_all": len(traced.groups)}
            typer.echo(json.dumps(answer, ensure_ascii=False))
        else:
            from rich.console import Console

            console = Console(highlight=False, soft_wrap=True)
            console.print(table(order, {"size": "d", "woke_up": ".4g", "strength": ".4g"}, most=most))
            console.print(f"{len(order)} of {len(traced.groups)} groups are awake. {traced.message}", markup=False)
