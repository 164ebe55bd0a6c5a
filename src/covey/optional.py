"""Optional libraries: imported where they are used, with an error that gives the pip command if they are missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["EXTRAS", "MissingExtraError", "optional"]

# The extra in pyproject.toml that installs each library.
EXTRAS = {
    "dask": "dask",
    "distributed": "dask",
    "formulaic": "formula",
    "jinja2": "report",
    "matplotlib": "plot",
    "openpyxl": "xlsx",
    "pyarrow": "parquet",
    "rich": "cli",
    "skops": "io",
    "sympy": "symbolic",
    "torch": "torch",
    "typer": "cli",
    "zarr": "zarr",
}


class MissingExtraError(ModuleNotFoundError):
    """A library is not installed; the message has the command that installs it."""


@contextmanager
def optional(what: str) -> Iterator[None]:
    """Import optional libraries within this context; the error for a missing one names the command to install it.

    >>> with optional("Drawing"):
    ...     raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")
    Traceback (most recent call last):
    covey.optional.MissingExtraError: Drawing needs matplotlib, which is not installed: pip install 'covey[plot]'
    """
    try:
        yield
    except MissingExtraError:
        raise
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in EXTRAS:
            raise
        raise MissingExtraError(
            f"{what} needs {library}, which is not installed: pip install 'covey[{EXTRAS[library]}]'", name=library
        ) from None
