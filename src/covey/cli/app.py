"""All commands under one name."""

from __future__ import annotations

import _thread
import gc
import os
import sys
import threading
from importlib import import_module
from typing import Annotated, Any

import typer
import typer.core

# Allocations between two runs of the garbage collector. Python's default of 700 costs a short command a tenth of its
# time, because its imports allocate many objects and free none.
OBJECTS = 50_000

START, PAPER, SHELL = "From a table to its terms", "The paper", "The shell"

# Every command: the module and the name in it, imported when the command is used or listed; and its heading.
COMMANDS = {
    "demo": ("covey.cli.demo:demo", START),
    "fit": ("covey.cli.fit:fit", START),
    "predict": ("covey.cli.predict:predict", START),
    "stability": ("covey.cli.stability:stability", START),
    "path": ("covey.cli.path:path", START),
    "diagnose": ("covey.paper.cli.diagnose:diagnose", PAPER),
    "reproduce": ("covey.paper.cli.reproduce:reproduce", PAPER),
    "autoencoder": ("covey.paper.cli.autoencoder:autoencoder", PAPER),
    "completion": ("covey.cli.completion:completion", SHELL),
}
APPEARANCE: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": "rich",
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


class Commands(typer.core.TyperGroup):
    """The commands of the table, each imported when it is needed."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command; None if there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        place, panel = COMMANDS[cmd_name]
        module, _, name = place.partition(":")
        found = getattr(import_module(module), name)
        if not isinstance(found, typer.Typer):
            single = typer.Typer(**APPEARANCE)
            single.command(cmd_name)(found)
            found = single
        command: Any = typer.main.get_command(found)
        command.name, command.rich_help_panel = cmd_name, panel
        return command


app = typer.Typer(name="covey", cls=Commands, no_args_is_help=True, **APPEARANCE)


def _version(wanted: bool) -> None:
    if wanted:
        import covey as library

        typer.echo(f"covey {library.__version__}")
        raise typer.Exit


@app.callback()
def covey(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Which variables of a table matter, straight or curved, alone or in pairs?

    Give a table with a target; numbers, categories, dates and missing values are
    used as they are. Terms enter one after another, strongest first; those that
    turn out not to be needed are dropped again, and one model is chosen on
    held-out rows, without a penalty that shrinks it. For matrices of columns that
    belong together, such as the probes of genes, --groups selects whole groups.

    \b
    Examples:
      covey demo
      covey fit table.csv --target y --out fit
      covey predict fit new.csv --out predictions.csv

    \b
    Exit status:
      0    done
      1    an experiment of `covey reproduce` failed
      2    bad usage or bad input; nothing was written
      3    the fit did not converge; the result is written, with the reason
      130  interrupted; nothing is left half-written
      141  standard output was closed or could not be written; files are complete

    \b
    Environment:
      NO_COLOR     no colours
      COVEY_DATA   the folder with the paper's data sets
    """


def _never_lose_an_interrupt(lost: sys.UnraisableHookArgs) -> None:
    """Resend a Ctrl-C that arrived during garbage collection, where Python drops it."""
    if issubclass(lost.exc_type, KeyboardInterrupt):
        threading.Timer(0.01, _thread.interrupt_main).start()
    else:
        sys.__unraisablehook__(lost)


def run() -> None:
    """Run the command named on the command line."""
    gc.set_threshold(OBJECTS)
    sys.unraisablehook = _never_lose_an_interrupt
    if "_COVEY_COMPLETE" in os.environ:
        from typer import completion as shell

        shell.completion_init()  # type: ignore[attr-defined]
    try:
        app(prog_name="covey")
    except OSError as reason:  # of --help and --version, which no command handles
        from covey.cli.console import NOT_READ, discard_output

        discard_output(reason)
        sys.exit(NOT_READ)
