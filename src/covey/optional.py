"""Libraries that only some uses need: imported where they are used, and the pip line where they are absent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["EXTRAS", "MissingExtraError", "optional"]

# The extra of pyproject.toml that brings a library.
EXTRAS = {
    "dask": "dask",
    "distributed": "dask",
    "formulaic": "formula",
    "matplotlib": "plot",
    "pyarrow": "parquet",
    "rich": "cli",
    "skops": "io",
    "sympy": "symbolic",
    "torch": "torch",
    "typer": "cli",
    "zarr": "zarr",
}


class MissingExtraError(ModuleNotFoundError):
    """A library is not installed; the message has the line that installs it."""


@contextmanager
def optional(what: str) -> Iterator[None]:
    """Import optional libraries inside of it: a missing one is named, with what needs it and the line that installs it.

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
