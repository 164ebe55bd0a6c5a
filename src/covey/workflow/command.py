"""The command line that repeats a fit."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any

from covey.workflow.settings import FitSettings

__all__ = ["command_line"]

# Fields that do not map to an option of the same name.
NAMED_OTHERWISE = frozenset({"data", "table", "options"})


def command_line(settings: FitSettings, out: str = "fit") -> str:
    """The command that repeats a fit: the options that differ from their defaults, quoted for a shell.

    >>> from covey.workflow.settings import TableSettings
    >>> command_line(FitSettings(TableSettings(("a table.csv",), "y", groups=("g=x*",)), nested=False))
    "covey fit 'a table.csv' --target y --groups 'g=x*' --seed 0 --no-nested --out fit"
    """
    words = ["covey", "fit", *settings.table.data, *_changed(settings.table)]
    words += [*_changed(settings), *_options(settings.options), "--out", out]
    return shlex.join(words)


def _changed(settings: Any) -> Iterator[str]:
    """The changed options of a dataclass, and always the seed, since the result depends on it."""
    for one in fields(settings):
        value = getattr(settings, one.name)
        if one.name in NAMED_OTHERWISE:
            continue
        if one.name == "seed" or one.default is MISSING or value != one.default:
            yield from _option(one.name, value)


def _options(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        yield from _option(name, value)


def _option(name: str, value: Any) -> Iterator[str]:
    option = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        yield option if value else f"--no-{name.replace('_', '-')}"
    elif isinstance(value, tuple | list):
        for item in value:
            yield from (option, str(item))
    elif value is not None:
        yield from (option, str(value))
