"""The command line: parsing and printing only. Each command imports what it needs when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from covey.cli_autoencoder import app as autoencoder

__all__ = ["app", "main"]

app = typer.Typer(
    name="covey",
    help="Group-sparse regression without a penalty.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(autoencoder, name="autoencoder")


@app.callback()
def covey() -> None:
    """Group-sparse regression without a penalty."""


@app.command()
def reproduce(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[IDS]...", help="What to run, such as fig2 table3; all by default.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full/--quick", help="The paper's 30 repeats (minutes), or a few.", show_default="quick")
    ] = False,
    out: Annotated[Path, typer.Option("--out", help="The folder for tables, figures and the report.")] = Path(
        "reproduction"
    ),
    jobs: Annotated[int, typer.Option("--jobs", help="Repeats at a time; -1 for one a core.")] = -1,
) -> None:
    """Run the paper's figures and tables, and judge its claims.

    Writes ID/data.csv and ID/figure.svg|png for each, claims.csv, and index.html, which holds everything. Results are
    kept: the same command again takes up where it was stopped.
    """
    from covey.report.console import reproduce_and_print

    raise typer.Exit(reproduce_and_print(ids or [], "full" if full else "quick", out, jobs))


@app.command()
def diagnose(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A table: .csv, .tsv, .parquet or .feather.")],
    target: Annotated[str, typer.Option("--target", help="The column to predict.")],
    groups: Annotated[
        str | None,
        typer.Option("--groups", help="A file of (column, group), a size, sep:_ or regex:PATTERN; none by default."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="A folder for the picture of the coherence.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the conditions as JSON.")] = False,
) -> None:
    """Check whether a table meets the conditions of the convergence theorem, and what it means where it does not.

    Example: covey diagnose bardet.csv --target TRIM32 --groups sep:_ --out diagnosis
    """
    from covey.report.diagnosis import diagnose_and_print

    raise typer.Exit(diagnose_and_print(data, target, groups, out, as_json))


def main() -> None:
    """Entry point of the ``covey`` command."""
    app()


if __name__ == "__main__":
    main()
