"""Tables of options: a settings class whose fields say everything about the options of a command."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any, get_type_hints

__all__ = ["REQUIRED", "Option", "Row", "Settings", "option"]

REQUIRED: Any = MISSING


@dataclass(frozen=True)
class Option:
    """What a table of options says about a field besides its name, type and default.

    Attributes
    ----------
    help : str
    panel : str or None
        The heading under which the help page lists it.
    metavar : str or None
        The placeholder for its value.
    short : str
        Its short form, such as ``-t``.
    positional : bool
        Whether it is an argument without a name.
    parameter : str
        The parameter of the estimator, or of a function of `covey.stability`, that it sets.
    none : object
        The value of that parameter if the option is "none".
    shown : str
        The default on the help page, if the estimator chooses it.
    least : int or None
        The smallest value.
    """

    help: str
    panel: str | None = None
    metavar: str | None = None
    short: str = ""
    positional: bool = False
    parameter: str = ""
    none: Any = None
    shown: str = ""
    least: int | None = None


def option(default: Any, *about: Any, **more: Any) -> Any:
    """A field of a settings class: its default, or `REQUIRED`, and its `Option`."""
    return field(default=default, metadata={"option": Option(*about, **more)})


@dataclass(frozen=True)
class Row:
    """A row of a table of options: a field of a settings class with its option."""

    name: str
    kind: Any
    default: Any
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
    def table(cls) -> Mapping[str, Row]:
        """The options, by the names of the fields."""
        kinds = get_type_hints(cls)
        rows = fields(cls)  # type: ignore[arg-type]
        return {one.name: Row(one.name, kinds[one.name], one.default, one.metadata["option"]) for one in rows}

    def parameters(self) -> dict[str, Any]:
        """The parameters that the options set, without those left to their defaults."""
        found = {}
        for one in self.table().values():
            value = getattr(self, one.name)
            if one.option.parameter and value is not None:
                value = int(value) if isinstance(value, str) and value.isdigit() else value
                found[one.option.parameter] = one.option.none if value == "none" else value
        return found

    def as_dict(self, *classes: type[Settings]) -> dict[str, Any]:
        """The settings of these classes, by default of all, as plain values."""
        names = [one.name for kind in classes or (type(self),) for one in fields(kind)]  # type: ignore[arg-type]
        return {name: getattr(self, name) for name in names}

    def command(self, name: str, out: str) -> str:
        """The command with these settings: the options that differ from their defaults, quoted for a shell.

        The seed is always included, since the result depends on it.

        >>> from covey.settings import FitSettings
        >>> FitSettings(("a table.csv",), ("y",), groups=("g=x*",), nested=False).command("fit", "out")
        "covey fit 'a table.csv' --target y --groups 'g=x*' --seed 0 --no-nested --out out"
        """
        words = ["covey", name]
        for one in self.table().values():
            value = getattr(self, one.name)
            if value != one.default or one.name == "seed":
                words += _words(one, value)
        return shlex.join([*words, "--out", out])


def _words(one: Row, value: Any) -> Iterator[str]:
    """An option with its value, as words of a command."""
    if isinstance(value, bool):
        yield one.flag if value else one.negative
        return
    for item in value if isinstance(value, tuple) else (value,):
        yield from (str(item),) if one.option.positional else (one.flag, str(item))
