"""Terminal output shared by the commands: one-line errors with exit codes, progress bars and escaped names."""

from __future__ import annotations

import difflib
import errno
import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from covey.cli import INTERRUPTED, interruptible
from covey.settings import as_options

if TYPE_CHECKING:
    from pandas import DataFrame

FRAMES = (".csv", ".tsv", ".parquet", ".feather")

# The name of standard input and output.
STANDARD = Path("-")

# What to do about errors of files.
REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "; free some space, or choose another place with --out"),
    **dict.fromkeys((errno.EACCES, errno.EPERM), "; choose another place, or ask for permission"),
    errno.EROFS: "; choose another place with --out",
}

# Errors of writing. Those of files have a name (see `covey.files`), and those of standard output have none.
FAILED_WRITES = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF, errno.EFBIG)

BAD_INPUT, NOT_CONVERGED, NOT_READ = 2, 3, 141

# How columns of numbers are printed; all others are text.
FORMATS = {"size": "d", "columns": "d", "frequency": ".2f", "statistic": ".3g", "before_copy": ".2f"}
FORMATS |= dict.fromkeys(("strength", "norm", "woke_up"), ".4g")

# Marks the items of a list; any other line break in a message becomes a space.
ITEM = "\n  - "


@contextmanager
def complaints(interrupted: str = "Stopped; nothing was written.") -> Iterator[list[Path]]:
    """Turn errors into one line and an exit code: 2 for bad input, 130 if interrupted, 141 for a failing output.

    Commands append to the list what they have written, which a failure of standard output leaves in place.
    """
    written: list[Path] = []
    try:
        with interruptible():
            yield written
            sys.stdout.flush()
    except OSError as reason:
        if isinstance(reason, BrokenPipeError) or (reason.errno in FAILED_WRITES and reason.filename is None):
            discard_output(reason, written)
            raise typer.Exit(NOT_READ) from None
        where = f"{reason.filename}: " if reason.filename and reason.strerror else ""
        _fail(f"{where}{reason.strerror or reason}{REMEDIES.get(reason.errno or 0, '')}")
    except (ValueError, ModuleNotFoundError) as reason:
        _fail(str(reason))
    except MemoryError:
        _fail("There is not enough memory for this table; keep fewer columns, or use a larger machine.")
    except KeyboardInterrupt:
        typer.echo(f"\n{interrupted}", err=True)
        raise typer.Exit(INTERRUPTED) from None


def discard_output(reason: OSError, written: Sequence[Path] = ()) -> None:
    """Discard the rest of the output, and say why, unless its reader, such as ``head``, has seen enough."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    if not isinstance(reason, BrokenPipeError):
        kept = f"; {' and '.join(map(str, written))} is complete" if written else ""
        typer.echo(f"error: Standard output cannot be written: {reason.strerror or reason}{kept}.", err=True)


def _fail(message: str) -> None:
    lines = ITEM.join(plain(line) for line in as_options(message).split(ITEM))
    colours = sys.stderr.isatty() and "NO_COLOR" not in os.environ
    typer.echo(f"{typer.style('error:', fg='red') if colours else 'error:'} {lines}", err=True)
    raise typer.Exit(BAD_INPUT)


def notice(message: str) -> None:
    """Print a notice to standard error."""
    typer.echo(f"notice: {plain(as_options(message))}", err=True)


def plain(text: object) -> str:
    """Text on one line with control characters escaped, so that a column name cannot disturb the terminal.

    >>> plain("a\\x1b[2Jb\\nc")
    'a\\\\x1b[2Jb c'
    """
    line = " ".join(str(text).split("\n"))
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)


@contextmanager
def progress_bar(*, quiet: bool = False) -> Iterator[None]:
    """Show the progress of the work in this block if standard error is a terminal; the bar is removed at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from covey.progress import listening

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    disabled = quiet or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=disabled) as bar:
        task = bar.add_task("", total=1.0)
        with listening(lambda text, done: bar.update(task, description=text, completed=done, refresh=True)):
            yield


def say(text: str) -> None:
    """Print text as it is, without markup or breaks."""
    from rich.console import Console

    Console(highlight=False, soft_wrap=True).print(text, markup=False)


def print_table(frame: DataFrame, *, most: int, more: str = ".") -> None:
    """Print the first rows of a data frame, numbers right-aligned, and how many are left; nothing if it has none."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from covey.tables.complaint import shortened

    if not len(frame):
        return
    table = Table(pad_edge=False)
    for name in frame.columns:
        table.add_column(name.replace("_", " "), justify="right" if name in FORMATS else "left", overflow="fold")
    for row in frame.head(most).to_dict("records"):
        cells = (f"{v:{FORMATS[name]}}" if name in FORMATS else plain(shortened(str(v))) for name, v in row.items())
        table.add_row(*map(escape, cells))
    Console(highlight=False, soft_wrap=True).print(table)
    if len(frame) > most:
        say(f"and {len(frame) - most} more{more}")


def write(frame: DataFrame, file: Path) -> None:
    """Write a data frame in the format of the file's extension, completely or not at all."""
    from covey.files import write_atomically
    from covey.tables.spreadsheet import guarded

    stream = io.BytesIO()
    kind = file.suffix.lower()
    if file == STANDARD:
        guarded(frame).to_csv(sys.stdout, index=False)
        return
    if kind in (".csv", ".tsv"):
        guarded(frame).to_csv(stream, index=False, sep="," if kind == ".csv" else "\t")
    elif kind == ".parquet":
        frame.to_parquet(stream, index=False)
    else:
        frame.to_feather(stream)
    write_atomically(file, stream.getvalue())


def check_there(*sources: str | Path, what: str = "file") -> None:
    """Refuse missing files before the slow imports needed to read them."""
    for source in map(Path, sources):
        if source.exists() or has_magic(str(source)) or source == STANDARD:
            continue
        beside = [file.name for file in source.parent.iterdir()] if source.parent.is_dir() else []
        close = difflib.get_close_matches(source.name, beside, n=1)
        hint = f" Did you mean {source.parent / close[0]}?" if close else ""
        raise FileNotFoundError(f"There is no {what} {source}.{hint}")


def check_out(
    file: Path | None, kinds: Sequence[str] = FRAMES, option: str = "--out", *, overwrite: bool = False
) -> None:
    """Refuse an output file that `write` could not write or must not replace, before the work starts."""
    if file is None or (file == STANDARD and kinds == FRAMES):
        if sys.__stdout__ is None:
            raise ValueError(f"Standard output is closed: give a file with {option}.")
        return
    from covey.files import check_writable

    if file.suffix.lower() not in kinds:
        raise ValueError(f"{option} {file}: use a name that ends in {', '.join(kinds)}.")
    if file.is_dir():
        raise IsADirectoryError(f"{option} {file} is a folder; give the name of a file.")
    if file.exists() and not overwrite:
        raise FileExistsError(f"{file} exists already; choose another file with {option}, or add --overwrite.")
    check_writable(file)
