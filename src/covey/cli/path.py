"""``covey path``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from covey.cli.console import (
    STANDARD,
    check_out,
    check_there,
    complaints,
    notice,
    print_table,
    progress_bar,
    say,
    write,
)
from covey.cli.options import Json, Overwrite, takes, to
from covey.settings import TableSettings


@takes(TableSettings, "family", "quantile", "power", "order", "offset")
def path(
    settings: TableSettings,
    most: Annotated[int, typer.Option(min=1, help="Stop when this many variables or groups have entered.")] = 20,
    out: Annotated[
        Path | None, to("FILE", "Coefficients along the path: .csv, .tsv, .parquet or .feather; - prints them.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="A plot of the path: .png, .svg or .pdf.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Compute only the path: in which order do the variables enter? No model is chosen.

    A variable enters with all of its columns: its line and curve, or all of its
    levels. With --groups, the table is a matrix of numbers, as in `covey fit`.

    \b
    Examples:
      covey path table.csv --target y
      covey path table.csv --target y --groups 3 --most 50 --plot path.png --out path.parquet
      covey path trial.csv --time months --event dead --groups _
    """
    with complaints() as written:
        check_there(*settings.data)
        from covey.workflow.path import PICTURES, coefficients_along, draw, order_table, trace_table

        if as_json and out == STANDARD:
            raise ValueError("--out - and --json both print to standard output: leave out one of them.")
        if out is not None:
            check_out(out, overwrite=overwrite)
        if plot is not None:
            check_out(plot, PICTURES, "--plot", overwrite=overwrite)
        with progress_bar(quiet=as_json):
            traced, problem = trace_table(settings, most=most)
        for message in problem.notices:
            notice(message)
        order, n_groups = order_table(traced), len(traced.groups)
        if out is not None:
            write(coefficients_along(traced), out)
        if plot is not None:
            draw(traced, plot)
        written += [file for file in (out, plot) if file not in (None, STANDARD)]
        if as_json:
            answer = {"status": traced.status, "groups": order.to_dict("records"), "groups_in_all": n_groups}
            typer.echo(json.dumps(answer, ensure_ascii=False))
        elif out != STANDARD:
            what = "groups" if settings.groups else "variables"
            print_table(order.rename(columns={"group": what[:-1]}), most=most)
            say(f"{len(order)} of {n_groups} {what} are awake. {traced.message}")
