"""Tables of options: a settings class whose fields say everything about the options of a command."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any, get_type_hints

REQUIRED: Any = MISSING


@dataclass(frozen=True)
class Option:
    """What a table of options says about a field besides its name, type and default."""

    help: str
    metavar: str | None = None  # the placeholder for its value
    panel: str | None = None  # the heading under which the help page lists it
    short: str = ""  # its short form, such as -t
    positional: bool = False  # whether it is an argument without a name
    parameter: str = ""  # the parameter of the estimator, or of a function of `covey.evidence`, that it sets
    none: object = None  # the value of that parameter if the option is "none"
    shown: str = ""  # the default on the help page, if the estimator chooses it
    least: int | None = None  # its smallest value


def option(default: object, *about: Any, **more: Any) -> Any:
    """A field of a settings class: its default, or `REQUIRED`, and its `Option`."""
    return field(default=default, metadata={"option": Option(*about, **more)})


@dataclass(frozen=True)
class Entry:
    """An entry of a table of options: a field of a settings class with its option."""

    name: str
    kind: Any
    default: object
    option: Option

    @property
    def flag(self) -> str:
        """The option as it is typed."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def several(self) -> bool:
        """Whether the option may be repeated."""
        return self.kind == tuple[str, ...]

    @property
    def negative(self) -> str:
        """The option that says no, if leaving the option out does not; otherwise empty."""
        says_no = self.default is True or self.kind == bool | None
        return self.flag.replace("--", "--no-", 1) if says_no else ""


class Settings:
    """Base class of the settings of a command."""

    @classmethod
    @cache
    def table(cls) -> Mapping[str, Entry]:
        """The options, by the names of the fields."""
        kinds = get_type_hints(cls)
        entries = fields(cls)  # type: ignore[arg-type]
        return {one.name: Entry(one.name, kinds[one.name], one.default, one.metadata["option"]) for one in entries}

    def parameters(self) -> dict[str, Any]:
        """The parameters that the options set, without those left to their defaults."""
        found = {}
        for one in self.table().values():
            value = getattr(self, one.name)
            if one.option.parameter and value is not None:
                value = int(value) if isinstance(value, str) and value.isdigit() else value
                found[one.option.parameter] = one.option.none if value == "none" else value
        return found

    def changed(self) -> dict[str, object]:
        """The settings that differ from their defaults."""
        return {n: getattr(self, n) for n, one in self.table().items() if getattr(self, n) != one.default}

    def command(self, name: str, out: str) -> str:
        """The command with these settings: the options that differ from their defaults, quoted for a shell.

        The seed is always included, since the result depends on it.

        >>> from covey.settings import FitSettings
        >>> FitSettings(("a table.csv",), ("y",), groups=("g=x*",), nested=False).command("fit", "out")
        "covey fit 'a table.csv' --target y --groups 'g=x*' --seed 0 --no-nested --out out"
        """
        words = ["covey", name]
        changed = {"seed": getattr(self, "seed", 0), **self.changed()}
        for one in self.table().values():
            if one.name in changed:
                words += _words(one, changed[one.name])
        return shlex.join([*words, "--out", out])


def _words(one: Entry, value: object) -> Iterator[str]:
    """An option with its value, as words of a command."""
    if isinstance(value, bool):
        yield one.flag if value else one.negative
        return
    for item in value if isinstance(value, tuple) else (value,):
        yield from (str(item),) if one.option.positional else (one.flag, str(item))
