"""``covey stability``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from covey.cli.console import check_there, complaints, notice, plain, stages, table
from covey.cli.options import (
    RESPONSE_OPTIONS,
    TABLE_OPTIONS,
    Always,
    Data,
    Date,
    Decimal,
    Drop,
    DropMissing,
    Event,
    EventValue,
    Family,
    GroupsOption,
    Impute,
    Json,
    Offset,
    OneHot,
    Sep,
    Spline,
    Start,
    Strata,
    Targets,
    Ties,
    Time,
    Weights,
    asked,
    table_settings,
)

if TYPE_CHECKING:
    from covey.workflow.stability import Believed

__all__ = ["stability"]

HALVES, KNOCKOFFS = "Half-samples", "Knockoffs"
OWN = (*TABLE_OPTIONS, *RESPONSE_OPTIONS, "always", "method", "out", "overwrite", "as_json", "seed", "jobs", "ties")

# The most groups to print.
SHOWN = 20


def stability(
    context: typer.Context,
    data: Data,
    target: Targets = None,
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
    family: Family = "auto",
    offset: Offset = None,
    time: Time = None,
    event: Event = None,
    event_value: EventValue = None,
    start: Start = None,
    strata: Strata = None,
    ties: Ties = None,
    always: Always = None,
    method: Annotated[
        Literal["half-samples", "knockoffs"],
        typer.Option(
            help="half-samples: groups that are found in most random halves of the rows; bounds the expected number of "
            "mistakes. knockoffs: groups that matter given all others; bounds the expected share of mistakes."
        ),
    ] = "half-samples",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="A folder to write: groups.csv and run.json.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier result in the folder.")] = False,
    as_json: Json = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed for the half-samples or the knockoffs.")] = 0,
    jobs: Annotated[int | None, typer.Option(help="How many jobs to run at a time; -1 for one per core.")] = None,
    max_false: Annotated[
        float | None,
        typer.Option(help="The expected number of mistakes to accept.", show_default="1", rich_help_panel=HALVES),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="The share of half-samples in which a group must be found to be selected.",
            show_default="0.75",
            rich_help_panel=HALVES,
        ),
    ] = None,
    n_pairs: Annotated[
        int | None,
        typer.Option(
            "--pairs",
            min=1,
            help="How often to split the rows into two halves.",
            show_default="50",
            rich_help_panel=HALVES,
        ),
    ] = None,
    fdr: Annotated[
        float | None,
        typer.Option(
            help="The expected share of mistakes among the selected groups to accept.",
            show_default="0.1",
            rich_help_panel=KNOCKOFFS,
        ),
    ] = None,
    kind: Annotated[
        Literal["auto", "gaussian", "fixed"] | None,
        typer.Option(
            help="gaussian assumes that the rows are normally distributed; fixed takes the columns as they are, but "
            "needs twice as many rows as columns and normal noise.",
            show_default="auto",
            rich_help_panel=KNOCKOFFS,
        ),
    ] = None,
    n_draws: Annotated[
        int | None,
        typer.Option(
            "--draws",
            min=1,
            help="How many sets of knockoffs to draw; with several, the result depends less on the seed but fewer "
            "groups are found.",
            show_default="1",
            rich_help_panel=KNOCKOFFS,
        ),
    ] = None,
) -> None:
    """Find the groups of a table that can be trusted, with a bound on the number of mistakes.

    The two methods give different guarantees. Each prints its assumptions, and
    warns where they are doubtful.

    \b
    Examples:
      covey stability genes.csv --target TRIM32 --groups _
      covey stability patients.csv --target y --always age --max-false 0.5 --jobs -1
      covey stability trial.csv --time months --event dead --always age
      covey stability genes.csv --target y --groups _ --method knockoffs --fdr 0.2 --out believed
    """
    with complaints():
        check_there(*data)
        from covey.workflow.stability import (
            StabilitySettings,
            believe_table,
            check_stability_out,
            describe_stability,
            write_stability,
        )

        if out is not None:
            check_stability_out(out, overwrite)
        settings = StabilitySettings(
            table_settings(context),
            method=method,
            always=tuple(always or ()),
            seed=seed,
            n_jobs=jobs,
            ties=ties,
            options=asked(context, *OWN),
        )
        pieces = [_piece(i, PIECES) for i in range(1, PIECES + 1)]
        with stages(["reading", "expanding", "selecting", *pieces], quiet=as_json) as told:
            believed = believe_table(settings, told, lambda done, total: told(_piece(done, total)))
        if out is not None:
            write_stability(believed, out, overwrite=overwrite)
        if as_json:
            typer.echo(json.dumps(describe_stability(believed), ensure_ascii=False))
        else:
            _print(believed, out)
        for remark in (*believed.problem.notices, *believed.found.remarks):
            notice(remark)


# Steps of the progress bar.
PIECES = 20


def _piece(done: int, total: int) -> str:
    """The progress bar's label for a share of the half-samples."""
    return f"selecting {max(1, done * PIECES // total)}/{PIECES}"


def _print(believed: Believed, out: Path | None) -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    found, response = believed.found, believed.problem.response
    every: Any = believed.groups_table()
    selected = every[every["selected"]].drop(columns="selected")
    console.print(
        f"{len(selected)} of {found.n_groups} groups can be believed to predict {plain(response.title)} "
        f"({believed.settings.method}, {len(believed.problem.y)} rows).\n{found.promise()}",
        markup=False,
    )
    forms = {"size": "d", "frequency": ".2f", "statistic": ".3g", "before_copy": ".2f"}
    if len(selected):
        console.print(table(selected, {name: forms[name] for name in selected if name in forms}, most=SHOWN))
    if len(selected) > SHOWN:
        console.print(f"and {len(selected) - SHOWN} more.", markup=False)
    if out is not None:
        console.print(f"Every group: {out / 'groups.csv'}", markup=False)
