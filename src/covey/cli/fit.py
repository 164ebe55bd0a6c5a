"""``covey fit``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from covey.cli.console import NOT_CONVERGED, check_there, complaints, notice, plain, print_table, say, stages
from covey.cli.options import Json, takes
from covey.settings import FitSettings

if TYPE_CHECKING:
    from covey.workflow import Fit


# The most groups to print; the folder has all of them.
SHOWN = 20


@takes(FitSettings)
def fit(
    settings: FitSettings,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder to write.")] = Path("covey-fit"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier fit in the folder.")] = False,
    as_json: Json = False,
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
      covey fit 'parts/*.parquet' --target y --groups groups.csv --rule predict
      covey fit table.csv --target y --groups 'gene01_*' --impute median --json
      covey fit table.csv --target y --always age --selection size:3
      covey fit patients.csv --target diagnosis --always age --always sex
      covey fit claims.csv --target n --family poisson --offset log:years
      covey fit trial.csv --time months --event dead --strata site --always age
    """
    with complaints():
        check_there(*settings.data)
        from covey.persistence import import_skops

        import_skops()  # needed to write the model; importing it first is fastest
        from covey.workflow import check_out, fit_table, write_fit
        from covey.workflow.folder import describe
        from covey.workflow.scores import FOLD_STAGES

        check_out(out, overwrite)
        steps = [*(FOLD_STAGES if settings.nested else ()), *(["halving"] if settings.stability else [])]
        with stages(["reading", "expanding", "fitting", *steps, "writing"], quiet=as_json) as show:
            result = fit_table(settings, show)
            show("writing")
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

    from covey.search.chosen import how_chosen, in_words, price_of_sparsity
    from covey.wording import as_options

    model, problem = result.estimator, result.problem
    response, n_always = problem.response, len(model.always_groups_)
    every = result.groups_table()
    selected = every[every["selected"]].drop(columns="selected")
    n_columns = int((np.atleast_2d(model.coef_) != 0).any(axis=0).sum())
    beside = f", plus {n_always} always in" if n_always else ""
    events = "" if response.n_events is None else f", {response.n_events} events"
    say(
        f"{result.n_found} of {len(every) - n_always} groups predict {plain(response.title)}{beside} "
        f"({n_columns} of {problem.X.shape[1]} columns, {len(problem.y)} rows{events}).\n"
        f"Family: {response.family}{f' ({plain(response.reason)})' if response.reason else ''}{_classes(result)}.\n"
        f"Model: {in_words(model)}. Chosen by {how_chosen(model)}."
    )
    if price := price_of_sparsity(model):
        say(as_options(price))
    if n_always:
        selected["always"] = ["yes" if is_in else "" for is_in in selected["always"]]
    else:
        selected = selected.drop(columns="always")
    if "folds" in selected:
        selected["folds"] = [f"{count} of {model.n_splits_}" for count in selected["folds"]]
    if "half_samples" in selected:
        selected["half_samples"] = ["" if np.isnan(share) else f"{share:.0%}" for share in selected["half_samples"]]
    print_table(selected, most=SHOWN, more=f": {out / 'groups.csv'}")
    _print_scores(result)
    _print_warning(result)
    say(f"The report: {out / 'report.html'}")


def _classes(result: Fit) -> str:
    """Which class's odds the coefficients describe, if there are two classes."""
    if not result.problem.response.has_classes or result.outputs:
        return ""
    first, second = (plain(label) for label in result.estimator.classes_)
    return f"; coefficients describe the odds of {second} against {first}"


def _print_scores(result: Fit) -> None:
    scores, nested = result.scores, result.nested
    name = scores.measure.replace("²", "^2")
    if nested is not None:
        say(str(nested))
    text = f"Not held out, so optimistic{'' if nested else ' (--nested gives a held-out score)'}:"
    if scores.chosen_r2 is not None:
        text += f" {name} {scores.chosen_r2:.3f} on the rows used to choose the model ({scores.chosen_by}),"
    say(f"{text} {name} {scores.train_r2:.3f} on the rows it was fitted to.")
    if scores.accuracy is not None:
        say(f"The class is predicted correctly in {scores.accuracy:.1%} of the held-out rows.")


def _print_warning(result: Fit) -> None:
    """Warn if the selection depends on how the rows were split into outer folds or, without those, into folds."""
    from covey.search.agreement import fold_counts, split_warning

    model, nested = result.estimator, result.nested
    selected = [name for name in model.selected_groups_ if name not in model.always_groups_]
    counts = fold_counts(model)
    if not counts:
        return
    if nested is None:
        warning = split_warning(selected, counts, model.n_splits_)
    else:
        warning = split_warning(selected, nested.frequencies, nested.n_folds, "repetitions of the choice")
    if warning:
        say(plain(warning))
