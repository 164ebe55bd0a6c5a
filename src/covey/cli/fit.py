"""``covey fit``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from covey.cli.console import NOT_CONVERGED, check_there, complaints, notice, plain, stages, table
from covey.cli.options import (
    MODEL,
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
    HandleUnknown,
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
    from covey.workflow import Fit

__all__ = ["fit", "print_fit"]

# Options of the command itself; all others are parameters of the estimator.
OUTPUT_OPTIONS = ("out", "overwrite", "as_json")
OWN = (
    *TABLE_OPTIONS,
    *RESPONSE_OPTIONS,
    *OUTPUT_OPTIONS,
    "selection",
    "always",
    "seed",
    "nested",
    "stability",
)

# The most groups to print; the folder has all of them.
SHOWN = 20


def fit(
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
    handle_unknown: HandleUnknown = "error",
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
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder to write.")] = Path("covey-fit"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier fit in the folder.")] = False,
    as_json: Json = False,
    selection: Annotated[
        str,
        typer.Option(
            help="How to choose the model: a number of folds, holdout (one fifth of the rows), ebic, bic, gcv, "
            "discrepancy, or size:K for K groups.",
            rich_help_panel=MODEL,
        ),
    ] = "5",
    rule: Annotated[
        Literal["min", "1se"] | None,
        typer.Option(
            help="min, for prediction: the simplest model near the mean of the best. 1se, for fewer groups: the "
            "simplest model within one standard error of the best.",
            show_default="min",
            rich_help_panel=MODEL,
        ),
    ] = None,
    average: Annotated[
        bool | None,
        typer.Option(
            "--average/--no-average",
            help="Use the weighted mean of all candidates: slightly more accurate under strong noise, but dense.",
            show_default="no-average",
            rich_help_panel=MODEL,
        ),
    ] = None,
    always: Always = None,
    factors: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="How many common factors of the columns to account for while the groups are ordered.",
            show_default="auto",
            rich_help_panel=MODEL,
        ),
    ] = None,
    standardize: Annotated[
        Literal["group", "column", "block", "none"] | None,
        typer.Option(
            help="Orthonormalise the columns of each group, scale each column, scale each group as a block, or do "
            "nothing.",
            show_default="group",
            rich_help_panel=MODEL,
        ),
    ] = None,
    group_weights: Annotated[
        Literal["noise", "sqrt", "none"] | None,
        typer.Option(
            help="Weight groups by the score that pure noise would reach in them, by the square root of their size, or "
            "not at all.",
            show_default="noise",
            rich_help_panel=MODEL,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed for folds or held-out rows.", rich_help_panel=MODEL)] = 0,
    nested: Annotated[
        bool,
        typer.Option(
            "--nested/--no-nested",
            help="Repeat the whole fit in five outer folds, for a score on rows that played no part in choosing the "
            "model, next to a lasso and a ridge. Takes several times as long as the fit itself.",
            rich_help_panel=MODEL,
        ),
    ] = True,
    stability: Annotated[
        bool,
        typer.Option(
            "--stability",
            help="Also repeat the selection on random halves of the rows, and show in the table and the report how "
            "often each group is found.",
            rich_help_panel=MODEL,
        ),
    ] = False,
) -> None:
    """Fit a table: which groups of columns predict the target, and how well.

    Reads the table, expands columns as requested, chooses one model by
    cross-validation, prints its groups and how well it predicts, and writes a
    folder (completely or not at all):

    \b
      report.html       one page that opens offline, with the path and a slider
      model.skops       the model, for `covey predict` and `covey.load`
      coefficients.csv  every column's coefficient in the table's units, with odds,
                        rate or hazard ratios
      groups.csv        every group: selected or not, strength, norm, time, folds
      path.parquet      every coefficient along the path, which ends with the model
      run.json          settings, versions, seed, and the hash of the input

    \b
    Examples:
      covey fit genes.csv --target TRIM32 --groups _ --out fit
      covey fit patients.csv --target y --spline '*:5' --onehot sex --drop id
      covey fit 'parts/*.parquet' --target y --groups groups.csv --rule 1se
      covey fit table.csv --target y --groups 'gene01_*' --impute median --json
      covey fit table.csv --target y --always age --selection size:3
      covey fit patients.csv --target diagnosis --always age --always sex
      covey fit claims.csv --target n --family poisson --offset log:years
      covey fit trial.csv --time months --event dead --strata site --always age
    """
    with complaints():
        check_there(*data)
        from covey.persistence import import_skops

        import_skops()  # needed to write the model; importing it first is fastest
        from covey.workflow import FitSettings, check_out, fit_table, write_fit
        from covey.workflow.folder import describe
        from covey.workflow.nested import N_FOLDS, fold_stage

        check_out(out, overwrite)
        settings = FitSettings(
            table_settings(context),
            selection=selection,
            always=tuple(always or ()),
            seed=seed,
            options=asked(context, *OWN),
            nested=nested,
            stability=stability,
        )
        repeated = [fold_stage(fold) for fold in range(1, N_FOLDS + 1)] if nested else []
        halving = ["halving"] if stability else []
        with stages(["reading", "expanding", "fitting", *repeated, *halving, "writing"], quiet=as_json) as told:
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
    import numpy as np
    from rich.console import Console

    from covey.search.chosen import how_chosen, in_words

    console = Console(highlight=False, soft_wrap=True)
    model, problem = result.estimator, result.problem
    response, n_always = problem.response, len(model.always_groups_)
    every = result.groups_table()
    selected = every[every["selected"]].drop(columns="selected")
    n_columns = int((model.coef_ != 0).any(axis=0).sum() if model.coef_.ndim > 1 else (model.coef_ != 0).sum())
    beside = f", plus {n_always} always in" if n_always else ""
    console.print(
        f"{result.n_found} of {len(every) - n_always} groups predict {plain(response.title)}{beside} "
        f"({n_columns} of {problem.X.shape[1]} columns, {_rows(result)}).\n"
        f"Family: {response.family}{f' ({plain(response.reason)})' if response.reason else ''}{_classes(result)}.\n"
        f"Model: {in_words(model)}. Chosen by {how_chosen(model)}.",
        markup=False,
    )
    if n_always:
        selected["always"] = ["yes" if own else "" for own in selected["always"]]
    else:
        selected = selected.drop(columns="always")
    if "folds" in selected:
        selected["folds"] = [f"{count} of {model.n_splits_}" for count in selected["folds"]]
    if "half_samples" in selected:
        selected["half_samples"] = ["" if np.isnan(share) else f"{share:.0%}" for share in selected["half_samples"]]
    if len(selected):
        console.print(table(selected, {"size": "d", "strength": ".4g", "norm": ".4g", "woke_up": ".4g"}, most=SHOWN))
    if len(selected) > SHOWN:
        console.print(f"and {len(selected) - SHOWN} more: {out / 'groups.csv'}", markup=False)
    _print_scores(console, result)
    _print_warning(console, result)
    console.print(f"The report: {out / 'report.html'}", markup=False)


def _rows(result: Fit) -> str:
    """The number of rows, and of events for survival times."""
    y = result.problem.y
    events = f", {y['event'].sum()} events" if result.problem.response.family == "cox" else ""
    return f"{len(y)} rows{events}"


def _classes(result: Fit) -> str:
    """Which class's odds the coefficients describe, if there are two classes."""
    if not result.problem.response.has_classes or result.outputs:
        return ""
    first, second = (plain(label) for label in result.estimator.classes_)
    return f"; coefficients describe the odds of {second} against {first}"


def _print_scores(console: Any, result: Fit) -> None:
    scores, nested = result.scores, result.nested
    name = scores.measure.replace("²", "^2")
    if nested is not None:
        console.print(str(nested), markup=False)
        beside = "Not held out, so optimistic:"
    else:
        beside = "Not held out, so optimistic (--nested gives a held-out score):"
    if scores.chosen_r2 is not None:
        beside += f" {name} {scores.chosen_r2:.3f} on the rows used to choose the model ({scores.chosen_by}),"
    console.print(f"{beside} {name} {scores.train_r2:.3f} on the rows it was fitted to.", markup=False)
    if scores.accuracy is not None:
        console.print(f"The class is predicted correctly in {scores.accuracy:.1%} of the held-out rows.")


def _print_warning(console: Any, result: Fit) -> None:
    """Warn if the selection depends on how the rows were split into outer folds or, without those, into folds."""
    from covey.search.agreement import fold_counts, split_warning

    model, nested = result.estimator, result.nested
    selected = [name for name in model.selected_groups_ if name not in model.always_groups_]
    counts = fold_counts(model)
    if not counts:
        return
    warning = split_warning(selected, counts, model.n_splits_)
    if nested is not None:
        warning = split_warning(selected, nested.frequencies, nested.n_folds, "repetitions of the choice")
    if warning:
        console.print(plain(warning), markup=False)
