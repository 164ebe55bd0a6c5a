"""All commands under one name."""

from __future__ import annotations

import _thread
import gc
import os
import sys
import threading
from importlib import import_module
from typing import Annotated

import typer

from covey.cli.completion import completion
from covey.cli.demo import demo
from covey.cli.fit import fit
from covey.cli.path import path
from covey.cli.predict import predict
from covey.cli.stability import stability

__all__ = ["app", "run"]

# Allocations between two runs of the garbage collector. Python's default of 700 costs a short command a tenth of its
# time, because its imports allocate many objects and free none.
OBJECTS = 50_000

START, PAPER, SHELL = "From a table to its groups", "The paper", "The shell"

# The commands of the paper, by name: the tool imports nothing else of `covey.paper`.
OF_THE_PAPER = {
    "diagnose": "covey.paper.cli.diagnose",
    "reproduce": "covey.paper.cli.reproduce",
    "autoencoder": "covey.paper.cli.autoencoder",
}

app = typer.Typer(
    name="covey",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(rich_help_panel=START)(demo)
app.command(rich_help_panel=START)(fit)
app.command(rich_help_panel=START)(predict)
app.command(rich_help_panel=START)(stability)
app.command(rich_help_panel=START)(path)
for name, module in OF_THE_PAPER.items():
    command = getattr(import_module(module), name)
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name, rich_help_panel=PAPER)
    else:
        app.command(rich_help_panel=PAPER)(command)
app.command(rich_help_panel=SHELL)(completion)


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
    """Group-sparse regression without a penalty: which groups of columns matter?

    For tables with a target and columns that belong together: the levels of a
    category, the spline basis of a variable, the probes of a gene. Groups enter
    one after another, strongest first; groups that turn out not to be needed are
    dropped again, and one model is chosen on held-out rows. A group is in the
    model with all its columns or not at all.

    \b
    Examples:
      covey demo
      covey fit table.csv --target y --groups _ --out fit
      covey predict fit new.csv --out predictions.csv

    \b
    Exit status:
      0    done
      1    an experiment of `covey reproduce` failed
      2    bad usage or bad input; nothing was written
      3    the fit did not converge; the result is written, with the reason
      130  interrupted; nothing is left half-written

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
    app(prog_name="covey")
