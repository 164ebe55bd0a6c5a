"""``covey fit``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from covey.cli.console import NOT_CONVERGED, complaints, notice, plain, stages, table
from covey.cli.options import (
    MODEL,
    TABLE_OPTIONS,
    Data,
    Drop,
    GroupsOption,
    Impute,
    Json,
    OneHot,
    Spline,
    Target,
    Weights,
    asked,
    table_settings,
)

if TYPE_CHECKING:
    from covey.workflow import Fit

__all__ = ["fit", "print_fit"]

# Every option that is not one of these is a parameter of the estimators, under its own name.
OWN = (*TABLE_OPTIONS, "out", "overwrite", "stopping", "seed", "as_json")

# Groups that a terminal shows; the folder has them all.
SHOWN = 20


def fit(
    context: typer.Context,
    data: Data,
    target: Target,
    groups: GroupsOption = None,
    spline: Spline = None,
    onehot: OneHot = None,
    drop: Drop = None,
    impute: Impute = None,
    weights: Weights = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder to write.")] = Path("covey-fit"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a fit that is in the folder.")] = False,
    as_json: Json = False,
    stopping: Annotated[
        str,
        typer.Option(
            help="How the time of stopping is chosen: cv, holdout, ebic, bic, gcv, discrepancy, or a number of "
            "iterations.",
            rich_help_panel=MODEL,
        ),
    ] = "cv",
    cv: Annotated[
        int | None, typer.Option(help="Folds of --stopping cv.", show_default="5", rich_help_panel=MODEL)
    ] = None,
    rule: Annotated[
        Literal["min", "1se"] | None,
        typer.Option(
            help="With --stopping cv: the time of least error, or the earliest within one standard error of it, which "
            "selects fewer groups.",
            show_default="min",
            rich_help_panel=MODEL,
        ),
    ] = None,
    validation_fraction: Annotated[
        float | None,
        typer.Option(
            "--holdout",
            help="With --stopping holdout: the share of rows held out.",
            show_default="0.2",
            rich_help_panel=MODEL,
        ),
    ] = None,
    standardize: Annotated[
        Literal["group", "column", "block", "none"] | None,
        typer.Option(
            help="Orthonormalise within groups, scale columns, scale groups as blocks, or none of it.",
            show_default="group",
            rich_help_panel=MODEL,
        ),
    ] = None,
    group_weights: Annotated[
        Literal["noise", "sqrt", "none"] | None,
        typer.Option(
            help="Hold groups back by what noise reaches in them, by the root of their size, or not.",
            show_default="noise",
            rich_help_panel=MODEL,
        ),
    ] = None,
    algorithm: Annotated[
        Literal["single-stage", "two-stage"] | None,
        typer.Option(help="The paper's Algorithm 1 or 2.", show_default="single-stage", rich_help_panel=MODEL),
    ] = None,
    init_scale: Annotated[
        float | None,
        typer.Option(
            help="The start of every magnitude. Unless given: 1e-6, for few groups; and larger ones, in which all "
            "groups take part, are tried where many do a little.",
            show_default="auto",
            rich_help_panel=MODEL,
        ),
    ] = None,
    max_iter: Annotated[
        int | None, typer.Option(help="The last iteration.", show_default="100000", rich_help_panel=MODEL)
    ] = None,
    n_jobs: Annotated[
        int | None,
        typer.Option("--jobs", help="Folds at a time; -1 for one a core.", show_default="1", rich_help_panel=MODEL),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the folds, or of the rows held out.", rich_help_panel=MODEL)] = 0,
) -> None:
    """Fit a table: which groups of columns predict the target, and how well.

    Reads the table, expands columns where asked, chooses the time of stopping
    by cross-validation, prints the selected groups, and writes a folder that is
    whole or not there:

    \b
      report.html       one page that opens offline, with the path and a slider
      model.skops       the model, for `covey predict` and `covey.load`
      coefficients.csv  every column's coefficient, in the table's units
      groups.csv        every group: selected or not, strength, norm, wake-up
      path.parquet      every coefficient along the path
      run.json          settings, versions, seed, and the hash of the input

    \b
    Examples:
      covey fit genes.csv --target TRIM32 --groups _ --out fit
      covey fit patients.csv --target y --spline '*:5' --onehot sex --drop id
      covey fit 'parts/*.parquet' --target y --groups groups.csv --rule 1se
      covey fit table.csv --target y --groups 'gene01_*' --impute median --json
    """
    with complaints():
        from covey.persistence import import_skops

        import_skops()  # the model's file will need it, and it is quickest to import first
        from covey.workflow import FitSettings, check_out, fit_table, write_fit
        from covey.workflow.folder import describe

        check_out(out, overwrite)
        settings = FitSettings(table_settings(context), stopping=stopping, seed=seed, options=asked(context, *OWN))
        with stages(["reading", "expanding", "fitting", "writing"], quiet=as_json) as told:
            result = fit_table(settings, told)
            told("writing")
            write_fit(result, out, overwrite=overwrite)
        if as_json:
            typer.echo(json.dumps({**describe(result), "out": str(out)}, ensure_ascii=False))
        else:
            print_fit(result, out)
        for message in result.notices:
            notice(message)
        if not result.converged:
            raise typer.Exit(NOT_CONVERGED)


def print_fit(result: Fit, out: Path) -> None:
    """What was selected, how well it predicts, and where to look."""
    from rich.console import Console

    from covey.estimators.base import how_stopped

    console = Console(highlight=False, soft_wrap=True)
    estimator, problem, scores = result.estimator, result.problem, result.scores
    every = result.groups_table()
    selected = every[every["selected"]].drop(columns="selected")
    console.print(
        f"{len(selected)} of {len(every)} groups predict {plain(result.settings.table.target)} "
        f"({int(selected['size'].sum())} of {problem.X.shape[1]} columns, {len(problem.y)} rows), "
        f"{how_stopped(estimator)}.",
        markup=False,
    )
    if len(selected):
        console.print(table(selected, {"size": "d", "strength": ".4g", "norm": ".4g", "woke_up": "d"}, most=SHOWN))
    if len(selected) > SHOWN:
        console.print(f"and {len(selected) - SHOWN} more: {out / 'groups.csv'}", markup=False)
    if scores.held_out_r2 is not None:
        console.print(
            f"R^2 {scores.held_out_r2:.3f} held out ({scores.held_out_by}), {scores.train_r2:.3f} on all rows."
        )
    else:
        console.print(f"R^2 {scores.train_r2:.3f} on the rows that it was fitted to.")
    console.print(f"The report: {out / 'report.html'}", markup=False)
