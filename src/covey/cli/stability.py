"""``covey stability``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from covey.cli.console import check_there, complaints, notice, plain, print_table, progress_bar, say
from covey.cli.options import Json, Overwrite, takes, to
from covey.settings import StabilitySettings

if TYPE_CHECKING:
    from covey.workflow.stability import TableSelection


# The most variables or groups to print.
SHOWN = 20


@takes(StabilitySettings)
def stability(
    settings: StabilitySettings,
    out: Annotated[Path | None, to("DIR", "A folder to write: groups.csv and run.json.")] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Find the variables or groups of a table that can be trusted, with a bound on the number of mistakes.

    A variable is selected with all of its columns: its line and curve, or all of
    its levels. With --groups, the table is a matrix of numbers, as in `covey fit`.
    The two methods give different guarantees. Each prints its assumptions, and
    warns where they are doubtful.

    \b
    Examples:
      covey stability genes.csv --target TRIM32 --groups _
      covey stability patients.csv --target y --always age --max-false 0.5 --jobs -1
      covey stability trial.csv --time months --event dead --always age
      covey stability genes.csv --target y --groups _ --method knockoffs --fdr 0.2 --out believed
    """
    with complaints() as written:
        check_there(*settings.data)
        from covey.files import check_folder
        from covey.workflow.folder import SELECTION_FILES, describe_selection, write_selection
        from covey.workflow.stability import select_table

        if out is not None:
            check_folder(out, SELECTION_FILES, overwrite=overwrite)
        with progress_bar(quiet=as_json):
            selection = select_table(settings)
        if out is not None:
            write_selection(selection, out, overwrite=overwrite)
            written.append(out)
        if as_json:
            typer.echo(json.dumps(describe_selection(selection), ensure_ascii=False))
        else:
            _print(selection, out)
        for remark in (*selection.problem.notices, *selection.found.remarks):
            notice(remark)


def _print(selection: TableSelection, out: Path | None) -> None:
    found, problem = selection.found, selection.problem
    every = selection.groups_table()
    selected = every[every["selected"]].drop(columns="selected")
    say(
        f"{len(selected)} of {found.n_groups} {selection.what} can be believed to predict "
        f"{plain(problem.response.title)} ({selection.settings.method}, {problem.n_rows} rows).\n{found.promise()}"
    )
    print_table(selected.rename(columns={"group": selection.what[:-1]}), most=SHOWN)
    if out is not None:
        say(f"All {selection.what}: {out / 'groups.csv'}")
